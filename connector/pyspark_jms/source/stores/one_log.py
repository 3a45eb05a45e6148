"""One log that a query reads: its link, the message that comes next, and whether it is still the log that was read."""

import contextlib
import logging
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from pyspark_jms.amqp.link.log_reader import LogReader, digest_of
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.message_range import Backlog, MessageRange
from pyspark_jms.errors import DataLossError, JMSError
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import StateCondition, closed_on
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.stopping import StopRequest

__all__ = ["Log", "Piece"]

_log = logging.getLogger("pyspark_jms.source")
_NO_END = 1 << 62

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
class Piece(MessageRange):
    offsets: Sequence[int] = ()
    """The offset of each message of the block."""

    @property
    def last_message(self) -> _Known:
        return _Known(self.offsets[self.last - 1], digest_of(self.block, self.last - 1))


class Log:
    """``open`` it; then ``receive``: what came and is not in a batch is in ``waiting``."""

    def __init__(self, subscription: int, options: SourceOptions, condition: StateCondition, stop: StopRequest) -> None:
        self._subscription, self._options = subscription, options
        self._condition, self._stop = condition, stop
        self.destination: Destination = options.destinations[subscription]
        self.name = str(self.destination)
        self.link: LogReader | None = None
        self.waiting = Backlog[Piece]()
        self.position = 0
        """Where a new link begins."""
        self.read: str | None = None
        """The digest of the message before the position, if it was received."""
        self.expected: int | None = None
        """The offset of the next message, if the stream has deleted nothing; None before the first message."""
        self.target = _NO_END
        """With AvailableNow: the first offset that this run does not read."""
        self.dialect = ""
        """The broker's, once connected."""
        self.server: str | None = None
        self.reconnects = 0
        self._compared: LogReader | None = None
        """The link of which the first gap was compared with what the stream has deleted."""

    def open(self, position: int | None, read: str | None, *, patience: float, drain: bool) -> None:
        """Connect. ``position`` and ``read`` are those of the checkpoint, None where it does not know the log."""
        self.expected = position
        if position is None:
            assert self._options.stream_offset is not None
            self._begin_at(self._options.stream_offset, patience)
        else:
            self.position, self.read = position, read
            self._require_same(patience)
        if drain:
            last = self._last(patience)
            self.target = 0 if last is None else last.offset + 1
        self.link = self._connect(patience)

    def close(self) -> None:
        link, self.link = self.link, None
        if link is not None:
            link.close()

    # --- receiving -----------------------------------------------------------------------------

    def receive(self) -> int:
        """Return how many messages came. What a lost connection had in flight comes again: the position is behind it"""
        assert self.link is not None
        try:
            self.link.check()
            taken = self.link.take()
        except JMSError as error:
            if not error.transient:
                raise
            self._reconnect(self.link, error)
            return 0
        gap = self.gap_in(taken)
        if gap is not None:
            self._require_kept(gap)
        return self.keep(taken)

    def keep(self, taken: Taken) -> int:
        """Keep what came, without what is beyond the target. Return how many came."""
        for piece in self._pieces(taken, 0, self.target):
            self.waiting.add(piece)
        if taken:
            self._go_behind(_Known.last_of(*taken[-1]))
            self.expected = self.position
        return sum(len(block) for block, _ in taken)

    def _pieces(self, taken: Taken, begin: int, end: int) -> Iterator[Piece]:
        """The messages with offsets from ``begin`` to ``end`` (not included)."""
        for block, offsets in taken:
            first, last = (bisect_left(offsets, each) for each in (begin, end))
            if first < last:
                yield Piece(self._subscription, block, first, last, offsets=offsets)

    def _go_behind(self, last: _Known | None) -> None:
        self.position, self.read = (0, None) if last is None else (last.offset + 1, last.digest)

    def gap_in(self, taken: Taken) -> range | None:
        """Return the first offsets before or between these that were not received: deleted messages, or none.

        One reception may have what came before and after the stream deleted the segment that was to come. The offsets
        of a link grow, so a block without a gap is known by its first and last one.
        """
        following = self.expected
        for _, offsets in taken:
            begin = offsets[0] if following is None else min(following, offsets[0])
            if offsets[-1] - begin >= len(offsets):
                return next(range(a + 1, b) for a, b in pairwise((begin - 1, *offsets)) if b > a + 1)
            following = offsets[-1] + 1
        return None

    @property
    def has_ended(self) -> bool:
        """Return whether a run with AvailableNow has received everything."""
        return self.position >= self.target

    def between(self, begin: int, end: int) -> list[Piece]:
        """Return the messages with these offsets again, those of a batch that an earlier process has received."""
        with contextlib.closing(self._connect(self._options.connection.reconnect_timeout, position=begin)) as link:
            return list(self._pieces(link.take_to_end(end - 1), begin, end))

    # --- where it begins -----------------------------------------------------------------------

    def _begin_at(self, option: Position, patience: float) -> None:
        """Turn what ``option`` says into the number of a message, or of the one that is sent next."""
        before: _Known | None = None
        while True:
            found = None if option == "next" else self._first(option, patience)
            if found is not None:
                self.position, self.read, self.expected = found.offset, None, found.offset
                return
            last = self._last(patience)
            if option == "next" or last == before:  # else a message may have come after the first look
                break
            before = last
        self._go_behind(last)
        if isinstance(option, int) and option > self.position:
            self._lose(
                f"{self.name} ends before offset {option:,}, at which streamOffset begins.",
                "Give the offset of a message that the stream has, first or next.",
            )
            self._begin_at("first", patience)

    # --- whether it is the log that was read ---------------------------------------------------

    def _require_same(self, patience: float, lost: JMSError | None = None) -> None:
        """``DataLossError`` unless the log is the one that was read up to the position.

        A stream that was deleted and declared again begins at 0. A replica that follows late has what is missing soon.
        """
        at, until = self.position, time.monotonic() + self._options.idle_timeout
        if not at:
            return
        while (last := self._last(patience, through=at, lost=lost)) is None or last.offset < at - 1:
            if time.monotonic() >= until:
                fact = f"{self.name} ends before offset {at:,}, up to which the query has read it."
                break
            self._stop.check()
            self._condition.pause()
        else:
            known = last if last.offset == at - 1 else self._first(at - 1, patience)
            if self.read is None or known is None or known.offset != at - 1 or known.digest == self.read:
                return
            fact = f"{self.name} has another message at offset {at - 1:,} than the query has read there."
        self._lose(
            fact,
            "The stream was deleted and declared again, or restored from an older copy. With failOnDataLoss=false the"
            " query reads it from its first message.",
        )
        self._begin_at("first", patience)

    def _require_kept(self, gap: range) -> None:
        """``DataLossError`` if the stream has deleted messages that were not read.

        Its offsets may have gaps, and streamFilter makes more of them. So the first message that the stream still has
        decides, and of a filtered stream only where a link begins: each gap would cost a connection.
        """
        if self._options.stream_filter is not None and self.link is self._compared:
            return
        self._compared = self.link
        first = self._first("first", self._options.connection.reconnect_timeout)
        if first is None or first.offset <= gap.start:
            return
        lost = f"{gap.start:,} to {min(first.offset, gap.stop) - 1:,}"
        if self._options.fail_on_data_loss:
            raise DataLossError(
                f"{self.name} has deleted what was at its offsets {lost}, and the query had not read it.",
                "Raise max-age or max-length-bytes of the stream, or let the query run more often. With"
                " failOnDataLoss=false it goes on with the messages that are left.",
            )
        _log.warning("! %s has deleted what was at its offsets %s, and the query had not read it", self.name, lost)

    def _lose(self, fact: str, remedy: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLossError(fact, remedy)
        _log.warning("! %s The query goes on with the stream's first message", fact)

    # --- its links -----------------------------------------------------------------------------

    def _last(self, patience: float, *, through: int | None = None, lost: JMSError | None = None) -> _Known | None:
        """The log's last message, or one from ``through`` on."""
        taken = self._look("last", patience, through, lost)
        return _Known.last_of(*taken[-1]) if taken else None

    def _first(self, position: Position, patience: float) -> _Known | None:
        """The first message that the log has from there on."""
        taken = self._look(position, patience, through=0)
        return _Known(taken[0][1][0], digest_of(taken[0][0], 0)) if taken else None

    def _look(self, position: Position, patience: float, through: int | None, lost: JMSError | None = None) -> Taken:
        with contextlib.closing(self._connect(patience, position=position, sql=False, lost=lost)) as link:
            return link.take_to_end(through)

    def _connect(
        self, patience: float, *, position: Position | None = None, sql: bool = True, lost: JMSError | None = None
    ) -> LogReader:
        options, begin = self._options, self.position if position is None else position
        window = max(1, options.window_bytes // len(options.destinations))
        link = keep_trying(
            lambda: LogReader(
                options.connection,
                self._condition,
                Subscription(destination=self.destination, window_bytes=window),
                begin,
                options.stream_filter if sql else None,
            ),
            f"connecting to {self.name}",
            timeout=patience,
            failure=lost,
            seen=patience > 0,
            once_lost=options.connection.reconnect_timeout,
            pause=self._stop.pause,
        )
        with closed_on(JMSError, link.close):
            options.selector_for(link.dialect)  # a stream gets none: refused here unless Spark evaluates it
        self.dialect, self.server = link.dialect.name, link.server
        return link

    def _reconnect(self, link: LogReader, lost: JMSError) -> None:
        link.drop()
        patience = self._options.connection.reconnect_timeout
        self._require_same(patience, lost)
        self.link = self._connect(patience, lost=lost)
        self.reconnects += 1
        _log.warning("= reconnected to %s", self.link.address)
