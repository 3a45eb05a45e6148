"""A query that reads a queue to ``noop``. The broker pauses the queue until the clock starts.

Measurements therefore contain no start-up time. The query reads its first batch before the measurement.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

from pyspark.sql.streaming.query import StreamingQuery

from bench import raw
from bench.job import Job, Measured
from bench.processes import Meter, compiler_seconds
from bench.spark_session import (
    Progress,
    SparkSide,
    began,
    ended,
    last_batch,
    last_progress,
    progress_since,
    rows_of,
    until,
)

__all__ = ["Noted", "Reading", "noting", "start_query", "trigger_time"]


_STOP_SECONDS = 15.0
_POLL_SECONDS = 0.05
_WAKING_MESSAGES, _WAKING_BYTES = 4_000, 10_240


@dataclass(slots=True)
class Noted:
    """``batches``: the progress of batches with rows. ``compiling``: CPU seconds of the JVM's compilers."""

    batches: list[Progress] = field(default_factory=list)
    compiling: float = 0.0


class Reading:
    """``with Reading(side, job) as reading: fill(reading.job); reading.measure()``.

    ``source`` must count its messages in an offset ``{"seq": n}``. ``acknowledges``: whether its queue is empty at the
    end; the queue of the naive source is not. ``fill`` sends the ``warm_up`` messages.
    """

    def __init__(
        self,
        side: SparkSide,
        job: Job,
        options: Mapping[str, str] | None = None,
        *,
        source: str = "jms",
        acknowledges: bool = True,
        warm_up: int = 200,
        fill: Callable[[Job], object] = raw.fill,
        schema: str | None = None,
        queues: int = 1,
    ) -> None:
        self.job = job
        self.queues = [job.queue] if queues == 1 else [f"{job.queue}.{number}" for number in range(queues)]
        self._side, self._source, self._options = side, source, dict(options or {})
        self._acknowledges, self._warm_up, self._fill, self._schema = acknowledges, warm_up, fill, schema
        # The offset then counts batches, and the queue has a consumer only while a task receives.
        self._tasks_receive = "deliveryGuarantee" in self._options and "journalLocation" not in self._options

    def __enter__(self) -> Self:
        broker = self._side.broker
        for queue in self.queues:
            broker.create_queue(queue)
        self._held = [broker.server.locateQueue(queue) for queue in self.queues]
        self._hold()
        named = self.queues[0] if len(self.queues) == 1 else json.dumps(self.queues)
        others = self._side.runners()
        self.query = start_query(self._side, named, self._options, source=self._source, schema=self._schema)
        until(self.query, lambda: bool(self._side.runners() - others))
        self.runners = self._side.runners() - others
        if not self._tasks_receive:
            until(self.query, lambda: all(broker.consumer_count(queue) for queue in self.queues))
        if self._warm_up:
            self._fill(raw.smaller(replace(self.job, queue=self.queues[0]), self._warm_up))
            self.measure(self._warm_up)
        return self

    def __exit__(self, *_: object) -> None:
        self.query.stop()
        deadline = time.monotonic() + _STOP_SECONDS  # stop() returns before the source's process has ended
        for queue, held in zip(self.queues, self._held, strict=True):
            while self._side.broker.consumer_count(queue) and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
            self._side.broker.purge(queue)
            self._side.broker.gateway.detach(held)

    def _hold(self) -> None:
        for held in self._held:
            held.pause()

    def release(self) -> None:
        """Resume delivery of the paused queues."""
        for held in self._held:
            held.resume()

    def wake(self) -> None:
        """Read some uncounted batches first. Spark ends Python workers that had no task for a minute, and a new worker
        has a start-up cost. The messages are large enough for several tasks, so that each core gets a worker.
        """
        job = raw.smaller(replace(self.job, queue=self.queues[0], body_bytes=_WAKING_BYTES), _WAKING_MESSAGES)
        raw.fill(job)
        self.measure(job.messages)

    def sequence(self) -> int:
        """Number of messages in the query's finished batches since its start."""
        if self._tasks_receive:
            return rows_of(self.query)
        last = last_progress(self.query)
        return 0 if last is None else _sequence(last["sources"][0]["endOffset"])

    def measure(self, messages: int | None = None) -> Measured:
        """Resume the queue and wait until the last message is read and, if the source does so, acknowledged.

        ``seconds`` is trigger time from the resume on: the triggers that had rows, with planning and logs, without idle
        waits before them. ``by_the_clock_seconds`` ends with the last ACK.
        """
        messages = messages or self.job.messages
        goal = self.sequence() + messages
        roles = partial(self._side.roles_of, self.runners)
        with noting(self._side, self.query) as noted, Meter(roles) as meter:
            self.release()
            for held in self._held if self._acknowledges else ():
                until(self.query, lambda held=held: held.getMessageCount() == 0, self.job.time_limit)  # type: ignore[misc]
            until(self.query, lambda: self.sequence() >= goal, self.job.time_limit)
        self._hold()
        return trigger_time(meter, noted, messages)


def start_query(
    side: SparkSide,
    queue: str,
    options: Mapping[str, str] | None = None,
    *,
    source: str = "jms",
    schema: str | None = None,
) -> StreamingQuery:
    """``queue``: a name, or a JSON array of names."""
    reader = side.spark.readStream.format(source).options(**{**side.access(), "queue": queue, **(options or {})})
    frame = (reader.schema(schema) if schema else reader).load()
    checkpoint = str(side.folder / f"reading-{time.time_ns()}")
    return frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()


def _sequence(offset: Any) -> int:
    if offset is None:
        return 0
    return int((json.loads(offset) if isinstance(offset, str) else offset)["seq"])


@contextmanager
def noting(side: SparkSide, query: StreamingQuery) -> Iterator[Noted]:
    """The result is filled after the block, with the batches of the block."""
    noted, before, compiling = Noted(), last_batch(query), compiler_seconds(side.jvm_pid)
    yield noted
    noted.compiling = compiler_seconds(side.jvm_pid) - compiling
    noted.batches = progress_since(query, before)


def trigger_time(meter: Meter, noted: Noted, messages: int) -> Measured:
    batches = noted.batches
    rows = sum(batch["numInputRows"] for batch in batches)
    if rows != messages:
        raise RuntimeError(f"{messages} messages were sent and {rows} rows read")
    notes = {"by_the_clock_seconds": meter.seconds, "batches": float(len(batches))}
    notes["jvm_compiling_us_per_message"] = noted.compiling / messages * 1e6
    for part in ("latestOffset", "addBatch"):
        notes[f"{part}_seconds"] = sum(batch["durationMs"].get(part, 0) for batch in batches) / 1000
    busy = sum(ended(batch) - max(began(batch), meter.began) for batch in batches)
    return Measured(messages=messages, seconds=busy, cpu=meter.cpu, notes=notes)
