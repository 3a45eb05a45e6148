"""Format ``jms`` with breakpoints: before Spark's calls reach the reader, and after each part of a task's rows.

Everything else is the product's.
"""

from breakpoints import Breakpoints
from pyspark import TaskContext

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.spark.source import JmsDataSource
from pyspark_jms.spark.stream_reader import JmsStreamReader

NAME = "jms_with_breakpoints"


class BreakpointSource(JmsDataSource):
    @classmethod
    def name(cls):
        return NAME

    def streamReader(self, schema):  # noqa: N802 - the name is Spark's
        return _BreakpointReader(SourceOptions.parse(self.options, "stream"))


class _BreakpointReader(JmsStreamReader):
    def latestOffset(self, start, limit):  # noqa: N802 - the name is Spark's
        Breakpoints.of_this_job().wait_at("latestOffset", _number(start))
        return super().latestOffset(start, limit)

    def partitions(self, start, end):
        Breakpoints.of_this_job().wait_at("partitions", _number(start))
        return super().partitions(start, end)

    def read(self, partition):
        batch = int(TaskContext.get().getLocalProperty("streaming.sql.batchId"))
        for rows in super().read(partition):
            yield rows
            Breakpoints.of_this_job().wait_at("task", batch)


def _number(offset):
    """How many messages are before the offset. Of readers, whose offsets have no such number: how many batches."""
    return int(offset.get("seq", offset.get("batch", 0)))
