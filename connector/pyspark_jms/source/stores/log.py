"""Messages that stay where they are: logs, queues that keep what was read and number it (streams of RabbitMQ).

The offset has the next number of each log, a digest of the message before it, and where the batch began.
So Spark's checkpoint says what was read, nothing is acknowledged, and a batch that Spark repeats has the same messages:
exactly-once into Spark. The digest shows whether a stream was deleted and declared again: RabbitMQ (4.3) gives a stream
no identity that a client can read.
"""

import time
from collections.abc import Mapping
from typing import Any

from pyspark_jms.amqp.link.log_reader import LogReader, digest_of
from pyspark_jms.delivery.message_range import Batch, Bounds, MessageRange
from pyspark_jms.errors import DataLossError, IllegalStateError
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.source.admission import IDLE_SECONDS, BatchDecision, BatchTrigger, Waiting, in_turn
from pyspark_jms.source.end_of_queue import EndOfQueue
from pyspark_jms.source.offsets import refused_as
from pyspark_jms.source.query import Run, Store
from pyspark_jms.source.stores.one_log import Log
from pyspark_jms.source.stores.received import received_partitions
from pyspark_jms.source.task_inputs import TaskInput, TaskInputs

__all__ = ["LogStore"]

_SETTLE_SECONDS = 0.05
_SEQUENCE, _POSITIONS, _READ, _FROM = "seq", "positions", "read", "from"


class LogStore(Store):
    """Offsets count messages. None of them is in flight."""

    def __init__(self, run: Run) -> None:
        self._run, self._options = run, run.reading.options
        self._condition = StateCondition()
        self.reports = self._tasks = TaskInputs(self._options)
        count = len(self._options.destinations)
        self._logs = [Log(each, self._options, self._condition, run.stop) for each in range(count)]
        self._batches: dict[int, list[MessageRange]] = {}
        """End of a batch → its messages, until it is done."""
        self._repeats: set[int] = set()
        """Ends of batches that another link has received."""
        self._admission = BatchTrigger(self._options, time.monotonic)
        self._silence = EndOfQueue[LogReader](
            lambda link: link.probe(), idle=self._options.idle_timeout, settle=_SETTLE_SECONDS
        )
        self._opened: dict[str, Any] | None = None
        """The offset with which this run began."""
        self._begin: tuple[dict[str, int], dict[str, str]] = ({}, {})
        """Where it began: the positions, and the digests of the messages before them."""
        self._end = self._received = 0
        self._turn = 0

    def first_offset(self) -> dict[str, Any]:
        return {_SEQUENCE: 0, _POSITIONS: {}}

    def count(self, offset: dict[str, Any]) -> int:
        return _parsed(offset)[0]

    @property
    def _draining(self) -> bool:
        return self._run.drain_since_ms is not None

    # --- the next batch ------------------------------------------------------------------------

    def open(self, start: dict[str, Any]) -> None:
        if self._opened is not None:
            return
        _, positions, read = _parsed(start)
        patience = self._options.connection.reconnect_timeout if positions else 0.0
        for log in self._logs:
            log.open(positions.get(log.name), read.get(log.name), patience=patience, drain=self._draining)
            positions[log.name] = log.position
            read |= {} if log.read is None else {log.name: log.read}
        self._opened, self._begin = start, (positions, read)

    def next(self, start: dict[str, Any]) -> dict[str, Any]:
        """Return the end of the next batch.

        Without messages, an offset that differs from ``start`` makes an empty batch: so the checkpoint gets a number
        for each log before the first message, and a restart does not ask again what ``next`` is.
        """
        self._end, positions, read = _parsed(start)
        bounds = Bounds(self._options.max_messages, self._options.max_bytes)
        logs = in_turn(self._logs, self._turn) if self._await_messages() else []
        pieces = [piece for log in logs for piece in log.waiting.take(bounds)]
        if start == self._opened:
            positions, read = dict(self._begin[0]), dict(self._begin[1])
        begin = dict[str, int]()
        for piece in pieces:
            name, last = self._logs[piece.subscription].name, piece.last_message
            begin.setdefault(name, piece.offsets[piece.first])
            positions[name], read[name] = last.offset + 1, last.digest
        if not pieces and (positions, read) == _parsed(start)[1:]:
            return start
        if pieces:
            self._admission.note_batch()
            self._turn += 1
            self._end += sum(map(len, pieces))
            self._batches[self._end] = list[MessageRange](pieces)
        return {_SEQUENCE: self._end, _POSITIONS: positions, _READ: read, _FROM: begin}

    def _await_messages(self) -> bool:
        """Return True when what waits is a batch, and False when nothing has come for a while."""
        self._admission.begin(None)
        while True:
            self._run.stop.check()
            self._received += sum(log.receive() for log in self._logs)
            verdict = self._admission.verdict(self._waiting(), self._received)
            if verdict in {BatchDecision.BATCH, BatchDecision.ASK}:
                return True
            if verdict is BatchDecision.NOTHING and self._has_nothing():
                return False
            self._condition.pause()

    def _waiting(self) -> Waiting:
        waiting = [log.waiting for log in self._logs]
        return Waiting(sum(each.messages for each in waiting), sum(each.size for each in waiting), no_room=False)

    def _has_nothing(self) -> bool:
        """Nothing waits. With AvailableNow: and every log has been received up to the end that it had at the start."""
        if not self._draining:
            return self._admission.waited >= IDLE_SECONDS
        unended = [log for log in self._logs if not log.has_ended]
        links = [log.link for log in unended if log.link is not None]
        if unended and self._silence.is_reached(links, self._received):
            for log in unended:
                log.target = 0  # the last messages are filtered out, or were deleted
        return all(log.has_ended for log in self._logs) and not self._waiting().messages

    # --- what tasks read -----------------------------------------------------------------------

    def tasks(self, start: dict[str, Any], end: dict[str, Any]) -> list[TaskInput]:
        first, last = self.count(start), self.count(end)
        ranges = self._batches.get(last)
        if ranges is None:
            ranges = self._batches[last] = self._repeated(end, last - first)
            self._repeats.add(last)
        memory = self._tasks.memory_for(last) if self._tasks.are_here() else None
        origins = [(log.name, log.dialect) for log in self._logs]
        tasks = received_partitions(Batch(first, last, tuple(ranges)), origins, self._options.partition_bytes, memory)
        return self._tasks.of(tasks, {log.dialect for log in self._logs if log.dialect})

    def _repeated(self, batch: dict[str, Any], count: int) -> list[MessageRange]:
        """The messages of a batch that an earlier process has received."""
        ranges: list[MessageRange] = []
        begin, others = dict[str, int](batch.get(_FROM, {})), False
        _, positions, read = _parsed(batch)
        logs = {log.name: log for log in self._logs}
        for name in begin:  # in the order of the batch, so that each message has its number again
            found = logs[name].between(begin[name], positions[name]) if name in logs else []
            ranges += found
            if found and name in read:
                others |= digest_of(found[-1].block, found[-1].last - 1) != read[name]
        have = sum(map(len, ranges))
        if (have != count or others) and self._options.fail_on_data_loss:
            raise DataLossError(
                f"Spark's checkpoint needs a batch of {count:,} messages, of which the streams have"
                f" {'others' if others else f'{have:,}'}.",
                "Streams delete old messages (max-age, max-length-bytes), a stream was deleted and declared again, or"
                " option queue or streamFilter is another one than before: start the query once as it was. With"
                " failOnDataLoss=false the batch has the messages that are left.",
            )
        return ranges

    # --- done batches and metrics --------------------------------------------------------------

    def release(self, through: int) -> None:
        for end in [each for each in self._batches if each <= through]:
            for range_ in self._batches.pop(end):
                link = self._logs[range_.subscription].link
                if link is not None and not link.is_down and end not in self._repeats:
                    link.released(len(range_))
        self._tasks.release(through)

    def received(self) -> int:
        return self._received

    def watches(self) -> bool:
        """RabbitMQ has no management over AMQP that a client could ask for the counts of a stream."""
        return False

    def metrics(self, watched: Mapping[str, int | str]) -> dict[str, object]:
        """Return the metrics. What was received and is not in a finished batch is in flight."""
        del watched
        in_flight = [range_ for ranges in self._batches.values() for range_ in ranges]
        waiting = self._waiting()
        return {
            _SEQUENCE: self._end,
            "positions": {log.name: log.position for log in self._logs},
            "inFlightMessages": waiting.messages + sum(map(len, in_flight)),
            "inFlightBytes": waiting.size + sum(range_.size for range_ in in_flight),
            "received": self._received,
            "reconnects": sum(log.reconnects for log in self._logs),
            "guarantee": "exactly-once into Spark",
            "broker": self._logs[0].server,
        }

    def close(self) -> None:
        for log in self._logs:
            log.close()


def _parsed(offset: dict[str, Any]) -> tuple[int, dict[str, int], dict[str, str]]:
    """Return the count, and of each log the position and the digest of the last message that was read, if any was."""
    with refused_as(
        IllegalStateError,
        "The checkpoint holds an offset of another way to read.",
        "Option streamOffset cannot be added to or removed from a query: use a checkpointLocation of its own, and a new"
        " output folder for Spark's file sink.",
    ):
        positions = {str(name): int(at) for name, at in offset[_POSITIONS].items()}
        return int(offset[_SEQUENCE]), positions, dict(offset.get(_READ, {}))
