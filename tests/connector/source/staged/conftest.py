"""Staged reads without Spark: the engine over AMQP, and what tasks would read."""

import contextlib
import pickle

import amqp_sending
import pytest
from streaming import access

from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.staged.stream import StagedSource
from pyspark_jms.source.task_inputs import read_task


class Query:
    """A streaming query: it keeps an offset log and a commit log as Spark does."""

    def __init__(self, broker, **options):
        given = access(broker) | {"brokerUrl": broker.amqp_url, "deliveryGuarantee": "exactly-once"}
        self.options = SourceOptions.parse(
            given | {key: str(each) for key, each in options.items() if each is not None}
        )
        self.source = None
        self.log = []
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

    @property
    def planned(self):
        return self.log[-1] if self.log else self.source.initial_offset()

    def plan(self):
        """Ask for the next batch once; whether there is one."""
        end = self.source.latest_offset(self.planned)
        if end == self.planned:
            return False
        self.log.append(end)
        return True

    def rows(self):
        """Of the batch that was planned last."""
        start = self.log[-2] if len(self.log) > 1 else self.source.initial_offset()
        tasks = pickle.loads(pickle.dumps(self.source.partitions(start, self.log[-1])))
        return [
            [row for part in read_task(task, self.options, AmqpSource()) for row in part.to_pylist()] for task in tasks
        ]

    def commit(self):
        self.source.commit(self.log[-1])
        self.committed = len(self.log)

    def texts(self, wanted):
        """Batches until so many rows were read, each committed."""
        found = []
        for _ in range(200):
            if len(found) >= wanted:
                break
            if self.plan():
                found += [row["text"] for task in self.rows() for row in task]
                self.commit()
        return found


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
