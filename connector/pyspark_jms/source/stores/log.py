"""Messages that stay where they are: logs, queues that keep what was read and number it (streams of RabbitMQ).

The offset has the next number of each log, a digest of the message before it, and where the batch began.
So Spark's checkpoint says what was read, nothing is acknowledged, and a batch that Spark repeats has the same messages:
exactly-once into Spark. The digest shows whether a stream was deleted and declared again: RabbitMQ (4.3) gives a stream
no identity that a client can read.
"""

import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark_jms.amqp.link.log_reader import LogReader, digest_of
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.message_range import Batch, MessageRange
from pyspark_jms.errors import DataLossError, IllegalStateError, JMSError
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.source.admission import IDLE_SECONDS, BatchDecision, BatchTrigger, Waiting
from pyspark_jms.source.end_of_queue import EndOfQueue
from pyspark_jms.source.query import Run
from pyspark_jms.source.stores.received import received_partitions
from pyspark_jms.source.task_inputs import TaskInput, TaskInputs

__all__ = ["LogStore"]

_log = logging.getLogger("pyspark_jms.source")
_POLL_SECONDS = 0.05
_SEQUENCE, _POSITIONS, _READ, _FROM = "seq", "positions", "read", "from"

Position = str | int | datetime
"""An offset, a time, ``first``, or ``last`` for the last messages."""
Taken = Sequence[tuple[MessageBlock, Sequence[int]]]


@dataclass(frozen=True, slots=True)
class _Known:
    """A message of a log that was received: its offset, and a digest of it."""

    offset: int
    digest: str

    @classmethod
    def last_of(cls, block: MessageBlock, offsets: Sequence[int]) -> "_Known":
        return cls(offsets[-1], digest_of(block, len(block) - 1))


@dataclass(slots=True)
class _Piece:
    """Messages of one block, and the offset of each message of the block."""

    range_: MessageRange
    offsets: Sequence[int]

    @property
    def last(self) -> "_Known":
        at = self.range_.last - 1
        return _Known(self.offsets[at], digest_of(self.range_.block, at))

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
        self.position = 0
        """Where a new link begins."""
        self.read: str | None = None
        """The digest of the message before the position, if it was received."""
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
            self.go_behind(_Known.last_of(block, offsets))
            self.expected = self.position
        return come

    def go_behind(self, last: _Known | None) -> None:
        self.position, self.read = (0, None) if last is None else (last.offset + 1, last.digest)

    def has_gap(self, taken: Taken) -> bool:
        """Return whether messages between those that were received and these may have been deleted or are none."""
        return self.expected is not None and bool(taken) and taken[0][1][0] > self.expected

    @property
    def has_ended(self) -> bool:
        """Return whether a run with AvailableNow has received everything."""
        return self.target == 0 or self.position >= (self.target or 1 << 62)


class LogStore:
    """The ``source.query.Store``. Offsets count messages."""

    needs_commits = None
    passes_driver = True

    def __init__(self, run: Run) -> None:
        self._run, self._stop = run, run.stop
        self._options = options = run.reading.options
        self._condition = StateCondition()
        self.reports = self._tasks = TaskInputs(options)
        self._logs = [_Log(subscription, destination) for subscription, destination in enumerate(options.destinations)]
        self._batches: dict[int, list[MessageRange]] = {}
        """End of a batch → its messages, until it is done."""
        self._repeats: set[int] = set()
        """Ends of batches that another link has received."""
        self._admission = BatchTrigger(options, time.monotonic)
        self._silence = EndOfQueue[LogReader](
            lambda link: link.probe(), idle=options.idle_timeout, settle=_POLL_SECONDS
        )
        self._opened: dict[str, Any] | None = None
        """The offset with which this run began."""
        self._begin: tuple[dict[str, int], dict[str, str]] = ({}, {})
        """Where it began: the positions, and the digests of the messages before them."""
        self._end = self._received = self._reconnects = 0
        self._compared: set[LogReader | None] = set()
        """Links of which the first gap was compared with what the stream has deleted."""
        self._dialects: set[str] = set()
        self._server: str | None = None

    def first_offset(self) -> dict[str, Any]:
        return {_SEQUENCE: 0, _POSITIONS: {}}

    def count(self, offset: dict[str, Any]) -> int:
        return _parsed(offset)[0]

    @property
    def _draining(self) -> bool:
        return self._run.drain_since_ms is not None

    def is_full(self) -> bool:
        return False

    # --- the next batch ------------------------------------------------------------------------

    def next(self, start: dict[str, Any]) -> dict[str, Any]:
        """Return the end of the next batch.

        Without messages, an offset that differs from ``start`` makes an empty batch: so the checkpoint gets a number
        for each log before the first message, and a restart does not ask again what ``next`` is.
        """
        sequence, positions = _parsed(start)
        self._end, read = sequence, _digests(start)
        pieces = self._next_pieces() if self._await_messages() else []
        if start == self._opened:
            positions, read = dict(self._begin[0]), dict(self._begin[1])
        begin, last = dict[str, int](), dict[str, _Piece]()
        for piece in pieces:
            name = self._logs[piece.range_.subscription].name
            begin.setdefault(name, piece.offsets[piece.range_.first])
            last[name] = piece
        for name, known in ((name, piece.last) for name, piece in last.items()):
            positions[name], read[name] = known.offset + 1, known.digest
        if not pieces and (positions, read) == (_parsed(start)[1], _digests(start)):
            return start
        if pieces:
            self._admission.note_batch()
            self._end = sequence + sum(len(piece.range_) for piece in pieces)
            self._batches[self._end] = [piece.range_ for piece in pieces]
        return {_SEQUENCE: self._end, _POSITIONS: positions, _READ: read, _FROM: begin}

    def open(self, start: dict[str, Any]) -> None:
        if self._opened is not None:
            return
        (_, positions), read = _parsed(start), _digests(start)
        patience = self._options.connection.reconnect_timeout if positions else 0.0
        for log in self._logs:
            log.expected = positions.get(log.name)
            if log.expected is None:
                assert self._options.stream_offset is not None
                self._begin_at(log, self._options.stream_offset, patience)
            else:
                log.position, log.read = log.expected, read.get(log.name)
                self._require_same(log, patience)
            if self._draining:
                last = self._last_of(log, patience)
                log.target = 0 if last is None else last.offset + 1
            log.link = self._connect(log, patience)
            positions[log.name] = log.position
            read |= {} if log.read is None else {log.name: log.read}
        self._opened, self._begin = start, (positions, read)

    def _begin_at(self, log: _Log, option: Position, patience: float) -> None:
        """Turn what ``option`` says into the number of a message, or of the one that is sent next."""
        before: _Known | None = None
        while True:
            found = None if option == "next" else self._first_of(log, option, patience)
            if found is not None:
                log.position, log.read, log.expected = found.offset, None, found.offset
                return
            last = self._last_of(log, patience)
            if option == "next" or last == before:  # else a message may have come after the first look
                break
            before = last
        log.go_behind(last)
        if isinstance(option, int) and option > log.position:
            self._lose(
                f"{log.name} ends before offset {option:,}, at which streamOffset begins.",
                "Give the offset of a message that the stream has, first or next.",
            )
            self._begin_at(log, "first", patience)

    def _require_same(self, log: _Log, patience: float, lost: JMSError | None = None) -> None:
        """``DataLossError`` unless the log is the one that was read up to the position.

        A stream that was deleted and declared again begins at 0. A replica that follows late has what is missing soon.
        """
        at, until = log.position, time.monotonic() + self._options.idle_timeout
        if not at:
            return
        while (last := self._last_of(log, patience, through=at, lost=lost)) is None or last.offset < at - 1:
            if time.monotonic() >= until:
                fact = f"{log.name} ends before offset {at:,}, up to which the query has read it."
                break
            self._stop.check()
            self._condition.pause(_POLL_SECONDS)
        else:
            known = last if last.offset == at - 1 else self._first_of(log, at - 1, patience)
            if log.read is None or known is None or known.offset != at - 1 or known.digest == log.read:
                return
            fact = f"{log.name} has another message at offset {at - 1:,} than the query has read there."
        self._lose(
            fact,
            "The stream was deleted and declared again, or restored from an older copy. With failOnDataLoss=false the"
            " query reads it from its first message.",
        )
        self._begin_at(log, "first", patience)

    def _lose(self, fact: str, remedy: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLossError(fact, remedy)
        _log.warning("! %s The query goes on with the stream's first message", fact)

    def _last_of(
        self, log: _Log, patience: float, *, through: int | None = None, lost: JMSError | None = None
    ) -> _Known | None:
        """The log's last message, or one from ``through`` on."""
        link = self._connect(log, patience, position="last", sql=False, lost=lost)
        try:
            taken = link.take_to_end(through)
        finally:
            link.close()
        return _Known.last_of(*taken[-1]) if taken else None

    def _first_of(self, log: _Log, position: Position, patience: float) -> _Known | None:
        """The first message that the log has from there on."""
        link = self._connect(log, patience, position=position, sql=False)
        try:
            taken = link.take_to_end(through=0)
        finally:
            link.close()
        return _Known(taken[0][1][0], digest_of(taken[0][0], 0)) if taken else None

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
            seen=patience > 0,
            once_lost=options.connection.reconnect_timeout,
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
        unended = [log for log in self._logs if not log.has_ended]
        links = [log.link for log in unended if log.link is not None]
        if unended and self._silence.is_reached(links, self._received):
            for log in unended:
                log.target = 0  # the last messages are filtered out, or were deleted
        return all(log.has_ended for log in self._logs) and not any(log.waiting for log in self._logs)

    def _receive(self) -> None:
        """Receive. What a lost connection had in flight comes again, because the position is behind it."""
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
        first = self._first_of(log, "first", self._options.connection.reconnect_timeout)
        if first is None or first.offset <= expected:
            return
        lost = f"{expected:,} to {first.offset - 1:,}"
        if self._options.fail_on_data_loss:
            raise DataLossError(
                f"{log.name} has deleted what was at its offsets {lost}, and the query had not read it.",
                "Raise max-age or max-length-bytes of the stream, or let the query run more often. With"
                " failOnDataLoss=false it goes on with the messages that are left.",
            )
        _log.warning("! %s has deleted what was at its offsets %s, and the query had not read it", log.name, lost)

    def _reconnect(self, log: _Log, link: LogReader, lost: JMSError) -> None:
        link.drop()
        patience = self._options.connection.reconnect_timeout
        self._require_same(log, patience, lost)
        log.link = self._connect(log, patience, lost=lost)
        self._reconnects += 1
        _log.warning("= reconnected to %s", log.link.address)

    def _next_pieces(self) -> list[_Piece]:
        """Return what fits into a batch, from each log in turn."""
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

    def tasks(self, start: dict[str, Any], end: dict[str, Any]) -> list[TaskInput]:
        first, (last, positions) = self.count(start), _parsed(end)
        ranges = self._batches.get(last)
        if ranges is None:
            ranges = self._batches[last] = self._repeated(end, positions, last - first)
            self._repeats.add(last)
        memory = self._tasks.memory_for(last) if self._tasks.are_here() else None
        dialect = next(iter(self._dialects))
        origins = [(log.name, dialect) for log in self._logs]
        tasks = received_partitions(Batch(first, last, tuple(ranges)), origins, self._options.partition_bytes, memory)
        return self._tasks.of(tasks, self._dialects)

    def _repeated(self, batch: dict[str, Any], positions: dict[str, int], count: int) -> list[MessageRange]:
        """The messages of a batch that an earlier process has received."""
        ranges: list[MessageRange] = []
        begin, read, others = dict[str, int](batch.get(_FROM, {})), _digests(batch), False
        for log in self._logs:
            if log.name not in begin:
                continue
            link = self._connect(log, self._options.connection.reconnect_timeout, position=begin[log.name])
            try:
                found = list(self._range(link, log, begin[log.name], positions[log.name]))
            finally:
                link.close()
            ranges += found
            if found and log.name in read:
                others |= digest_of(found[-1].block, found[-1].last - 1) != read[log.name]
        have = sum(map(len, ranges))
        if (have != count or others) and self._options.fail_on_data_loss:
            raise DataLossError(
                f"Spark's checkpoint needs a batch of {count:,} messages, of which the streams have"
                f" {'others' if others else f'{have:,}'}.",
                "Streams delete old messages (max-age, max-length-bytes), a stream was deleted and declared again, or"
                " streamFilter is another one than before. With failOnDataLoss=false the batch has the messages that"
                " are left.",
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

    def release(self, through: int) -> None:
        for end in [each for each in self._batches if each <= through]:
            for range_ in self._batches.pop(end):
                link = self._logs[range_.subscription].link
                if link is not None and not link.is_down and end not in self._repeats:
                    link.released(len(range_))
        self._tasks.release(through)

    def received(self) -> int:
        return self._received

    def in_flight(self) -> None:
        """Return nothing, because a stream has no messages in flight."""

    def watches(self) -> bool:
        """RabbitMQ has no management over AMQP that a client could ask for the counts of a stream."""
        return False

    def metrics(self, watched: Mapping[str, int | str]) -> dict[str, object]:
        """Return the metrics. What was received and is not in a finished batch is in flight."""
        del watched
        in_flight = [range_ for ranges in self._batches.values() for range_ in ranges]
        in_flight += [piece.range_ for log in self._logs for piece in log.waiting]
        return {
            _SEQUENCE: self._end,
            "positions": {log.name: log.position for log in self._logs},
            "inFlightMessages": sum(map(len, in_flight)),
            "inFlightBytes": sum(range_.size for range_ in in_flight),
            "received": self._received,
            "reconnects": self._reconnects,
            "guarantee": "exactly-once into Spark",
            "broker": self._server,
        }

    def close(self) -> None:
        for log in self._logs:
            link, log.link = log.link, None
            if link is not None:
                link.close()


def _digests(offset: dict[str, Any]) -> dict[str, str]:
    """Return the digest of the last message that was read of each log, if there is one."""
    return dict(offset.get(_READ, {}))


def _parsed(offset: dict[str, Any]) -> tuple[int, dict[str, int]]:
    try:
        return int(offset[_SEQUENCE]), {str(name): int(at) for name, at in offset[_POSITIONS].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise IllegalStateError(
            "The checkpoint holds an offset of another way to read.",
            "Option streamOffset cannot be added to or removed from a query: use a checkpointLocation of its own, and"
            " a new output folder for Spark's file sink.",
        ) from None
