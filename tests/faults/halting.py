"""Format ``jms`` with places to halt at: before Spark's calls reach the reader, and in the middle of a task.

The product does everything; this module shows where it is.
"""

from halts import Halts
from pyspark import TaskContext

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.spark.source import JmsDataSource
from pyspark_jms.spark.stream_reader import JmsStreamReader

NAME = "halting_jms"


class HaltingJms(JmsDataSource):
    @classmethod
    def name(cls):
        return NAME

    def streamReader(self, schema):  # noqa: N802 - the name is Spark's
        return _HaltingReader(SourceOptions.parse(self.options, "stream"))


class _HaltingReader(JmsStreamReader):
    def latestOffset(self, start, limit):  # noqa: N802 - the name is Spark's
        Halts.of_this_job().here("latestOffset", _number(start))
        return super().latestOffset(start, limit)

    def partitions(self, start, end):
        Halts.of_this_job().here("partitions", _number(start))
        return super().partitions(start, end)

    def read(self, partition):
        batch = int(TaskContext.get().getLocalProperty("streaming.sql.batchId"))
        for rows in super().read(partition):
            yield rows
            Halts.of_this_job().here("task", batch)


def _number(offset):
    """Of messages, or where tasks receive, of batches."""
    return int(offset.get("seq", offset.get("batch", 0)))
