"""The prefetch windows of queues that share connections: each has a part of ``windowBytes`` of its own, and those that
fill theirs divide the other half.

Over AMQP a window can grow (``SharedWindow``). Over STOMP its size is a header of SUBSCRIBE, so a queue that fills its
window is left and subscribed to again: what is in flight goes back, and comes again in the same order without costing a
delivery attempt. That is done only at queues for which the broker tells that nothing else happens meanwhile.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark_jms.jms.dialect import BrokerDialect
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.jms.subscription import SharedWindow
from pyspark_jms.management.link import ask
from pyspark_jms.management.queue_facts import QueueFacts, queue_facts
from pyspark_jms.source.links import Reading, SourceLink

__all__ = ["Windows"]

_LEAST_PARTS = 4
"""Into so many parts the other half of ``windowBytes`` is divided at least."""
_MOST_AT_ONCE = 32
"""So many windows grow between two batches. Each takes some milliseconds."""
_LATELY_SECONDS = 10.0
"""A queue that has not filled its window for so long gives up what it has beside its own, when another needs it."""
_WIDE_ENOUGH = 4 << 20
"""A window of so many bytes is not made wider."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 60.0
"""Between two questions what a queue is. They grow."""


def _can_be_left(facts: QueueFacts) -> bool:
    """Return whether nothing changes when the consumer of this query leaves the queue and comes again.

    A queue is emptied without a consumer, or given to another one, if it is set so. A non-destructive one would send
    all messages again: it counts no acknowledgement (Artemis 2.55).
    """
    is_kept = facts.purge_on_no_consumers is False and bool(facts.acknowledged)
    is_ours = facts.consumers == 1 and facts.exclusive is False and facts.max_consumers is None
    is_plain = facts.routing_type is DestinationKind.QUEUE and not facts.last_value and facts.ring_size is None
    return is_kept and is_ours and is_plain and (facts.consumers_before_dispatch or 0) <= 1


@dataclass(slots=True)
class _Refusal:
    """A queue that cannot be left is asked about again after a pause, which grows."""

    pause: float
    until: float


class Windows:
    def __init__(self, reading: Reading, *, is_shared: bool) -> None:
        """``is_shared``: subscriptions share connections."""
        self._reading = reading
        self._options = options = reading.options
        self._is_shared = is_shared
        grows = is_shared and options.connection.protocol == "amqp"
        self.shared = SharedWindow(options.window_bytes // 2) if grows else None
        """What windows have beside their own, where they can grow."""
        self._sizes: dict[int, int] = {}
        """What a subscription has beside its own window, in bytes."""
        self._filled: dict[int, float] = {}
        """The subscriptions that have filled their window lately, and when."""
        self._refusals: dict[int, _Refusal] = {}

    def size(self, subscription: int, dialect: BrokerDialect) -> int:
        """Return the bytes of this window."""
        own = self._options.connection_window // (2 if self.shared is not None or self._widens(dialect) else 1)
        return max(1, own) + self._sizes.get(subscription, 0)

    def _widens(self, dialect: BrokerDialect) -> bool:
        return self._is_shared and dialect.widens_again and self._options.connection_window < _WIDE_ENOUGH

    def filled(self, links: Mapping[int, SourceLink]) -> list[int]:
        """Return the subscriptions that fill their windows. Call it before their messages are acknowledged."""
        return [each for each, link in links.items() if self._widens(link.dialect) and link.fills_window()]

    def to_resubscribe(self, filled: Sequence[int]) -> list[int]:
        """Divide what is not in the own windows equally among the queues that have filled theirs lately, and return
        what to subscribe again for that: first those whose window gets smaller. Call it after the acknowledgements,
        which show that a queue loses what is acknowledged.

        The number of parts doubles, and a part is given to a queue only where it doubles the window at least. So a
        queue that comes or goes changes no other window most times.
        """
        now = time.monotonic()
        self._filled |= dict.fromkeys(filled, now)
        self._filled = {each: at for each, at in self._filled.items() if now - at <= _LATELY_SECONDS}
        own = self._options.connection_window // 2
        part = self._options.window_bytes // 2 // max(_LEAST_PARTS, 1 << max(0, len(self._filled) - 1).bit_length())
        grow = [each for each in filled if own + part >= 2 * (own + self._sizes.get(each, 0))]
        grow = [each for each in grow if self._may_be_left(each, now)][:_MOST_AT_ONCE]
        if not grow and all(size <= part for size in self._sizes.values()):
            return []
        shrink = [each for each, size in self._sizes.items() if each not in self._filled or size > part]
        left = self._asked([each for each in (*shrink, *grow) if self._may_be_left(each, now)])
        changed = [each for each in (*shrink, *(grow if left.issuperset(shrink) else ())) if each in left]
        for each in changed:
            self._sizes.pop(each, None)
        self._sizes |= {each: part for each in changed if each in self._filled}
        return changed

    def _may_be_left(self, subscription: int, now: float) -> bool:
        return subscription not in self._refusals or self._refusals[subscription].until <= now

    def _asked(self, subscriptions: Sequence[int]) -> set[int]:
        """Ask the broker which can be left now: its answer may have changed since the last time."""
        if not subscriptions:
            return set()
        names = {each: self._options.destinations[each].name for each in subscriptions}
        about = "whether queues can have wider windows"
        management = self._reading.protocol.open_management, self._options.connection
        found = ask(*management, lambda link: queue_facts(link, names.values()), about) or {}
        left = {each for each, name in names.items() if name in found and _can_be_left(found[name])}
        now = time.monotonic()
        for each in subscriptions:
            before = self._refusals.pop(each, None)
            if each not in left:
                pause = _FIRST_PAUSE_SECONDS if before is None else min(2 * before.pause, _LONGEST_PAUSE_SECONDS)
                self._refusals[each] = _Refusal(pause, now + pause)
        return left

    def leave(self, subscription: int) -> None:
        """Its queue is not there any more."""
        self._sizes.pop(subscription, None)
        self._refusals.pop(subscription, None)
