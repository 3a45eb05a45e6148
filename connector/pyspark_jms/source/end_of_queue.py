"""``EndOfQueue`` decides whether a silence is the end of a queue, for everybody who reads one, and ``Drain`` whether a
message was sent after the start of a run with AvailableNow, which reads no more than what was sent before.

A broker that collects its garbage is silent too, and sends more afterwards. So a silence ends a queue only when the
broker has answered a question in it, and has been silent since. What a question proves depends on the protocol:

- ``ping``: the broker answers, and had sent what it had so far. It may send more at once.
- ``probe`` over AMQP is a drain (AMQP 1.0, 2.6.7): the queue has no message for this link.
- ``probe`` over STOMP is a receipt, which may overtake messages, so ``settle`` seconds follow it.
- A browse cannot be asked. Some brokers mark its end (``blocks_until``). Of the others a new connection is the
  question, and where management tells how many messages the queue has, they are counted (``CountedQueue``).
"""

import logging
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import ConnectionLostError, JMSError, ReceiptTimeoutError
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.source.links import MessageSource, SourceLink

__all__ = [
    "LONGEST_MS",
    "CountedQueue",
    "Drain",
    "EndOfQueue",
    "blocks_until",
    "end_of_look",
    "end_of_reading",
    "was_sent_later",
]

_SETTLE_SECONDS = 0.25
"""Still quiet this long after the receipt of a ``probe``: the queue is empty."""

_MAX_QUESTIONS = 12
"""A browse ends when a broker that sends heart-beats has let nobody in for so many questions."""


class _Asked(Protocol):
    def check(self) -> None: ...

    def has_receipt(self, receipt: str, *, wait: bool = False) -> bool: ...


L = TypeVar("L", bound=_Asked)


class EndOfQueue(Generic[L]):
    """A link has at most one question without an answer, and forgets it with its connection."""

    def __init__(
        self,
        ask: Callable[[L], str],
        *,
        idle: float = 0.0,
        settle: float = 0.0,
        lost: Callable[[L, JMSError], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``idle``: seconds of silence before a question, ``settle``: after its answer. A ``probe`` needs such a time,
        because a message that arrives answers it, too. ``lost`` is called with what ended a link while it was asked,
        or that it did not answer; without it, such a link proves nothing, and is left to the caller.
        """
        self._ask, self._idle, self._settle, self._lost, self._clock = ask, idle, settle, lost, clock
        self._received: Hashable = None
        self._quiet_since, self._asks = clock(), False
        self._answered_at: float | None = None
        self._asked: WeakKeyDictionary[L, tuple[str, Hashable]] = WeakKeyDictionary()
        """The receipt, and what had been received when it was requested."""
        self._answers: WeakKeyDictionary[L, Hashable] = WeakKeyDictionary()

    def is_reached(
        self, links: Sequence[L], received: Hashable, *, quiet: float | None = None, wait: bool = False
    ) -> bool:
        """Call it again and again. ``received`` changes whenever a message arrives. ``quiet``: seconds since anything
        did, also a part of a message, if the caller knows that.

        A broker that gives no sign of life never proves an end. With ``wait``, wait for the answers, or raise
        ``ReceiptTimeoutError``. Without links, the silence is the end.
        """
        now = self._clock()
        if received != self._received:
            self._received, self._quiet_since, self._asks = received, now, False
        self._asks = self._asks or (now - self._quiet_since if quiet is None else quiet) >= self._idle
        if not self._asks or not self._have_answered(links, received, wait=wait):
            self._answered_at = None  # a connection that was replaced has yet to be quiet, too
            return False
        if self._answered_at is None:
            self._answered_at = self._clock()
        return self._clock() - self._answered_at >= self._settle

    def _have_answered(self, links: Sequence[L], received: Hashable, *, wait: bool) -> bool:
        for link in links:
            try:
                self._look(link, received, wait=wait)
            except JMSError as error:
                if not error.transient or (self._lost is None and isinstance(error, ReceiptTimeoutError)):
                    raise
                if self._lost is not None:
                    self._lost(link, error)
                return False
        return all(self._answers.get(link) == received for link in links)

    def _look(self, link: L, received: Hashable, *, wait: bool) -> None:
        if link in self._asked:
            asked, was_received = self._asked[link]
            if not link.has_receipt(asked, wait=wait):
                link.check()  # a connection that has ended never answers
                return
            del self._asked[link]
            self._answers[link] = was_received
        if self._answers.get(link) != received:
            self._asked[link] = self._ask(link), received


def end_of_reading(
    idle: float, *, settle: float = _SETTLE_SECONDS, lost: Callable[[SourceLink, JMSError], None] | None = None
) -> EndOfQueue[SourceLink]:
    """Make what asks a consumer, ``idle`` seconds after the last message."""
    return EndOfQueue[SourceLink](lambda link: link.probe(), idle=idle, settle=settle, lost=lost)


# --- a read that keeps nothing ----------------------------------------------------------------------


def blocks_until(link: SourceLink, condition: StateCondition, is_end: Callable[[int], bool]) -> Iterator[MessageBlock]:
    """Yield what comes to a subscription, until the mark of a browse's end, or ``is_end`` after so many messages."""
    browses, come = link.subscription.browse, 0
    while True:
        blocks, is_marked = _take_browsed(link) if browses else (link.take(), False)
        for block in blocks:
            yield block
            come += len(block)
            if browses:
                link.shown(block)
        if is_marked or is_end(come):
            return
        if browses or not blocks:  # after a block of a move, the next one may be there already
            try:
                link.check()
            except ConnectionLostError as error:
                raise ConnectionLostError(error.fact, f"{error.remedy} {link.dialect.silent_end}".rstrip()) from None
            condition.pause()


def _take_browsed(link: SourceLink) -> tuple[Sequence[MessageBlock], bool]:
    """The messages of a browse received since the last call, and whether the broker has marked the end of the browse.

    Over AMQP no broker marks it, and a drain after the end would start the browse again (Artemis).
    """
    blocks, mark = list(link.take()), link.dialect.browse_end_id
    if not (mark and blocks and blocks[-1].ids[-1] == mark):
        return blocks, False
    last = blocks.pop()
    if len(last) > 1:
        blocks.append(replace(last.slice(0, len(last) - 1), ids=last.ids[:-1]))
    return blocks, True


class CountedQueue:
    """How many messages the queue had, as management tells it."""

    def __init__(self, had: int | None, count: Callable[[], int | None]) -> None:
        """``had``: at the start. ``count``: how many now, or None if nobody tells."""
        self.had = had
        self._count = count
        self._ends_at: int | None = None
        """How many messages the queue had when as many had been shown as it had at the start."""

    def not_shown(self, shown: int) -> int:
        """Return how many are left of those that it had."""
        return 0 if self.had is None else max(0, self.had - shown)

    def has_shown_all(self, shown: int) -> bool:
        """Return whether a read of the whole queue has shown as many messages as the queue had.

        Artemis confirms a transaction before it has counted the messages of it. So the number is read once more when
        the read has shown what the queue had at the start.
        """
        if self.had is None or shown < self.had:
            return False
        if self._ends_at is None:
            self._ends_at = self._count() or 0
        return shown >= self._ends_at


class _OtherConnection:
    """The question for a browse: whether the broker lets another connection in."""

    def __init__(self, connect: Callable[[], SourceLink], every: float) -> None:
        self._connect, self._every = connect, every
        self._questions, self._asked_at = 0, time.monotonic() - every

    def ask(self) -> str:
        return ""

    def check(self) -> None:
        """Each question has a connection of its own, and none has ended."""

    def has_receipt(self, receipt: str, *, wait: bool = False) -> bool:
        del receipt, wait
        if time.monotonic() - self._asked_at < self._every:
            return False
        self._questions, self._asked_at = self._questions + 1, time.monotonic()
        try:
            self._connect().close()
        except JMSError as error:
            if not error.transient:
                raise
            return self._questions == _MAX_QUESTIONS
        self._questions = 0
        return True


def end_of_look(
    link: SourceLink, connect: Callable[[], SourceLink], idle: float, *, misses: bool
) -> Callable[[Hashable], bool]:
    """Return what tells, of what has been shown, whether that is all.

    ``connect`` makes another connection. ``misses``: there may well be more, as management has counted at the start, so
    the silence after the answer is as long as the one before.
    """
    settle = idle if misses else _SETTLE_SECONDS
    if not (link.subscription.browse and link.dialect.browses):
        consumed = end_of_reading(idle, settle=settle)
        return lambda shown: consumed.is_reached([link], (shown, link.waiting()), wait=True)
    other = _OtherConnection(connect, idle)
    browsed = EndOfQueue[_OtherConnection](lambda each: each.ask(), idle=idle, settle=settle)
    return lambda shown: browsed.is_reached([other], shown)


# --- AvailableNow ---------------------------------------------------------------------------------

_log = logging.getLogger("pyspark_jms.source")

_CLOCKS_DIFFER_MS = 1_000
"""A timestamp so long after the start ends the reading, one so long after now is ignored: there are two clocks."""

LONGEST_MS = 600_000
"""A subscription ends at the first message without a usable timestamp that is read so long after the start.

Such messages do not show whether they were sent before the start. A producer that goes on sending them would keep the
run open for ever. What is left waits for the next run.
"""


@dataclass(slots=True)
class Drain:
    started_ms: float | None
    """When the run began; None without AvailableNow: the query goes on until it is stopped."""
    ended: set[int] = field(default_factory=set)
    """Subscriptions that have shown a later message, or nothing more."""

    def sent_before_start(self, subscription: int, link: MessageSource, block: MessageBlock, *, now_ms: float) -> int:
        """Return how many of the block's messages were sent before the start. The first later one ends the
        subscription.

        A message from the future (a producer's clock that is wrong, or a test with a fixed time) ends nothing. What
        was sent since the start is given back at the end, when the query unsubscribes.
        """
        if self.started_ms is None:
            return len(block)
        if subscription in self.ended:
            return 0
        for index in range(len(block)):
            if self._is_later(self.started_ms, link.sent_ms(block, index), subscription, now_ms):
                self.ended.add(subscription)
                return index
        return len(block)

    @staticmethod
    def _is_later(started_ms: float, sent_ms: int | None, subscription: int, now_ms: float) -> bool:
        later = was_sent_later(sent_ms, started_ms=started_ms, now_ms=now_ms)
        if later is not None:
            return later
        if now_ms - started_ms >= LONGEST_MS:
            _log.warning(
                "! AvailableNow ends the reading of subscription %d after %d minutes: its messages have no timestamp,"
                " or one in the future, so nothing shows what was sent before the start. The next run reads the rest",
                subscription,
                LONGEST_MS // 60_000,
            )
            return True
        return False


def was_sent_later(sent_ms: int | None, *, started_ms: float, now_ms: float) -> bool | None:
    """Return whether a message was sent after the start, or None if it has no timestamp, or one in the future."""
    if sent_ms is None or sent_ms > max(started_ms, now_ms) + _CLOCKS_DIFFER_MS:
        return None
    return sent_ms > started_ms + _CLOCKS_DIFFER_MS
