"""A batch read: subscribe, receive copies of the messages, unsubscribe. Nothing is removed.

A batch read has no commit after which messages could be acknowledged, so it acknowledges none. Unsubscribing gives
them back without spending a delivery attempt; while the peek runs, other consumers do not see them.
"""

import logging
import time
from collections.abc import Iterator
from typing import Any

from pyspark_jms.blocks.part import BatchPart
from pyspark_jms.delivery.span import Span
from pyspark_jms.errors import ConnectionLostError
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.management.missing_queues import FoundQueue, look_up_queues
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.links import Arrivals, SourceLink, SourceProtocol
from pyspark_jms.source.parts import rows_of

__all__ = ["peek"]

_log = logging.getLogger("pyspark_jms.source")
_POLL_SECONDS = 0.05
_WINDOW_PER_SIZE = 2
"""The bounds of the read end it, not the prefetch window: Artemis counts the bytes of a CORE text twice."""


def peek(
    options: SourceOptions, protocol: SourceProtocol, *, limits: str = "maxMessages and maxBytes"
) -> Iterator[Any]:
    """RecordBatches: at most ``maxMessages`` messages or ``maxBytes`` bytes, or what came before ``idleTimeout``.

    A queue that does not exist is left out, because a subscription would create it. The log has a warning for such a
    queue, and for a queue with more messages than the read shows: ``limits`` names what the user can raise.
    """
    found = look_up_queues(protocol.open_management, options.connection, [each.name for each in options.destinations])
    room = _Room(options)
    for destination in options.destinations:
        queue = found.get(destination.name)
        if queue is not None and not queue.exists:
            _log.warning(
                "! queue %s does not exist on the broker, so the read shows no messages of it. Compare the name with"
                " the name that its producers send to; the broker may also have deleted the queue when it was empty",
                destination.name,
            )
            continue
        before = room.shown
        for span, link in _peek(options, protocol, destination, room):
            part = BatchPart(str(destination), link.dialect.name, room.shown, span.messages())
            room.take(span)
            yield rows_of(part, options, protocol)[0]
        if room.is_used_up or options.selector is None:
            _warn_of_rest(destination.name, room.shown - before, queue, limits, is_used_up=room.is_used_up)


class _Room:
    """What is left of the bounds of a read, which are of all its queues together."""

    def __init__(self, options: SourceOptions) -> None:
        self.messages, self.size = options.peek_messages, options.peek_bytes
        self.shown = 0
        self.is_used_up = False
        """Whether a message was left out, or one more would be."""

    def fit(self, come: Span) -> Span:
        """The first messages that have room. The first one of all has, whatever its size."""
        fits = come.fit(size=self.size, messages=self.messages, at_least_one=not self.shown)
        self.is_used_up = fits < len(come)
        return come.cut(fits)[0]

    def take(self, span: Span) -> None:
        self.shown += len(span)
        self.messages -= len(span)
        self.size -= span.size
        self.is_used_up = self.is_used_up or self.messages <= 0 or self.size <= 0


def _warn_of_rest(queue: str, shown: int, found: FoundQueue | None, limits: str, *, is_used_up: bool) -> None:
    """``found``: None if it is not known how many messages the queue has."""
    if found is None and is_used_up:
        _log.warning(
            "! the read shows %s messages of queue %s and reached its limit: there may be more. Raise %s to see them",
            f"{shown:,}",
            queue,
            limits,
        )
    elif found is not None and found.messages > shown:
        _log.warning(
            "! the read shows %s of the %s messages of queue %s. Raise %s to see more. What another consumer has in"
            " delivery and what is scheduled for later is not shown",
            f"{shown:,}",
            f"{found.messages:,}",
            queue,
            limits,
        )


def _peek(
    options: SourceOptions, protocol: SourceProtocol, destination: Destination, room: _Room
) -> Iterator[tuple[Span, SourceLink]]:
    """What the queue shows, as long as there is room. The caller takes each span from the room."""
    if room.messages <= 0 or room.size <= 0:
        return
    arrivals = protocol.arrivals()
    link = _browse(options, protocol, destination, arrivals, messages=room.messages, size=room.size)
    try:
        quiet_since = time.monotonic()
        while True:
            for block in link.take():
                shown = room.fit(Span(0, block, 0, len(block)))
                if shown:
                    yield shown, link
                if room.is_used_up:
                    return
                quiet_since = time.monotonic()
            if link.browse_ended or time.monotonic() - quiet_since >= options.idle_timeout:
                return
            _check(link)
            arrivals.pause(_POLL_SECONDS)
    finally:
        link.close()


def _browse(
    options: SourceOptions,
    protocol: SourceProtocol,
    destination: Destination,
    arrivals: Arrivals,
    *,
    messages: int,
    size: int,
) -> SourceLink:
    link = protocol.connect(options.connection, arrivals)
    link.subscribe(
        Subscription(
            destination=destination,
            window_bytes=_WINDOW_PER_SIZE * size,
            window_messages=messages,
            transform=options.body_type == "auto",
            browse=True,
            selector=options.selector_for(link.dialect),
        )
    )
    return link


def _check(link: SourceLink) -> None:
    """Raise what ended the connection, with what the broker may have meant by ending it."""
    try:
        link.check_messages()
    except ConnectionLostError as error:
        raise ConnectionLostError(error.fact, f"{error.remedy} {link.dialect.silent_end}".rstrip()) from None
