"""Received messages that will not become rows → the dead-letter queue, or nowhere; then they are acknowledged.

``onBadMessage=deadLetter`` and ``onTooLarge``. In this order, so that no message is lost: the broker confirms the dead
letter, then the message is acknowledged. A process that dies in between sends it once more.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from pyspark_jms.errors import ConnectionLostError
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.options.parsing import SourceOptions
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.link.consumer import Consumer
from pyspark_jms.stomp.link.dead_letters import DeadLetter, send_dead_letters
from pyspark_jms.stomp.wire.oversized import OversizedMessage
from pyspark_jms.stomp.wire.scan import FrameRun

__all__ = ["Diverter"]

_log = logging.getLogger("pyspark_jms.source")


class Diverter:
    """``dead_letters`` and ``skipped`` count what it did."""

    def __init__(self, options: SourceOptions, pause: Callable[[float], None]) -> None:
        """``pause`` sleeps while the broker is away, and may raise to give up."""
        self._options = options
        self._pause = pause
        self.dead_letters = 0
        self.skipped = 0

    def unmappable(self, consumer: Consumer, run: FrameRun, upto: int) -> dict[int, str]:
        """Which of the run's first messages are to go to the dead-letter queue, and why. Decodes them all."""
        if self._options.on_bad_message != "deadLetter" or not upto:
            return {}
        from pyspark_jms.stomp.columns.decode import decode  # with pyarrow's kernels, wanted for this option only

        errors = decode(
            memoryview(run.octets)[: run.ends[upto - 1]],
            np.frombuffer(run.heads, np.int64)[:upto],
            np.frombuffer(run.ends, np.int64)[:upto],
            dialect=consumer.dialect,
            source=consumer.subscription.destination,
            first_sequence=0,
            body_type=self._options.body_type,
        ).column("body_error")
        bad = np.flatnonzero(errors.is_valid().to_numpy(zero_copy_only=False))
        return {int(index): str(errors[int(index)].as_py()) for index in bad}

    def divert(self, consumer: Consumer, run: FrameRun, bad: Mapping[int, str]) -> bool:
        """Whether the messages were acknowledged. If not, the connection is gone and they are redelivered."""
        letters = [_letter_of(consumer, run, index, reason) for index, reason in bad.items()]
        self._send(consumer, letters)
        return _acknowledged(consumer, [run.ids[index] or b"" for index in bad])

    def divert_oversized(self, consumer: Consumer) -> None:
        """As ``divert``, of the messages above maxMessageBytes that came since the last call."""
        for message in consumer.connection.take_oversized():
            if message.body is None:
                self._skip(consumer, message)
            else:
                with message.body:
                    self._send(consumer, [self._letter_of_oversized(consumer, message)])
            _acknowledged(consumer, [message.identifier])

    def _skip(self, consumer: Consumer, message: OversizedMessage) -> None:
        _log.warning(
            "! a message of %d bytes from %s is acknowledged and skipped (onTooLarge=skip), id %s",
            message.size,
            consumer.subscription.destination,
            _id_of(consumer.dialect, message.identifier),
        )
        self.skipped += 1

    def _send(self, consumer: Consumer, letters: Sequence[DeadLetter]) -> None:
        queue = self._options.dead_letter_queue
        assert queue is not None
        settings = self._options.connection
        keep_trying(
            partial(send_dead_letters, settings, queue, letters),
            f"sending dead letters to {queue}",
            timeout=settings.reconnect_timeout,
            pause=self._pause,
        )
        self.dead_letters += len(letters)
        _log.warning(
            "! %d messages from %s went to queue %s: %s",
            len(letters),
            consumer.subscription.destination,
            queue,
            letters[0].reason,
        )

    def _letter_of_oversized(self, consumer: Consumer, message: OversizedMessage) -> DeadLetter:
        assert message.body is not None
        most = self._options.connection.max_message_bytes
        return DeadLetter(
            head=message.head,
            body=message.body,
            reason=f"{message.size:,} bytes exceed maxMessageBytes ({most:,})",
            source=str(consumer.subscription.destination),
            message_id=_id_of(consumer.dialect, message.identifier),
        )


def _acknowledged(consumer: Consumer, ids: Sequence[bytes]) -> bool:
    try:
        consumer.await_receipt(consumer.acknowledge(ids))
    except ConnectionLostError as error:
        _log.warning("= %d messages that were sent away are not acknowledged: %s", len(ids), error.fact)
        return False
    return True


def _letter_of(consumer: Consumer, run: FrameRun, index: int, reason: str) -> DeadLetter:
    start, head, end = run.start(index), run.heads[index], run.ends[index]
    return DeadLetter(
        head=bytes(run.octets[start:head]),
        body=bytes(run.octets[head + 2 : end - 2]),  # without NUL LF
        reason=reason,
        source=str(consumer.subscription.destination),
        message_id=_id_of(consumer.dialect, run.ids[index] or b""),
    )


def _id_of(dialect: Dialect, identifier: bytes) -> str:
    own = identifier if dialect.stable_id_separator is None else dialect.stable_id(identifier)
    return own.decode("utf-8", "replace")
