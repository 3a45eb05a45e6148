"""Received messages that will not become rows → the dead-letter queue, or nowhere; then they are acknowledged.

``onBadMessage=deadLetter`` and ``onTooLarge``. In this order, so that no message is lost: the broker confirms the dead
letter, then the message is acknowledged. A process that dies in between sends the dead letter once more.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import DeadLetter, OversizedMessage
from pyspark_jms.errors import ConnectionLostError
from pyspark_jms.jms.dialect import BrokerDialect
from pyspark_jms.jms.model import Destination
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.links import Reading, SourceLink

__all__ = ["Diverter", "log_dead_letters", "log_dropped", "oversized_dead_letter", "unmappable"]

_log = logging.getLogger("pyspark_jms.source")


class Diverter:
    """``dead_letters`` and ``skipped`` count what it did."""

    def __init__(self, reading: Reading, pause: Callable[[float], None]) -> None:
        """``pause`` sleeps while the broker is away, and may raise to give up."""
        self._reading = reading
        self._options = reading.options
        self._pause = pause
        self.dead_letters = 0
        self.skipped = 0

    def unmappable(self, link: SourceLink, block: MessageBlock, upto: int) -> dict[int, str]:
        """Return what ``unmappable`` finds with the options of the query."""
        return unmappable(self._reading, link.dialect, link.subscription.destination, block, upto=upto)

    def divert(self, link: SourceLink, block: MessageBlock, bad: Mapping[int, str]) -> bool:
        """Send dead letters. Return whether the messages were acknowledged. If not, the connection is gone and they are
        redelivered.
        """
        source = link.subscription.destination
        self._send(link, [DeadLetter.of(block, index, reason, source) for index, reason in bad.items()])
        return _acknowledge(link, [block.ids[index] or b"" for index in bad])

    def divert_oversized(self, link: SourceLink) -> None:
        """Divert the messages above maxMessageBytes that came since the last call."""
        for message in link.take_oversized():
            with message:
                if message.is_kept:
                    self._send(link, [oversized_dead_letter(link.subscription.destination, message, self._options)])
                else:
                    log_dropped(link.subscription.destination, message, link.message_id(message.identifier))
                    self.skipped += 1
            _acknowledge(link, [message.identifier])

    def _send(self, link: SourceLink, letters: Sequence[DeadLetter]) -> None:
        queue, settings = self._options.dead_letter_queue, self._options.connection
        assert queue is not None
        keep_trying(
            partial(self._reading.protocol.send_dead_letters, settings, queue, letters),
            f"sending dead letters to {queue}",
            timeout=settings.reconnect_timeout,
            pause=self._pause,
        )
        self.dead_letters += len(letters)
        log_dead_letters(link.subscription.destination, queue, letters)


def unmappable(
    reading: Reading, dialect: BrokerDialect, source: Destination, block: MessageBlock, *, upto: int
) -> dict[int, str]:
    """Which of the block's first messages go to the dead-letter queue, and why. Decodes all of them."""
    options = reading.options
    if options.on_bad_message != "deadLetter" or not upto:
        return {}
    from pyspark_jms.columns.envelope import open_envelopes
    from pyspark_jms.columns.read_properties import body_errors  # imports pyarrow.compute, needed only here

    rows = reading.protocol.decode(
        block.slice(0, upto),
        dialect=dialect.name,
        source=source,
        first_sequence=0,
        body_type=options.body_type,
    )
    return body_errors(open_envelopes(rows, options.body_type), options.columns)


def oversized_dead_letter(source: Destination, message: OversizedMessage, options: SourceOptions) -> DeadLetter:
    limit = options.connection.max_message_bytes
    return DeadLetter(message, f"{message.size:,} bytes exceed maxMessageBytes ({limit:,})", str(source))


def log_dropped(source: Destination, message: OversizedMessage, identifier: str) -> None:
    _log.warning(
        "! a message of %d bytes from %s is acknowledged and dropped (onTooLarge=drop), id %s",
        message.size,
        source,
        identifier,
    )


def log_dead_letters(source: Destination, queue: str | None, letters: Sequence[DeadLetter]) -> None:
    _log.warning(
        "! %d messages from %s went to queue %s: %s",
        len(letters),
        source,
        queue,
        letters[0].reason,
    )


def _acknowledge(link: SourceLink, ids: Sequence[bytes]) -> bool:
    try:
        link.has_receipt(link.acknowledge(ids), wait=True)
    except ConnectionLostError as error:
        _log.warning("= %d messages in the dead-letter queue or dropped are not acknowledged: %s", len(ids), error.fact)
        return False
    return True
