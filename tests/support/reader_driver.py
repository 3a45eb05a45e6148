"""A process that runs the engine of a read whose tasks receive, as Spark does, with its logs in files, and dies.

    python reader_driver.py FOLDER KILL_AT NTH OPTIONS

FOLDER has ``offsets``, ``commits`` and ``sink``. The process, which is driver and executor in one, dies by kill -9 when
it passes KILL_AT the NTH time. It ends by itself when the source is drained. Its exit code is FENCED or OVERTAKEN when
another driver of the same logs has gone on.
"""

from dying_driver import FENCED, OVERTAKEN, Driver

from pyspark_jms.amqp.reading import AmqpReaderLink
from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.source.readers.planner import ReaderSource
from pyspark_jms.source.readers.task import read_reader

__all__ = ["FENCED", "OVERTAKEN", "POINTS"]

CALLS = ("lock", "peek", "open", "take", "accept", "create", "subscribe", "browse")
POINTS = (
    *CALLS,
    "before discharge",
    "at discharge",
    "after discharge",
    "latest",
    "planned",
    "task",
    "rows",
    "sunk",
    "committed",
)


class ReaderDriver(Driver):
    link, calls = AmqpReaderLink, CALLS

    def start(self):
        return ReaderSource(self.options, AmqpSource())

    def read(self, tasks, batch):
        rows = [self._read(task) for task in tasks]
        return rows, [self._read(task) for task in tasks] if batch % 3 == 0 else rows

    def _read(self, task):
        self.at("task")
        return [row["text"] for part in read_reader(task, self.options, AmqpSource()) for row in part.to_pylist()]


if __name__ == "__main__":
    ReaderDriver.main()
