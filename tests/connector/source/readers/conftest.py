"""Reads whose tasks receive, without Spark: the planner, and its tasks as functions."""

import contextlib

import amqp_sending
import pytest
from bare_query import BareQuery
from streaming import access

from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.readers.planner import ReaderSource
from pyspark_jms.source.readers.task import read_reader


class Query(BareQuery):
    def __init__(self, broker, **options):
        amqp_sending.settings_of(broker)  # skips without AMQP
        given = access(broker) | {"brokerUrl": broker.amqp_url, "deliveryGuarantee": "exactly-once", "readers": "1"}
        super().__init__(SourceOptions.parse(given | {key: str(each) for key, each in options.items()}))
        self.start()

    def start(self):
        """A new driver, with the logs of the one before."""
        self.source = ReaderSource(self.options, AmqpSource())

    def read(self, task):
        return [row for part in read_reader(task, self.options, AmqpSource()) for row in part.to_pylist()]


@pytest.fixture
def query(broker, queue):
    """``query(**options)`` starts a query of the queue."""
    with contextlib.ExitStack() as stack:

        def start(**options):
            query = Query(broker, **{"queue": queue} | options)
            stack.callback(lambda running=query: running.source.stop())
            return query

        yield start


@pytest.fixture
def put():
    return amqp_sending.put
