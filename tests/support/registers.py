"""Exactly-once reads without Spark, and the registers that they leave at a broker."""

import pickle
import time
import uuid

import amqp_sending
from streaming import access, stopping

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.readers.task import read_reader
from pyspark_jms.spark.protocols import query_of, reading_of

_LONGEST_SECONDS = 60


class ReaderQuery:
    """A streaming query without Spark: tasks are functions. Keeps an offset log as Spark does."""

    def __init__(self, broker, **options):
        given = access(broker, "amqp") | {"deliveryGuarantee": "exactly-once"}
        given |= {key: str(each) for key, each in options.items() if each is not None}
        self.options = SourceOptions.parse(given)
        self.log = []
        self.start()

    def begin(self):
        """A durable subscription is made, and keeps what is sent from now on."""
        assert not self.plan()

    def start(self):
        """A new driver, with the logs of the one before."""
        self.source = query_of(reading_of(self.options))

    def read(self, task):
        """The rows of a task."""
        return [row for part in read_reader(task, reading_of(self.options)) for row in part.to_pylist()]

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

    def rows(self):
        return [self.read(task) for task in self.tasks()]

    def commit(self):
        self.source.commit(self.log[-1])

    def texts(self, wanted):
        """Batches until so many rows were read, each committed."""
        found, end = [], time.monotonic() + _LONGEST_SECONDS
        while len(found) < wanted and time.monotonic() < end:
            if self.plan():
                found += [row["text"] for task in self.rows() for row in task]
                self.commit()
        return found


def left_registers(broker, queue, *texts, readers=2, **options):
    """The base of the registers of a query that has read these messages, and has ended. Its last batch is in them."""
    base = f"pyspark-jms.staging.s{uuid.uuid4().hex[:8]}"
    running = ReaderQuery(broker, queue=queue, readers=readers, stagingQueue=base, **options)
    with stopping(running.source):
        amqp_sending.put(broker, queue, *texts)
        assert len(running.texts(len(texts))) == len(texts)
    return base
