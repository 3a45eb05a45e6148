"""A query that writes rows to a queue. It waits at an empty folder until files arrive.

The rows are numbers in small files, and Spark's own code turns them into messages: the source with the least CPU.
"""

import shutil
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from bench.job import Job, Measured
from bench.orders import DIFFERENT, text_at
from bench.processes import Meter
from bench.spark_read import noting, trigger_time
from bench.spark_session import SparkSide, last_batch, until

__all__ = ["Writing", "message_columns"]

_WARM_UP = 20_000


class Writing:
    """``with Writing(side, job, tasks=8) as writing: writing.measure()``: one batch of ``tasks`` tasks."""

    def __init__(self, side: SparkSide, job: Job, options: Mapping[str, str] | None = None, *, tasks: int) -> None:
        self.job = job
        self._side, self._tasks, self._options = side, tasks, dict(options or {})
        self._options.setdefault("deliveryMode", "persistent" if job.persistent else "non_persistent")

    def __enter__(self) -> Self:
        self._folder = self._side.folder / f"writing-{time.time_ns()}"
        (self._folder / "in" / "nothing").mkdir(parents=True)
        self._side.broker.create_queue(self.job.queue)
        self.query = self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self.query.stop()

    def _start(self) -> StreamingQuery:
        numbers = self._side.spark.readStream.schema("id long").parquet(str(self._folder / "in" / "*"))
        rows = numbers.select(*message_columns(self.job))
        options = {**self._side.access(), "queue": self.job.queue, **self._options}
        writer = rows.writeStream.format("jms").options(**options)
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        return writer.trigger(processingTime="500 milliseconds").start()

    def measure(self, messages: int | None = None) -> Measured:
        """``seconds`` is the trigger time of the batch.

        Some uncounted rows are written first, because Spark ends Python workers that had no task for a minute, and a
        new worker has a start-up cost.
        """
        self.write_staged(self.staged(_WARM_UP), _WARM_UP)
        messages = messages or self.job.messages
        return self.write_staged(self.staged(messages), messages)

    def staged(self, messages: int) -> Path:
        """The files of a batch, where the query does not see them."""
        folder = self._folder / f"staged-{time.time_ns()}"
        self._side.spark.range(0, messages, 1, self._tasks).write.parquet(str(folder))
        return folder

    def write_staged(self, staged: Path, messages: int) -> Measured:
        arrived = self._folder / "in" / f"batch-{time.time_ns()}"
        before = last_batch(self.query)
        # A source of files has no runner.
        roles = partial(self._side.roles_of, ())
        with noting(self._side, self.query) as noted, Meter(roles) as meter:
            staged.rename(arrived)
            until(self.query, lambda: last_batch(self.query) > before, self.job.time_limit)
        shutil.rmtree(arrived)  # of more than 32 folders Spark makes a job to list them, at each trigger
        self._empty(messages)
        return trigger_time(meter, noted, messages)

    def _empty(self, messages: int) -> None:
        # The broker confirms a durable commit. Once in hundreds of batches it has not yet queued all rows then.
        count = self._side.broker.message_count
        until(self.query, lambda: count(self.job.queue) >= messages, self.job.time_limit)
        stored = count(self.job.queue)
        if stored != messages:
            raise RuntimeError(f"{messages} rows were written, {stored} messages arrived")
        self._side.broker.purge(self.job.queue)


_PROPERTIES = {
    "customer": "concat('C', id % 1000)",
    "region": "elt(id % 4 + 1, 'north', 'south', 'east', 'west')",
    "amount": "concat(id * 7 % 100000, '.50')",
    "created": "concat('2026-01-01T12.', id % 60)",
    "note": "concat('path ', id)",
}
"""Name → Spark's expression for ``Job.properties_of``."""


def message_columns(job: Job) -> list[Any]:
    """The messages of ``Job.text_of`` and ``Job.properties_of``, as columns computed from ``id``."""
    texts = f.lit([text_at(number, job.body_bytes - 12) for number in range(DIFFERENT)])
    entries = ", ".join(f"'{name}', {value}" for name, value in _PROPERTIES.items())
    return [
        f.concat(f.expr("lpad(id, 12, '0')"), f.element_at(texts, f.expr(f"int(id % {DIFFERENT} + 1)"))).alias("text"),
        f.expr(f"map({entries})").alias("properties"),
    ]
