"""The subscriptions of a query: their links, opened, replaced and closed, and the selector of each."""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from pyspark_jms.errors import ConnectionLostError, JMSError
from pyspark_jms.jms.subscription import SpareConnection, Subscription, selector_changed
from pyspark_jms.network.connection import ParallelCalls, StateCondition, closed_on
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.source.links import Reading, SourceLink
from pyspark_jms.source.offsets import selector_digest
from pyspark_jms.source.queues import require_queues, require_removal
from pyspark_jms.source.windows import Windows

__all__ = ["MAX_SHORT_SESSIONS", "Subscriptions", "create_subscription", "may_pass"]

# --- connections that end at once -------------------------------------------------------------------

# Some brokers give no reason when they end a connection as soon as it has subscribed, again and again. Then the error
# says what may be the cause.

MAX_SHORT_SESSIONS = 5
"""After so many in a row the query stops: a broker that is away does not end connections at once."""

_MOST_CONNECTIONS = 8
"""So many connections, at most, for all queues of a query. More of them cost threads, and never read faster."""
_MOST_LINKS = 120
"""Queues of a connection: over AMQP each has two links, and a plain transfer has a handle below 256."""

_SHORT_SECONDS = 2.0
"""The messages to be delivered may be what ended a subscription that ended sooner."""


@dataclass(slots=True)
class ShortSessions:
    """``began`` when a subscription has subscribed, ``ended`` when its connection is lost."""

    _since: dict[int, float] = field(default_factory=dict)
    _consecutive: dict[int, int] = field(default_factory=dict)

    def began(self, subscription: int, now: float) -> None:
        self._since[subscription] = now

    def consecutive(self, subscription: int) -> int:
        """Return how many connections of the subscription in a row, the last one included, ended at once."""
        return self._consecutive.get(subscription, 0)

    def ended(self, subscription: int, now: float, link: SourceLink) -> ConnectionLostError | None:
        """The error to raise if there are no more attempts; None when this end is like any other."""
        silent_end, destination = link.dialect.silent_end, link.subscription.destination
        at_once = bool(silent_end) and now - self._since[subscription] < _SHORT_SECONDS
        self._consecutive[subscription] = self.consecutive(subscription) + 1 if at_once else 0
        if not at_once:
            return None
        return ConnectionLostError(
            f"{link.address} ended {self.consecutive(subscription)} connections in a row, each soon after it had"
            f" subscribed to {destination}.",
            silent_end,
        )


# --- a queue that is gone ---------------------------------------------------------------------------

_ASKED_AGAIN_SECONDS = 5.0


@dataclass(slots=True)
class _Absence:
    """A queue of several that is not there any more."""

    until: float
    """When the query gives up."""
    next_try: float


def may_pass(error: JMSError) -> bool:
    """Return True also for a missing queue: one of several is left out, and it may be that of another subscription."""
    return error.transient or error.missing


_log = logging.getLogger("pyspark_jms.source")


class Subscriptions:
    """``links[subscription]`` is a link of ``options.destinations[subscription // options.connections]``."""

    def __init__(self, reading: Reading, pause: Callable[[float], None]) -> None:
        """``pause`` sleeps while the broker is away, and may raise to give up."""
        self._reading = reading
        self._options = reading.options
        self._pause = pause
        self._sessions = ShortSessions()
        self.condition = StateCondition()
        self.windows = Windows(reading, is_shared=bool(self._shared_connections))
        self.links: list[SourceLink] = []
        self._absent: dict[int, _Absence] = {}
        """By subscription, queues that were there: the others are read meanwhile."""
        self.reconnects = 0
        self.selector_digest: str | None = None
        """Of the selector that a durable subscription has, for the checkpoint."""

    def open(self, selector_digest: str | None, patience: float) -> None:
        """``selector_digest``: as the checkpoint has it. ``patience``: seconds to try while the broker is away."""
        self.selector_digest = selector_digest
        options = self._options
        found = require_queues(self._reading)
        require_removal(self._reading, list(found.values()))
        of_queues = [each.name not in found or found[each.name].undelivered > 0 for each in options.destinations]
        may_have = [each for each in of_queues for _ in range(options.connections)]
        # Of each destination the first one probes: a probe beside it would not see the head of the queue.
        probes = [may and each % options.connections == 0 for each, may in enumerate(may_have)]
        opened: dict[int, SourceLink] = {}
        try:
            calls, count = ParallelCalls(), self._shared_connections or 1
            # A refusal ends the connection that asked. Empty queues first: then it has delivered nothing.
            ordered = (sorted(range(first, len(may_have), count), key=may_have.__getitem__) for first in range(count))
            calls.run([partial(self._open, each, probes, patience, opened, calls) for each in ordered])
        finally:
            self.links = [opened[each] for each in sorted(opened)]
        for link in self.links[:: options.connections]:
            self._log_what_to_expect(link)

    def _open(
        self,
        subscriptions: Sequence[int],
        probes: Sequence[bool],
        patience: float,
        opened: dict[int, SourceLink],
        calls: ParallelCalls,
    ) -> None:
        """Open them in turn: where subscriptions share connections, those of one. ``opened`` gets their links."""
        link, pause = None, partial(calls.pause, self._pause)
        with closing(SpareConnection()) as spare:
            for each in subscriptions:
                calls.check()
                beside = link if self._shared_connections else None
                link = opened[each] = keep_trying(
                    partial(self._subscribe, each, beside, spare if probes[each] else None),
                    "the first connection",
                    timeout=patience,
                    seen=patience > 0,
                    once_lost=self._options.connection.reconnect_timeout,
                    pause=pause,
                )
                self._sessions.began(each, time.monotonic())

    def beside(self, subscription: int) -> range:
        """The subscriptions that read the destination of this one; none if it has only one."""
        if self._options.connections == 1:
            return range(0)
        return self._same_destination(subscription)

    def _same_destination(self, subscription: int) -> range:
        first = subscription - subscription % self._options.connections
        return range(first, first + self._options.connections)

    @property
    def _shared_connections(self) -> int:
        """Return how many connections the queues share, in turn: 0 if there are few of them, or if each has its own by
        option ``connections``.
        """
        queues = len(self._options.destinations)
        if self._options.connections > 1 or queues <= _MOST_CONNECTIONS:
            return 0
        return max(_MOST_CONNECTIONS, -(-queues // _MOST_LINKS))

    def _beside(self, subscription: int) -> SourceLink | None:
        """Return a link whose connection this subscription shares. An absent queue shares none: over STOMP the broker
        ends the connection that asks for it.
        """
        shared = self._shared_connections
        if not shared or subscription in self._absent:
            return None
        others = (each for each in range(subscription % shared, len(self.links), shared) if each != subscription)
        return next((self.links[each] for each in others if not self.links[each].is_down), None)

    def _subscribe(
        self, subscription: int, beside: SourceLink | None, spare: SpareConnection | None = None
    ) -> SourceLink:
        """Connect, learn the dialect, split the selector for it, and subscribe.

        ``beside``: a link whose connection is used if it still stands. ``spare``: to probe the queue first; not after a
        lost connection, because a message that cannot be sent ends the query.
        """
        options = self._options
        destination = options.destinations[subscription // options.connections]
        link = self._reading.connect(self.condition, None if beside is None or beside.is_down else beside)
        with closed_on(JMSError, link.close):
            selector = options.selector_for(link.dialect)
            self._require_same_selector(selector)
        wanted = Subscription(
            destination=destination,
            window_bytes=self.windows.size(subscription, link.dialect),
            shared=self.windows.shared,
            transform=options.body_type == "auto",
            durable=options.durable,
            selector=selector,
            connections=options.connections,
            probes=spare is not None,
            spare=spare,
        )
        try:
            link.subscribe(wanted)
        except JMSError as error:
            if error.missing or (self._has_others and not error.transient):
                error.name_destination(str(destination), destination.name)
            raise
        return link

    def _require_same_selector(self, selector: str | None) -> None:
        """Before SUBSCRIBE: Classic would forget what a durable subscription with another selector holds."""
        durable = self._options.durable
        if durable is None:
            return
        digest = selector_digest(selector)
        if self.selector_digest not in (None, digest):
            raise selector_changed(durable)
        self.selector_digest = digest

    def _log_what_to_expect(self, link: SourceLink) -> None:
        for warning in self._options.selector_warnings(link.dialect):
            _log.warning("! selector: %s", warning)
        if self._options.is_plain_topic:
            _log.warning(
                "! %s is a plain topic subscription: the broker does not deliver what is sent while this query is not"
                " connected (at-most-once across reconnects and restarts)",
                link.subscription.destination,
            )

    def lost(self) -> list[int]:
        """The subscriptions whose connection is gone, without those of absent queues that were asked for just now."""
        now = time.monotonic()
        down = [each for each, link in enumerate(self.links) if link.is_down]
        return [each for each in down if each not in self._absent or self._absent[each].next_try <= now]

    @property
    def absent(self) -> Collection[int]:
        """The subscriptions whose queue is not there: nothing is to come from them."""
        return self._absent.keys()

    def end_of(self, subscription: int) -> JMSError | None:
        """Return what ended the connection, or raise it if it cannot pass."""
        try:
            self.links[subscription].check()
        except JMSError as error:
            if not may_pass(error):
                raise
            return error
        return None

    def subscribe_again(self, subscription: int) -> None:
        """After its link was closed here."""
        left = self.links[subscription]
        if subscription in self._absent or (left.is_down and self._is_shared(left)):
            self.reconnect(subscription, None)
            return
        try:
            self.links[subscription] = self._subscribe(subscription, self._beside(subscription))
            self._sessions.began(subscription, time.monotonic())
        except JMSError as error:
            if not may_pass(error):
                raise
            self.reconnect(subscription, error)

    def reconnect(self, subscription: int, lost: JMSError | None) -> None:
        """Subscribe again, after growing pauses. ``lost``: what ended the connection."""
        link = self.links[subscription]
        link.drop()
        destination = link.subscription.destination
        silent: JMSError | None = self._sessions.ended(subscription, time.monotonic(), link)
        if silent is not None and self._sessions.consecutive(subscription) >= MAX_SHORT_SESSIONS:
            raise silent
        try:
            link = keep_trying(
                lambda: self._subscribe(subscription, self._beside(subscription)),
                f"reconnecting to {link.address}",
                timeout=self._options.connection.reconnect_timeout,
                failure=None if subscription in self._absent else silent or lost,
                seen=not self._has_others,
                pause=self._pause,
            )
        except JMSError as error:
            if not (error.missing and self._has_others):
                raise
            self._miss(subscription, error)
            return
        if self._absent.pop(subscription, None):
            _log.warning("= %s is there again", destination)
        self.links[subscription] = link
        self._sessions.began(subscription, time.monotonic())
        if not self._is_shared(link):
            self.reconnects += 1
            _log.warning("= reconnected to %s", link.address)

    def _is_shared(self, link: SourceLink) -> bool:
        return any(each.shares(link) for each in self.links if each is not link)

    @property
    def _has_others(self) -> bool:
        return len(self._options.destinations) > 1

    def _miss(self, subscription: int, error: JMSError) -> None:
        """Raise ``error`` when the queue has been away for ``reconnectTimeout``."""
        now, seconds = time.monotonic(), self._options.connection.reconnect_timeout
        absence = self._absent.get(subscription)
        if absence is None:
            _log.warning("! %s The query reads its other queues, and asks again (reconnectTimeout).", error.fact)
            absence = self._absent[subscription] = _Absence(now + seconds, now)
            self.windows.leave(subscription)
        if now >= absence.until:
            raise error
        absence.next_try = min(now + _ASKED_AGAIN_SECONDS, absence.until)

    def close(self) -> None:
        """Give back what is not acknowledged, without costing it a delivery attempt. Never raises."""
        for link in self.links:
            link.close()
        self.links = []


# --- a durable subscription that is only created ----------------------------------------------------


def create_subscription(reading: Reading) -> str | None:
    """Return the selector in the broker's words. ``SelectorChangedError`` if the subscription exists with another one.

    ``SubscriptionInUseError`` while a consumer reads it, if the broker lets only one in.
    """
    options = reading.options
    assert options.durable is not None
    with closing(reading.connect(StateCondition())) as link:
        selector = options.selector_for(link.dialect)
        link.subscribe(
            Subscription(
                destination=options.destinations[0],
                window_bytes=1,
                window_messages=1,
                durable=options.durable,
                selector=selector,
            )
        )
    return selector
