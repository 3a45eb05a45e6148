"""``spark.read.format("jms")``: a peek. Subscribe, look at what is there, unsubscribe; nothing is removed.

A batch read has no commit after which messages could be acknowledged, so it acknowledges none. UNSUBSCRIBE
gives them back without spending a delivery attempt; while the peek runs, other consumers do not see them.
"""

import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from pyspark_jms.delivery.span import Span
from pyspark_jms.errors import ConnectionLostError, UnsupportedError
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.options.parsing import SourceOptions
from pyspark_jms.source.frames import fitting, piece_of, rows_of
from pyspark_jms.stomp.link.connection import Arrivals
from pyspark_jms.stomp.link.consumer import Consumer, Subscription

__all__ = ["JmsPeek"]

_POLL_SECONDS = 0.05


class _Everything(InputPartition):
    """One task: the bounds are of the whole read, and a connection sees a queue's messages in order."""


class JmsPeek(DataSourceReader):
    """At most ``maxMessages`` messages or ``maxBytes`` bytes, or what came before ``idleTimeout`` of silence."""

    def __init__(self, options: SourceOptions) -> None:
        if options.destinations[0].kind is DestinationKind.TOPIC:
            raise UnsupportedError(
                "A topic keeps nothing that a batch read could look at.",
                "Use spark.readStream, which stays subscribed.",
            )
        self._options = options

    def partitions(self) -> list[InputPartition]:
        return [_Everything(0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002  # there is one
        """Runs again for every action on the DataFrame, and then sees the queue as it is then."""
        messages, octets = 0, 0
        for destination in self._options.destinations:
            for span, consumer in self._peek(destination, messages, octets):
                piece = piece_of(span, messages, destination, consumer.dialect)
                messages += len(span)
                octets += span.octets
                yield rows_of(piece, self._options)

    def _peek(self, destination: Destination, messages: int, octets: int) -> Iterator[tuple[Span, Consumer]]:
        """What the queue shows, within what is left of the bounds."""
        left_messages, left_bytes = self._options.peek_messages - messages, self._options.peek_bytes - octets
        if left_messages <= 0 or left_bytes <= 0:
            return
        arrivals = Arrivals()
        subscription = Subscription(
            destination=destination,
            window_bytes=left_bytes,
            window_messages=left_messages,
            transform=self._options.body_type == "auto",
            browse=True,
            selector=self._options.selector_for,
        )
        consumer = Consumer(self._options.connection, subscription, arrivals)
        try:
            quiet_since = time.monotonic()
            ended = False
            while left_messages > 0 and left_bytes > 0 and not ended:
                for run in consumer.take():
                    ended = run.ids[-1] == consumer.dialect.browse_end
                    come = Span(0, run, 0, len(run) - ended)
                    fits = fitting(come, left_bytes, at_least_one=not octets)
                    shown = come.cut(min(len(come), left_messages, fits))[0]
                    if shown:
                        yield shown, consumer
                        left_messages -= len(shown)
                        left_bytes -= shown.octets
                        octets += shown.octets
                    quiet_since = time.monotonic()
                    ended = ended or len(shown) < len(come)
                    if ended:
                        break
                if time.monotonic() - quiet_since >= self._options.idle_timeout:
                    break
                _check(consumer)
                arrivals.pause(_POLL_SECONDS)
        finally:
            consumer.close()


def _check(consumer: Consumer) -> None:
    """Raise what ended the connection, with what the broker may have meant by ending it."""
    try:
        consumer.connection.check_messages()
    except ConnectionLostError as error:
        raise ConnectionLostError(error.fact, f"{error.remedy} {consumer.dialect.silent_end}".rstrip()) from None
