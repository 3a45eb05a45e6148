"""A streaming read of logs: queues that keep what was read, and number their messages (streams of RabbitMQ).

The offset of the query has the next number of each log, and where the batch began. So Spark's checkpoint says what was
read, nothing is acknowledged, and a batch that Spark repeats has the same messages: exactly-once into Spark.
"""

import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark_jms.amqp.link.log_reader import LogReader
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.message_range import Batch, MessageRange
from pyspark_jms.errors import DataLossError, IllegalStateError, JMSError
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.admission import IDLE_SECONDS, BatchDecision, BatchTrigger, Waiting
from pyspark_jms.source.links import SourceProtocol
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.source.stream import received_partitions
from pyspark_jms.source.task_inputs import TaskInput, TaskInputs

__all__ = ["LogSource"]

_log = logging.getLogger("pyspark_jms.source")
_POLL_SECONDS = 0.05
_SEQUENCE, _POSITIONS, _FROM = "seq", "positions", "from"

Position = str | int | datetime
"""An offset, a time, ``first``, or ``last`` for the last messages."""
Taken = Sequence[tuple[MessageBlock, Sequence[int]]]


@dataclass(slots=True)
class _Piece:
    """Messages of one block, and the offset of each message of the block."""

    range_: MessageRange
    offsets: Sequence[int]

    @property
    def next(self) -> int:
        return self.offsets[self.range_.last - 1] + 1

    def split(self, messages: int) -> "tuple[_Piece, _Piece]":
        first, rest = self.range_.split(messages)
        return _Piece(first, self.offsets), _Piece(rest, self.offsets)


class _Log:
    """One log: its link, and what was received and is not in a batch."""

    def __init__(self, subscription: int, destination: Destination) -> None:
        self.subscription, self.destination = subscription, destination
        self.name = str(destination)
        self.link: LogReader | None = None
        self.waiting: deque[_Piece] = deque()
        self.position: Position = "first"
        """Where a new link begins."""
        self.expected: int | None = None
        """The offset of the next message, if the stream has deleted nothing; None before the first message."""
        self.target: int | None = None
        """With AvailableNow: the first offset that this run does not read."""

    def receive(self, taken: Taken) -> int:
        """Keep what came, without what is beyond the target. Returns how many came."""
        come = 0
        for block, offsets in taken:
            come += len(block)
            wanted = sum(self.target is None or each < self.target for each in offsets)
            if wanted:
                self.waiting.append(_Piece(MessageRange(self.subscription, block, 0, wanted), offsets))
            self.position = self.expected = offsets[-1] + 1
        return come

    def has_gap(self, taken: Taken) -> bool:
        """Whether messages between those that were received and these may have been deleted, or are no messages."""
        return self.expected is not None and bool(taken) and taken[0][1][0] > self.expected

    @property
    def has_ended(self) -> bool:
        """Whether a run with AvailableNow has received everything."""
        return self.target == 0 or (isinstance(self.position, int) and self.position >= (self.target or 1 << 62))


class LogSource:
    """The ``spark.protocols.SourceEngine``."""

    def __init__(self, options: SourceOptions, protocol: SourceProtocol) -> None:
        self._options = options
        self._stop = StopRequest()
        self._stop.install()
        self._condition = StateCondition()
        self._tasks = TaskInputs(options, protocol)
        self._logs = [_Log(subscription, destination) for subscription, destination in enumerate(options.destinations)]
        self._batches: dict[int, list[MessageRange]] = {}
        """End of a batch → its messages, until it is done."""
        self._repeats: set[int] = set()
        """Ends of batches that another link has received."""
        self._admission = BatchTrigger(options, time.monotonic, draining=False)
        self._draining = self._is_open = False
        self._end = self._received = self._reconnects = 0
        self._compared: set[LogReader | None] = set()
        """Links of which the first gap was compared with what the stream has deleted."""
        self._dialects: set[str] = set()
        self._server: str | None = None

    def initial_offset(self) -> dict[str, Any]:
        return {_SEQUENCE: 0, _POSITIONS: {}}

    def drain(self) -> None:
        self._draining = True
        self._admission = BatchTrigger(self._options, time.monotonic, draining=True)

    # --- the next batch ------------------------------------------------------------------------

    def latest_offset(self, start: dict[str, Any]) -> dict[str, Any]:
        """The end of the next batch. The batch that ends at ``start`` is in Spark's commit log."""
        sequence, positions = _parsed(start)
        self._end = sequence
        self._open(positions, patience=self._options.connection.reconnect_timeout if sequence else 0.0)
        self._release(sequence)
        pieces = self._next_pieces() if self._await_messages() else []
        if not pieces:
            return start
        self._admission.note_batch()
        begin, following = dict[str, int](), dict(positions)
        for piece in pieces:
            name = self._logs[piece.range_.subscription].name
            begin.setdefault(name, piece.offsets[piece.range_.first])
            following[name] = piece.next
        end = self._end = sequence + sum(len(piece.range_) for piece in pieces)
        self._batches[end] = [piece.range_ for piece in pieces]
        return {_SEQUENCE: end, _POSITIONS: following, _FROM: begin}

    def _open(self, positions: dict[str, int], *, patience: float) -> None:
        if self._is_open:
            return
        for log in self._logs:
            assert self._options.stream_offset is not None
            log.expected = positions.get(log.name)
            log.position = positions.get(log.name, self._options.stream_offset)
            if self._draining or log.position == "next":
                end = self._end_of(log, patience)
                log.target = end if self._draining else None
                log.position = end if log.position == "next" else log.position
            log.link = self._connect(log, patience)
        self._is_open = True

    def _end_of(self, log: _Log, patience: float) -> int:
        """The offset that the log's next message will have."""
        link = self._connect(log, patience, position="last", sql=False)
        try:
            taken = link.take_to_end()
        finally:
            link.close()
        return taken[-1][1][-1] + 1 if taken else 0

    def _connect(
        self,
        log: _Log,
        patience: float,
        *,
        position: Position | None = None,
        sql: bool = True,
        lost: JMSError | None = None,
    ) -> LogReader:
        options, begin = self._options, log.position if position is None else position
        window = max(1, options.window_bytes // len(self._logs))
        link = keep_trying(
            lambda: LogReader(
                options.connection,
                self._condition,
                Subscription(destination=log.destination, window_bytes=window),
                begin,
                options.stream_filter if sql else None,
            ),
            f"connecting to {log.name}",
            timeout=patience,
            failure=lost,
            pause=self._stop.pause,
        )
        try:
            options.selector_for(link.dialect)  # a stream gets none: refused here unless Spark evaluates it
        except JMSError:
            link.close()
            raise
        self._dialects.add(link.dialect.name)
        self._server = link.server
        return link

    def _await_messages(self) -> bool:
        """Return True when what waits is a batch, and False when nothing has come for a while."""
        self._admission.begin(None)
        while True:
            self._stop.check()
            self._receive()
            pieces = [piece for log in self._logs for piece in log.waiting]
            messages, size = sum(len(each.range_) for each in pieces), sum(each.range_.size for each in pieces)
            verdict = self._admission.verdict(Waiting(messages, size, no_room=False), self._received)
            if verdict in {BatchDecision.BATCH, BatchDecision.ASK}:
                return True
            if verdict is BatchDecision.NOTHING and self._has_nothing():
                return False
            self._condition.pause(_POLL_SECONDS)

    def _has_nothing(self) -> bool:
        """Nothing waits. With AvailableNow: and every log has been received up to the end that it had at the start."""
        if not self._draining:
            return self._admission.waited >= IDLE_SECONDS
        if not all(log.has_ended for log in self._logs) and self._admission.quiet >= self._options.idle_timeout:
            for log in self._logs:  # the last messages are filtered out, or were deleted
                assert log.link is not None
                if not log.has_ended and not (taken := log.link.take_to_end()):
                    log.target = 0
                elif not log.has_ended:
                    self._take(log, taken)
        return all(log.has_ended for log in self._logs) and not any(log.waiting for log in self._logs)

    def _receive(self) -> None:
        """What a lost connection had in flight comes again, because the position is behind it."""
        for log in self._logs:
            assert log.link is not None
            try:
                log.link.check()
                taken = log.link.take()
            except JMSError as error:
                if not error.transient:
                    raise
                self._reconnect(log, log.link, error)
            else:
                self._take(log, taken)

    def _take(self, log: _Log, taken: Taken) -> None:
        if log.has_gap(taken):
            self._require_kept(log)
        self._received += log.receive(taken)

    def _require_kept(self, log: _Log) -> None:
        """``DataLossError`` if the stream has deleted messages that were not read.

        Its offsets may have gaps, and streamFilter makes more of them. So the first message that the stream still has
        decides, and of a filtered stream only where a link begins: each gap would cost a connection.
        """
        expected = log.expected
        assert expected is not None
        if self._options.stream_filter is not None and log.link in self._compared:
            return
        self._compared = {each.link for each in self._logs if each.link in self._compared} | {log.link}
        first = self._first_of(log)
        if first is None or first <= expected:
            return
        lost = f"{expected:,} to {first - 1:,}"
        if self._options.fail_on_data_loss:
            raise DataLossError(
                f"{log.name} has deleted what was at its offsets {lost}, and the query had not read it.",
                "Raise max-age or max-length-bytes of the stream, or let the query run more often. With"
                " failOnDataLoss=false it goes on with the messages that are left.",
            )
        _log.warning("! %s has deleted what was at its offsets %s, and the query had not read it", log.name, lost)

    def _first_of(self, log: _Log) -> int | None:
        """The offset of the first message that the log still has; None if none comes within ``idleTimeout``."""
        link = self._connect(log, self._options.connection.reconnect_timeout, position="first", sql=False)
        try:
            until = time.monotonic() + self._options.idle_timeout
            while not (taken := link.take()) and time.monotonic() < until:
                link.check()
                self._condition.pause(_POLL_SECONDS)
        finally:
            link.close()
        return taken[0][1][0] if taken else None

    def _reconnect(self, log: _Log, link: LogReader, lost: JMSError) -> None:
        link.drop()
        log.link = self._connect(log, self._options.connection.reconnect_timeout, lost=lost)
        self._reconnects += 1
        _log.warning("= reconnected to %s", log.link.address)

    def _next_pieces(self) -> list[_Piece]:
        """What fits into a batch, from each log in turn."""
        size, messages = self._options.max_bytes, self._options.max_messages
        pieces: list[_Piece] = []
        for log in self._logs:
            while log.waiting:
                fits = log.waiting[0].range_.fit(size=size, messages=messages, at_least_one=not pieces)
                if not fits:
                    return pieces
                piece, rest = log.waiting.popleft().split(fits)
                pieces.append(piece)
                size -= piece.range_.size
                messages = None if messages is None else messages - fits
                if len(rest.range_):
                    log.waiting.appendleft(rest)
                    return pieces
        return pieces

    # --- what tasks read -----------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[TaskInput]:
        (first, _), (last, positions) = _parsed(start), _parsed(end)
        if first == last:
            return []
        ranges = self._batches.get(last)
        if ranges is None:
            ranges = self._batches[last] = self._repeated(dict(end.get(_FROM, {})), positions, last - first)
            self._repeats.add(last)
        memory = self._tasks.memory_for(last) if self._tasks.are_here() else None
        dialect = next(iter(self._dialects))
        origins = [(log.name, dialect) for log in self._logs]
        tasks = received_partitions(Batch(first, last, tuple(ranges)), origins, self._options.partition_bytes, memory)
        return self._tasks.of(tasks, self._dialects)

    def _repeated(self, begin: dict[str, int], positions: dict[str, int], count: int) -> list[MessageRange]:
        """The messages of a batch that an earlier process has received."""
        ranges: list[MessageRange] = []
        for log in self._logs:
            if log.name not in begin:
                continue
            link = self._connect(log, self._options.connection.reconnect_timeout, position=begin[log.name])
            try:
                ranges += self._range(link, log, begin[log.name], positions[log.name])
            finally:
                link.close()
        found = sum(map(len, ranges))
        if found != count and self._options.fail_on_data_loss:
            raise DataLossError(
                f"Spark's checkpoint needs a batch of {count:,} messages, of which the streams have {found:,}.",
                "Streams delete old messages (max-age, max-length-bytes), or streamFilter is another one than before."
                " With failOnDataLoss=false the batch has the messages that are left.",
            )
        return ranges

    def _range(self, link: LogReader, log: _Log, begin: int, end: int) -> Iterator[MessageRange]:
        following = begin
        while following < end:
            taken = link.take() or link.take_to_end()
            if not taken:
                return
            for block, offsets in taken:
                first = sum(each < begin for each in offsets)
                last = sum(each < end for each in offsets)
                if first < last:
                    yield MessageRange(log.subscription, block, first, last)
                following = offsets[-1] + 1

    # --- done batches and metrics --------------------------------------------------------------

    def _release(self, through: int) -> None:
        for end in [each for each in self._batches if each <= through]:
            for range_ in self._batches.pop(end):
                link = self._logs[range_.subscription].link
                if link is not None and not link.is_down and end not in self._repeats:
                    link.released(len(range_))
        self._tasks.release(through)

    def commit(self, end: dict[str, Any]) -> None:
        self._release(_parsed(end)[0])

    def progress(self) -> dict[str, object]:
        """In flight is what was received and is not in a finished batch."""
        in_flight = [range_ for ranges in self._batches.values() for range_ in ranges]
        in_flight += [piece.range_ for log in self._logs for piece in log.waiting]
        return {
            _SEQUENCE: self._end,
            "positions": {log.name: log.position for log in self._logs if isinstance(log.position, int)},
            "inFlightMessages": sum(map(len, in_flight)),
            "inFlightBytes": sum(range_.size for range_ in in_flight),
            "received": self._received,
            "reconnects": self._reconnects,
            "selectorDropped": self._tasks.dropped(),
            "guarantee": "exactly-once into Spark",
            "broker": self._server,
        }

    def stop(self) -> None:
        for log in self._logs:
            link, log.link = log.link, None
            if link is not None:
                link.close()
        self._tasks.close()


def _parsed(offset: dict[str, Any]) -> tuple[int, dict[str, int]]:
    try:
        return int(offset[_SEQUENCE]), {str(name): int(at) for name, at in offset[_POSITIONS].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise IllegalStateError(
            "The checkpoint holds an offset of another way to read.",
            "Option streamOffset cannot be added to or removed from a query: use a checkpointLocation of its own.",
        ) from None
