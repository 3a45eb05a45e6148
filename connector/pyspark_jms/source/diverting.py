"""Received messages that will not become rows → the dead-letter queue, or nowhere; then they are acknowledged.

``onBadMessage=deadLetter`` and ``onTooLarge``. In this order, so that no message is lost: the broker confirms the dead
letter, then the message is acknowledged. A process that dies in between sends the dead letter once more.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import DeadLetter
from pyspark_jms.errors import ConnectionLostError
from pyspark_jms.jms.dialect import BrokerDialect
from pyspark_jms.jms.model import Destination
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.source.links import MessageSource, Reading, SourceLink

__all__ = ["Diverter", "DriverDiverter"]

_log = logging.getLogger("pyspark_jms.source")


class Diverter(ABC):
    """``dead_letters`` and ``skipped`` count what it did."""

    def __init__(self, reading: Reading) -> None:
        self._reading, self._options = reading, reading.options
        self.dead_letters = self.skipped = 0

    def unmappable(self, dialect: BrokerDialect, source: Destination, block: MessageBlock, upto: int) -> dict[int, str]:
        """Which of the block's first messages go to the dead-letter queue, and why. Decodes all of them."""
        options = self._options
        if options.on_bad_message != "deadLetter" or not upto:
            return {}
        from pyspark_jms.columns.envelope import open_envelopes
        from pyspark_jms.columns.read_properties import body_errors  # imports pyarrow.compute, needed only here

        rows = self._reading.decode(block.slice(0, upto), dialect.name, source)
        return body_errors(open_envelopes(rows, options.body_type), options.columns)

    def divert(self, source: MessageSource, block: MessageBlock, bad: Mapping[int, str]) -> bool:
        """Send dead letters. Return whether the messages were acknowledged. If not, the connection is gone and they are
        redelivered.
        """
        destination, ids = source.subscription.destination, [block.ids[index] or b"" for index in bad]
        self._divert(source, ids, [DeadLetter.of(block, index, reason, destination) for index, reason in bad.items()])
        return self._acknowledge(source, ids)

    def divert_oversized(self, source: MessageSource) -> None:
        """Divert the messages above maxMessageBytes that came since the last call."""
        destination, limit = source.subscription.destination, self._options.connection.max_message_bytes
        for message in source.take_oversized():
            ids = [message.identifier]
            with message:
                if message.is_kept:
                    reason = f"{message.size:,} bytes exceed maxMessageBytes ({limit:,})"
                    self._divert(source, ids, [DeadLetter(message, reason, str(destination))])
                else:
                    self._send(source, ids, [])
                    self.skipped += 1
                    _log.warning(
                        "! a message of %d bytes from %s is acknowledged and dropped (onTooLarge=drop), id %s",
                        message.size,
                        destination,
                        source.message_id(message.identifier),
                    )
            self._acknowledge(source, ids)

    def _divert(self, source: MessageSource, ids: Sequence[bytes], letters: Sequence[DeadLetter]) -> None:
        self._send(source, ids, letters)
        self.dead_letters += len(letters)
        _log.warning(
            "! %d messages from %s went to queue %s: %s",
            len(letters),
            source.subscription.destination,
            self._options.dead_letter_queue,
            letters[0].reason,
        )

    @abstractmethod
    def _send(self, source: Any, ids: Sequence[bytes], letters: Sequence[DeadLetter]) -> None:
        """Send the dead letters, perhaps none, of the messages with these ids."""

    def _acknowledge(self, source: Any, ids: Sequence[bytes]) -> bool:
        """Return False if the connection is gone."""
        del source, ids
        return True


class DriverDiverter(Diverter):
    """Over ``SourceLink``s. The broker confirms a dead letter before the message is acknowledged."""

    def __init__(self, reading: Reading, pause: Callable[[float], None]) -> None:
        """``pause`` sleeps while the broker is away, and may raise to give up."""
        super().__init__(reading)
        self._pause = pause

    def _send(self, source: SourceLink, ids: Sequence[bytes], letters: Sequence[DeadLetter]) -> None:
        del source, ids
        queue, settings = self._options.dead_letter_queue, self._options.connection
        if not letters:
            return
        assert queue is not None
        keep_trying(
            partial(self._reading.protocol.send_dead_letters, settings, queue, letters),
            f"sending dead letters to {queue}",
            timeout=settings.reconnect_timeout,
            pause=self._pause,
        )

    def _acknowledge(self, source: SourceLink, ids: Sequence[bytes]) -> bool:
        try:
            source.has_receipt(source.acknowledge(ids), wait=True)
        except ConnectionLostError as error:
            fact = error.fact
            _log.warning("= %d messages in the dead-letter queue or dropped are not acknowledged: %s", len(ids), fact)
            return False
        return True
