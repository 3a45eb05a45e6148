"""A batch read: subscribe, receive copies of the messages, unsubscribe. Nothing is removed.

A batch read has no commit after which messages could be acknowledged, so it acknowledges none. Unsubscribing gives
them back without spending a delivery attempt; while the peek runs, other consumers do not see them.
"""

import time
from collections.abc import Iterator
from typing import Any

from pyspark_jms.blocks.part import BatchPart
from pyspark_jms.delivery.span import Span
from pyspark_jms.errors import ConnectionLostError
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.links import Arrivals, SourceLink, SourceProtocol
from pyspark_jms.source.parts import rows_of

__all__ = ["peek"]

_POLL_SECONDS = 0.05


def peek(options: SourceOptions, protocol: SourceProtocol) -> Iterator[Any]:
    """RecordBatches: at most ``maxMessages`` messages or ``maxBytes`` bytes, or what came before ``idleTimeout``."""
    messages, size = 0, 0
    for destination in options.destinations:
        for span, link in _peek(options, protocol, destination, messages, size):
            part = BatchPart(str(destination), link.dialect.name, messages, span.messages())
            messages += len(span)
            size += span.size
            yield rows_of(part, options, protocol)[0]


def _peek(
    options: SourceOptions, protocol: SourceProtocol, destination: Destination, messages: int, size: int
) -> Iterator[tuple[Span, SourceLink]]:
    """What the queue shows, within what is left of the bounds."""
    left_messages, left_bytes = options.peek_messages - messages, options.peek_bytes - size
    if left_messages <= 0 or left_bytes <= 0:
        return
    arrivals = protocol.arrivals()
    link = _browse(options, protocol, destination, arrivals, messages=left_messages, size=left_bytes)
    try:
        quiet_since = time.monotonic()
        while True:
            for block in link.take():
                come = Span(0, block, 0, len(block))
                fits = come.fit(size=left_bytes, messages=left_messages, at_least_one=not size)
                shown = come.cut(fits)[0]
                if shown:
                    yield shown, link
                    left_messages -= len(shown)
                    left_bytes -= shown.size
                    size += shown.size
                if len(shown) < len(come) or left_messages <= 0 or left_bytes <= 0:
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
            window_bytes=size,
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
