"""Staged reads without Spark: the engine over AMQP, and what tasks would read."""

import contextlib

import amqp_sending
import pytest
from bare_query import BareQuery
from streaming import access

from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.staged.stream import StagedSource
from pyspark_jms.source.task_inputs import read_task


class Query(BareQuery):
    def __init__(self, broker, **options):
        given = access(broker) | {"brokerUrl": broker.amqp_url, "deliveryGuarantee": "exactly-once"}
        super().__init__(
            SourceOptions.parse(given | {key: str(each) for key, each in options.items() if each is not None})
        )
        self.committed = 0
        self.drains = False

    def start(self):
        self.source = StagedSource(self.options, AmqpSource())
        if self.drains:
            self.source.drain()

    def die(self):
        """As kill -9 does: the sockets close, and nothing else happens."""
        owner = self.source._owner
        if owner is not None and owner.link is not None:
            owner.link.drop()
        self.source = None

    def stop(self):
        if self.source is not None:
            self.source.stop()
            self.source = None

    def read(self, task):
        return [row for part in read_task(task, self.options, AmqpSource()) for row in part.to_pylist()]

    def commit(self):
        super().commit()
        self.committed = len(self.log)


@pytest.fixture
def query(broker, queue):
    """``query(**options)`` starts a query of the queue."""
    with contextlib.ExitStack() as stack:

        def start(drains=False, broker=broker, **options):
            query = Query(broker, **{"queue": queue} | options)
            query.drains = drains
            query.start()
            stack.callback(query.stop)
            return query

        yield start


@pytest.fixture
def put():
    return amqp_sending.put


@pytest.fixture
def settings_for():
    return amqp_sending.settings_of


@pytest.fixture
def subscription_to():
    return amqp_sending.subscription_to
