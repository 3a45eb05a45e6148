"""What a receiving link has in flight: messages to be taken, credit for more, and whether the queue is empty."""

import contextlib
import logging
import time

from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.link.pull import drain
from pyspark_jms.amqp.wire.credit import CreditWindow
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import OversizedMessage
from pyspark_jms.errors import ReceiptTimeoutError
from pyspark_jms.jms.subscription import Subscription

__all__ = ["LOST_CREDIT", "Prefetch"]

_log = logging.getLogger("pyspark_jms.link")

LOST_CREDIT = "lostCredit"
"""The metric of the credit that the broker used up without a message, as far as it was noticed."""

_BLOCK_BYTES, _BLOCK_MESSAGES = 15 << 20, 1 << 14
"""A block is closed at this size, nearly what a task reads by default, or at this number of messages: the columns of
more small messages leave the cache while they are decoded, which then takes half as long again.
"""
_AT_ONCE_SECONDS = 0.2
"""What arrives so soon after more credit was granted was held back without it."""


class Prefetch:
    """``grant`` is called with ``connection.condition`` held, after bytes have arrived and by ``released``."""

    def __init__(
        self, connection: Connection, receiver: Receiver, subscription: Subscription, *, paused: bool = False
    ) -> None:
        """``paused``: no credit before ``resume``."""
        self.receiver = receiver
        self._connection = connection
        most = (subscription.window_messages, connection.dialect.max_unacknowledged)
        self._window = CreditWindow(subscription.window_bytes, min((each for each in most if each), default=None))
        self._counted_messages = self._counted_bytes = 0
        self._grants = not paused
        self._blocks: list[MessageBlock] = []
        self._proven_before = 0
        self._tried = 0.0
        self._quiet_periods = 0
        self._warned = False
        connection.condition.counts[LOST_CREDIT] += 0  # the progress has the metric from the beginning

    # --- credit --------------------------------------------------------------------------------

    def grant(self) -> None:
        """Count what has arrived, and grant credit for more."""
        transfers, receiver = self.receiver.transfers, self.receiver
        if arrived := transfers.total_messages - self._counted_messages:
            self._note_lost_credit(arrived)
            self._quiet_periods = 0
        self._window.received(arrived, transfers.total_bytes - self._counted_bytes)
        self._counted_messages, self._counted_bytes = transfers.total_messages, transfers.total_bytes
        if transfers.size >= _BLOCK_BYTES or len(transfers) >= _BLOCK_MESSAGES:
            self._blocks.append(transfers.take())
        if receiver.is_draining or not receiver.is_ready or not self._grants:
            return
        credit = self._window.credit()
        if self._window.is_worth_a_flow(credit, receiver.credit):
            receiver.grant(credit)

    def pause(self) -> None:
        """Take the credit back. Returns when the broker can send no more messages until ``resume``."""
        self._grants = False
        drain(self._connection, self.receiver)

    def resume(self) -> None:
        with self._connection.core():
            self._grants = True
            self.grant()

    def try_more(self) -> None:
        """Nothing arrives, and perhaps the broker has lost the credit.

        Artemis takes credit for a message that it then cannot convert, moves the message to its dead-letter queue, and
        sends no notice. It delivers again when it is granted more than it has lost. The longer nothing arrives, the
        less often this is tried: a message that happens to arrive right after a try looks like lost credit. After such
        a message the next try comes later, so that messages at regular intervals arrive without a try.
        """
        receiver = self.receiver
        self._quiet_periods += 1
        periods = self._quiet_periods - self._window.helped
        if periods < 1 or periods & (periods - 1):
            return  # not 1, 2, 4, 8, …
        if receiver.credit and receiver.is_ready and not receiver.is_draining:
            self._window.try_more()
            self._tried = time.monotonic()
            receiver.grant(self._window.credit())

    def _note_lost_credit(self, arrived: int) -> None:
        at_once = time.monotonic() - self._tried < _AT_ONCE_SECONDS
        left = 0 if self.receiver.is_draining else self.receiver.credit
        lost = self._window.has_helped(arrived, at_once=at_once, left=left)
        self._connection.condition.counts[LOST_CREDIT] += lost
        if lost and not self._warned:
            self._warned = True
            _log.warning(
                "! %s used up credit for messages that it did not deliver. Artemis moves a CORE StreamMessage with"
                " bytes, and a CORE ObjectMessage of null, to the dead-letter queue when an AMQP client reads them",
                self._connection.address,
            )

    def released(self, messages: int) -> None:
        """They are acknowledged, and make room for others."""
        self._window.released(messages)
        self.grant()

    # --- messages ------------------------------------------------------------------------------

    def waiting(self) -> tuple[int, int]:
        with self._connection.condition:
            transfers = self.receiver.transfers
            messages = len(transfers) + sum(map(len, self._blocks))
            return messages, transfers.size + sum(len(block.data) for block in self._blocks)

    def take(self, *, only_full: bool = False) -> list[MessageBlock]:
        """``only_full``: without the open block, to which messages are still added."""
        with self._connection.condition:
            blocks, self._blocks = self._blocks, []
            if not only_full and len(self.receiver.transfers):
                blocks.append(self.receiver.transfers.take())
            return blocks

    def take_oversized(self) -> list[OversizedMessage]:
        """The messages above ``maxMessageBytes`` since the last call."""
        with self._connection.condition:
            transfers = self.receiver.transfers
            oversized, transfers.oversized = transfers.oversized, []
            return oversized

    # --- the end of a queue --------------------------------------------------------------------

    def begin_probe(self) -> None:
        with self._connection.core():
            self._proven_before = self.receiver.proven_empty
            self.receiver.drain(max(self._window.credit(), 1))

    @property
    def is_probed(self) -> bool:
        """Whether the queue is proven to be empty, or not to be."""
        return self.receiver.proven_empty > self._proven_before or bool(self.waiting()[0])

    def await_probe(self) -> None:
        """Wait until ``is_probed``. An answer that proves nothing, or none, is followed by another drain."""
        while not self.is_probed:
            with contextlib.suppress(ReceiptTimeoutError):
                drain(self._connection, self.receiver, max(self._window.credit(), 1), until=lambda: self.is_probed)
        with self._connection.core():
            self.grant()
