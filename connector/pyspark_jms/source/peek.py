"""A batch read: subscribe, receive copies of the messages, unsubscribe. Nothing is removed.

A batch read has no commit after which messages could be acknowledged, so it acknowledges none. Unsubscribing gives
them back without spending a delivery attempt; while the peek runs, other consumers do not see them. Over AMQP the
read browses, so that they do.
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
_DEFAULT_MESSAGES, _DEFAULT_BYTES = 10_000, 64 << 20
_NO_LIMIT = 1 << 62
_WINDOW_PER_SIZE = 2
"""The bounds of the read end it, not the prefetch window: Artemis counts the bytes of a CORE text twice. A browse that
goes on as its messages are shown has at most the default window.
"""


def peek(
    options: SourceOptions, protocol: SourceProtocol, *, limits: str = "maxMessages and maxBytes"
) -> Iterator[Any]:
    """RecordBatches: at most ``maxMessages`` messages or ``maxBytes`` bytes, or what came before ``idleTimeout``.

    Without both options, the read shows all messages that a queue had at the start, where the protocol can browse them
    and their number is known. A queue that does not exist is left out, because a subscription would create it. The log
    has a warning for such a queue, and for a queue with more messages than the read shows: ``limits`` names what the
    user can raise.
    """
    found = look_up_queues(protocol.open_management, options.connection, [each.name for each in options.destinations])
    limited = _Room(options.peek_messages or _DEFAULT_MESSAGES, options.peek_bytes or _DEFAULT_BYTES)
    shown = 0
    for destination in options.destinations:
        queue = found.get(destination.name)
        if queue is not None and not queue.exists:
            _log.warning(
                "! queue %s does not exist on the broker, so the read shows no messages of it. Compare the name with"
                " the name that its producers send to; the broker may also have deleted the queue when it was empty",
                destination.name,
            )
            continue
        is_whole = queue is not None and _shows_whole_queues(options, protocol)
        room = _Room(queue.messages, _NO_LIMIT) if queue is not None and is_whole else limited
        before = shown
        for span, link in _peek(options, protocol, destination, room):
            part = BatchPart(str(destination), link.dialect.name, shown, span.messages())
            room.take(span)
            shown += len(span)
            yield rows_of(part, options, protocol)[0]
        if room.is_used_up or options.selector is None:
            raises = None if is_whole else limits
            _warn_of_rest(destination.name, shown - before, queue, raises, is_used_up=room.is_used_up)


def _shows_whole_queues(options: SourceOptions, protocol: SourceProtocol) -> bool:
    return protocol.browses_whole_queues and options.peek_messages is None and options.peek_bytes is None


class _Room:
    """What is left of the bounds of a read, which are of all its queues together, or of one that is read whole."""

    def __init__(self, messages: int, size: int) -> None:
        self.messages, self.size = messages, size
        self._is_begun = False
        self.is_used_up = False
        """Whether a message was left out, or one more would be."""

    def fit(self, come: Span) -> Span:
        """The first messages that have room. The first one of all has, whatever its size."""
        fits = come.fit(size=self.size, messages=self.messages, at_least_one=not self._is_begun)
        self.is_used_up = fits < len(come)
        return come.cut(fits)[0]

    def take(self, span: Span) -> None:
        self._is_begun = True
        self.messages -= len(span)
        self.size -= span.size
        self.is_used_up = self.is_used_up or self.messages <= 0 or self.size <= 0


def _warn_of_rest(queue: str, shown: int, found: FoundQueue | None, limits: str | None, *, is_used_up: bool) -> None:
    """``found``: None if it is not known how many messages the queue has. ``limits``: None if there were none."""
    if found is None and is_used_up:
        _log.warning(
            "! the read shows %s messages of queue %s and reached its limit: there may be more. Raise %s to see them",
            f"{shown:,}",
            queue,
            limits,
        )
    elif found is not None and found.messages > shown:
        figures = f"{shown:,}", f"{found.messages:,}", queue
        if limits is None:
            _log.warning(
                "! the read shows %s of the %s messages of queue %s: the others are in delivery to another consumer, or"
                " scheduled for later, or were taken meanwhile",
                *figures,
            )
            return
        _log.warning(
            "! the read shows %s of the %s messages of queue %s. Raise %s to see more. What another consumer has in"
            " delivery and what is scheduled for later is not shown",
            *figures,
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
                link.shown(len(block))
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
    if protocol.browses_whole_queues:
        size = min(size, _DEFAULT_BYTES)
    link.subscribe(
        Subscription(
            destination=destination,
            window_bytes=_WINDOW_PER_SIZE * size,
            window_messages=messages,
            transform=options.body_type == "auto",
            browse=True,
            selector=options.selector_for(link.dialect),
            probes=True,
        )
    )
    return link


def _check(link: SourceLink) -> None:
    """Raise what ended the connection, with what the broker may have meant by ending it."""
    try:
        link.check_messages()
    except ConnectionLostError as error:
        raise ConnectionLostError(error.fact, f"{error.remedy} {link.dialect.silent_end}".rstrip()) from None
