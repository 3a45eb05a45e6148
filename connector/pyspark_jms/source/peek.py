"""A batch read: subscribe, receive copies of the messages, unsubscribe. Nothing is removed.

A batch read has no commit after which messages could be acknowledged, so it acknowledges none. A broker that can browse
shows the whole queue, a window at a time, and other consumers get the messages meanwhile. From another broker the read
receives messages, up to a limit, and gives them back without spending a delivery attempt; other consumers do not see
them until then.
"""

import contextlib
import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from pyspark_jms.blocks.block import MessageBlock, PartitionSlice
from pyspark_jms.columns.schema import WantedColumns
from pyspark_jms.delivery.message_range import Bounds, MessageRange
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription, both_selectors
from pyspark_jms.management.queue_facts import QueueFacts
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.source.end_of_queue import LONGEST_MS, CountedQueue, blocks_until, end_of_look, was_sent_later
from pyspark_jms.source.links import Reading, SourceLink
from pyspark_jms.source.task_inputs import rows_of

__all__ = ["peek"]

_log = logging.getLogger("pyspark_jms.source")
_DEFAULT_MESSAGES, _DEFAULT_BYTES = 10_000, 64 << 20
_WINDOW_PER_SIZE = 2
"""The bounds of the read end it, not the prefetch window: Artemis counts the bytes of a CORE text twice."""
_BROWSE_MESSAGES = 1 << 15
"""How many messages of a browse are kept at most, two full blocks: of small ones the window of bytes holds a million,
and each takes a hundred bytes beside its own.
"""

_PAGE, _SMALL_PAGE = 200, 50
"""ActiveMQ Classic loads messages for a browse in pages of maxPageSize, by default 200, and tests its memory after each
(6.3.1): of a smaller number, only that of full small pages may be too few.
"""


def peek(reading: Reading, *, limits: str | None = "maxMessagesPerTrigger and maxBytesPerTrigger") -> Iterator[Any]:
    """Yield RecordBatches: at most ``maxMessagesPerTrigger`` messages and ``maxBytesPerTrigger`` bytes.

    The read ends sooner if nothing comes for ``idleTimeout``. Without both options, it shows all messages that a queue
    had at the start, where the broker can browse them. A queue that does not exist is left out, because a subscription
    would create it. The log has a warning for such a queue, and for a queue with more messages than the read shows:
    ``limits`` names what the user can raise. If it is None, nothing is logged.
    """
    options = reading.options
    found = reading.look_up([each.name for each in options.destinations])
    limited = Bounds(options.max_messages or _DEFAULT_MESSAGES, options.peek_bytes or _DEFAULT_BYTES)
    shown = 0
    for destination in options.destinations:
        queue = found.get(destination.name)
        if queue is not None and not queue.exists:
            if limits is not None:
                _log.warning(
                    "! queue %s does not exist on the broker, so the read shows no messages of it. Compare the name"
                    " with the name that its producers send to; the broker may also have deleted the queue when it was"
                    " empty",
                    queue.name,
                )
            continue
        look = Look(reading, destination, queue)
        for range_, link in look.ranges(limited):
            now_ms = int(time.time() * 1000)
            part = PartitionSlice(str(destination), link.dialect.name, shown, range_.messages(), now_ms)
            shown += len(range_)
            yield rows_of([part], reading)[0]
        if limits is not None:
            look.warn_of_rest(limits)


class Look:
    """What the read shows of one queue."""

    def __init__(
        self,
        reading: Reading,
        destination: Destination,
        found: QueueFacts | None,
        *,
        without: Sequence[str] | None = None,
    ) -> None:
        """``found``: None if it is not known how many messages the queue has. ``without``: the ids of the messages that
        a second look leaves out.
        """
        self._reading, self._options = reading, reading.options
        self._destination = destination
        self._found, self._counted = found, CountedQueue(None if found is None else found.messages, self._count)
        self._started_ms = time.time() * 1000
        self._shown = self._expired = 0
        self._is_whole = self._is_used_up = self._met_later = False
        self._may_be_cut = False
        self._unselected: UnsupportedError | bool = False
        self._without = without
        self._first_ids: Sequence[str] = ()
        """The first message's id in a row and on the broker, if it has any."""
        self._is_first_unknown = False
        self._selected = ""
        """The selector, if the count is that of the messages that match."""
        self._compared_at: int | None = None
        """How many messages had been shown when they were counted in a silence."""

    def ranges(self, limited: Bounds) -> Iterator[tuple[MessageRange, SourceLink]]:
        """Return what the queue shows, as long as there is room."""
        options = self._options
        has_limits = options.max_messages is not None or options.peek_bytes is not None
        if has_limits and not limited.is_left:
            self._is_used_up = True
            return
        condition = StateCondition()
        with contextlib.closing(self._reading.connect(condition)) as link:
            self._is_whole = link.dialect.browses and not has_limits
            if not (has_limits or link.dialect.browse_is_limited):
                self._count_matching(link)
            bounds = Bounds(None, None) if self._is_whole else limited
            if bounds.is_left and not self._counted.has_shown_all(0):
                if self._may_be_limited(link) and options.selector is not None:
                    self._unselected = self._browse_unselected()
                link.subscribe(self._subscription(link, bounds))
                for range_ in self._receive(link, bounds, condition):
                    yield range_, link
            self._is_used_up = not bounds.is_left or bounds.is_used_up
        if self._may_be_limited(link) and not self._is_used_up:
            self._require_all()

    def _may_be_limited(self, link: SourceLink) -> bool:
        return link.dialect.browse_is_limited and self._counted.had is None and self._without is None

    def _require_all(self) -> None:
        """The broker marks the end of a browse in the same way in each case, and tells nobody its limit. A browse that
        leaves out one message shows as many only if it ends at a limit, or if another message has come meanwhile: so
        the queue is counted with and without this message, if the broker knows it by an id that the row has.
        """
        if self._met_later:
            return
        first = self._first_ids
        self._is_first_unknown = self._met > 0 and not first
        if first and all(self._shows_as_many(without) for without in (first, (), first, ())):
            raise UnsupportedError(
                f"A browse shows {self._shown:,} messages of queue {self._destination.name}, and the broker has more:"
                " it ends a browse at the maxBrowsePageSize of the policyEntry for this queue, by default 400.",
                "Set maxBrowsePageSize=2147483647 there (not -1: then a browse loads nothing), or read at most"
                f" {self._shown} messages. readStream with trigger(availableNow=True) reads and consumes all.",
            )
        if isinstance(self._unselected, UnsupportedError):
            raise self._unselected
        self._may_be_cut = self._unselected or self._is_first_unknown or not _is_small(self._met)

    def _browse_unselected(self) -> UnsupportedError | bool:
        """Browse up to the default limits without the selector, so that the broker loads these messages: a browse with
        a selector ends when none of the next ``maxPageSize`` messages, which it loads, matches. Return whether there
        may be more, or the error if there are.
        """
        whole = Look(self._reading.with_options(selector=None), self._destination, None)
        whole._started_ms = self._started_ms
        try:
            for _ in whole.ranges(Bounds(_DEFAULT_MESSAGES, _DEFAULT_BYTES)):
                pass
        except UnsupportedError as error:
            return error
        return whole._may_be_cut or whole._is_used_up

    def _shows_as_many(self, without: Sequence[str]) -> bool:
        again = Look(self._reading, self._destination, None, without=without)
        again._started_ms = self._started_ms
        for _ in again.ranges(Bounds(self._met + 1, None)):
            if not set(without).isdisjoint(again._first_ids):
                self._is_first_unknown = True
                return False
        return again._met == self._met and not again._met_later

    def _count_matching(self, link: SourceLink) -> None:
        """Let the count be that of the messages that match: a broker that looks for them is silent, for seconds if the
        queue is long or its address pages.
        """
        self._selected = self._selector(link) or ""
        if self._selected:
            self._counted = CountedQueue(self._count(), self._count)

    def _may_find_more(self) -> bool:
        """Count again, once for each number that was shown: while the broker counts, it also looks for the rest."""
        if not self._selected or not self._counted.not_shown(self._met) or self._compared_at == self._met:
            return False
        self._compared_at = self._met
        return self._count() is not None

    def _count(self) -> int | None:
        name = self._destination.name
        if self._selected:
            found = self._found
            return None if found is None else self._reading.count_matching(found.name, self._selected)
        again = self._reading.look_up([name]).get(name)
        return None if again is None else again.messages

    @property
    def _met(self) -> int:
        """Return how many messages the broker has shown."""
        return self._shown + self._expired

    def _receive(self, link: SourceLink, bounds: Bounds, condition: StateCondition) -> Iterator[MessageRange]:
        is_counted = self._options.selector is None or bool(self._selected)
        misses = self._is_whole and is_counted and self._counted.not_shown(self._met) > 0
        connect = partial(self._reading.connect, StateCondition())
        is_all = end_of_look(link, connect, self._options.idle_timeout, misses=misses)

        def is_end(come: int) -> bool:  # after a count, the silence begins again
            return is_all((come, self._compared_at)) and not self._may_find_more()

        for block in blocks_until(link, condition, is_end):
            if not self._met and link.dialect.counted_return and link.dialect.counted_return in block.message(0):
                _warn(
                    f"! queue {self._destination.name} counts deliveries, as a quorum queue does, and each batch read"
                    " over STOMP is one: the broker deletes a message after its delivery-limit, 20 by default on"
                    " RabbitMQ 4. Read it over AMQP"
                )
            if link.dialect.browse_is_limited and not self._met:
                self._first_ids = self._ids_of(block.slice(0, 1), link.dialect.name)
            earlier = block.slice(0, self._sent_before_start(link, block))
            unexpired = link.unexpired(earlier, self._started_ms)
            self._expired += len(earlier) - len(unexpired)
            for shown in bounds.take(deque([MessageRange(0, unexpired, 0, len(unexpired))])):
                self._shown += len(shown)
                yield shown
            if bounds.is_used_up or self._met_later or (is_counted and self._counted.has_shown_all(self._met)):
                return

    def _ids_of(self, block: MessageBlock, dialect: str) -> Sequence[str]:
        wanted = WantedColumns.of(["JMSMessageID"], [])
        batch = self._reading.decode(block, dialect, self._destination, body_type="text", wanted=wanted)
        found: str | None = batch.column("JMSMessageID")[0].as_py()
        return () if found is None else (found, found.replace("ID:AMQP_NO_PREFIX:", "ID:", 1))

    def _sent_before_start(self, link: SourceLink, block: MessageBlock) -> int:
        """Return how many of the first messages the read shows: what the queue had at the start, and beyond this
        number, or if it is not known, what was sent before. Producers that go on sending would keep the read open for
        ever.
        """
        known = self._counted.not_shown(self._met)
        if not self._is_whole or known >= len(block):
            return len(block)
        now_ms = time.time() * 1000
        times = {"started_ms": self._started_ms, "now_ms": now_ms}
        later = was_sent_later(link.sent_ms(block, len(block) - 1), **times)
        if later is None and now_ms - self._started_ms > LONGEST_MS:
            self._met_later = True
            if self._counted.had is None:
                raise UnsupportedError(
                    f"The read has shown {self._shown:,} messages of queue {self._destination.name} in"
                    f" {LONGEST_MS / 60_000:g} minutes. The next ones have no timestamp, so nothing shows whether they"
                    " were sent before its start.",
                    "Set maxMessagesPerTrigger, or read as a user with the permission manage, which tells the number.",
                )
            return known
        if not later:
            return len(block)  # a queue is in the order of sending, except for priorities
        self._met_later = True
        return next(at for at in range(known, len(block)) if was_sent_later(link.sent_ms(block, at), **times))

    def _subscription(self, link: SourceLink, bounds: Bounds) -> Subscription:
        messages = bounds.messages
        if link.dialect.browses and messages > _BROWSE_MESSAGES:
            messages = _BROWSE_MESSAGES
        return Subscription(
            destination=self._destination,
            window_bytes=_WINDOW_PER_SIZE * min(bounds.size, _DEFAULT_BYTES if link.dialect.browses else bounds.size),
            window_messages=messages,
            transform=self._options.body_type == "auto",
            browse=True,
            selector=self._selector(link),
            probes=True,
        )

    def _selector(self, link: SourceLink) -> str | None:
        given = self._options.selector_for(link.dialect)
        terms = ["JMSMessageID <> '{}'".format(each.replace("'", "''")) for each in self._without or ()]
        others = " AND ".join(terms)
        return both_selectors(given, others) if others else given

    # --- what was not shown ---------------------------------------------------------------------

    def warn_of_rest(self, limits: str) -> None:
        """Log if the queue may have more than the read has shown. ``limits`` names what the user can raise, if the read
        had limits.
        """
        shown, had, queue = f"{self._shown:,}", self._counted.had, self._destination.name
        if self._may_be_cut:
            _warn(
                f"! the read shows {shown} messages of queue {queue}, and the broker does not tell how many it has. A"
                " browse ends at the memoryLimit of the queue's policyEntry, and with a selector when none of the next"
                " maxPageSize messages matches"
            )
        elif self._met_later and had is None:
            _warn(
                f"! the read shows {shown} messages of queue {queue} and ended at one that was sent after its start:"
                " there may be more. It is not known how many messages the queue had at the start"
            )
        elif self._is_used_up and had is None:
            _warn(
                f"! the read shows {shown} messages of queue {queue} and reached its limit: there may be more. Raise"
                f" {limits} to see them"
            )
        elif self._selected and had is None:
            _warn(
                f"! the read shows {shown} messages of queue {queue} that match the selector, and it is not known how"
                " many there are: none came for idleTimeout"
            )
        elif had is not None and (self._is_used_up or self._selected or self._options.selector is None):
            self._warn_of_some(had, f"{queue} that match the selector" if self._selected else queue, limits)

    def _warn_of_some(self, had: int, queue: str, limits: str) -> None:
        shown = f"{self._shown:,}"
        if had > self._shown and self._is_whole:
            _warn(
                f"! the read shows {shown} of the {had:,} messages of queue {queue}: the others have expired, are in"
                " delivery to another consumer or scheduled for later, were taken meanwhile, or did not come within"
                " idleTimeout"
            )
        elif had > self._shown:
            _warn(
                f"! the read shows {shown} of the {had:,} messages of queue {queue}. Raise {limits} to see more. What"
                " has expired, is scheduled for later or another consumer has in delivery is not shown"
            )


def _warn(line: str) -> None:
    _log.warning(line)


def _is_small(messages: int) -> bool:
    """Return whether a browse that ends after so many messages has met no limit of memory."""
    return messages < _PAGE and (not messages or messages % _SMALL_PAGE > 0)
