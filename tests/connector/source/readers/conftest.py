"""Reads whose tasks receive, without Spark: the planner, and its tasks as functions."""

import contextlib
import pickle

import amqp_sending
import pytest
from streaming import access

from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.readers.planner import ReaderSource
from pyspark_jms.source.readers.task import read_reader


class Query:
    """A streaming query: it keeps an offset log and a commit log as Spark does."""

    def __init__(self, broker, **options):
        amqp_sending.settings_of(broker)  # skips without AMQP
        given = access(broker) | {"brokerUrl": broker.amqp_url, "deliveryGuarantee": "exactly-once", "readers": "1"}
        self.options = SourceOptions.parse(given | {key: str(each) for key, each in options.items()})
        self.log = []
        self.start()

    def start(self):
        """A new driver, with the logs of the one before."""
        self.source = ReaderSource(self.options, AmqpSource())

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

    def tasks(self):
        """Of the batch that was planned last."""
        start = self.log[-2] if len(self.log) > 1 else self.source.initial_offset()
        return pickle.loads(pickle.dumps(self.source.partitions(start, self.log[-1])))

    def read(self, task):
        return [row for part in read_reader(task, self.options, AmqpSource()) for row in part.to_pylist()]

    def rows(self):
        return [self.read(task) for task in self.tasks()]

    def commit(self):
        self.source.commit(self.log[-1])

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

        def start(**options):
            query = Query(broker, **{"queue": queue} | options)
            stack.callback(lambda running=query: running.source.stop())
            return query

        yield start


@pytest.fixture
def put():
    return amqp_sending.put
