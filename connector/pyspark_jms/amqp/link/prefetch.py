"""The prefetch window of a receiving link: messages to be taken, credit for more, and whether the queue is empty.

``CreditWindow`` computes the credit. It is pure.
"""

import contextlib
import logging
import time
from dataclasses import dataclass

from pyspark_jms.amqp.link.connection import QUIET_SECONDS, Connection
from pyspark_jms.amqp.link.pull import drain
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import OversizedMessage
from pyspark_jms.errors import ReceiptTimeoutError
from pyspark_jms.jms.subscription import ASSUMED_MESSAGE_BYTES, Subscription

__all__ = ["Prefetch"]

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
    """The connection's thread calls it from ``begin`` to ``end``."""

    def __init__(self, connection: Connection, receiver: Receiver, subscription: Subscription) -> None:
        self.receiver = receiver
        self._connection = connection
        most = (subscription.window_messages, connection.dialect.max_unacknowledged)
        self._own_bytes, self._shared = subscription.window_bytes, subscription.shared
        self._window = CreditWindow(subscription.window_bytes, min((each for each in most if each), default=None))
        self._counted_messages = self._counted_bytes = 0
        self._grants = self._tries_more = False
        self._blocks: list[MessageBlock] = []
        self._proven_before = 0
        self._arrived = time.monotonic()
        self._tried = 0.0
        self._quiet_periods = 0
        self._warned = False
        connection.condition.counts[LOST_CREDIT] += 0  # the progress has the metric from the beginning

    def begin(self, *, paused: bool = False, tries_more: bool = False) -> None:
        """``paused``: no credit before ``resume``. ``tries_more``: more credit while nothing comes."""
        with self._connection.core():
            self._grants, self._tries_more = not paused, tries_more
            self._connection.readers.append((self.on_received, self.on_time))
            self.grant()

    def end(self) -> None:
        with self._connection.condition:
            with contextlib.suppress(ValueError):
                self._connection.readers.remove((self.on_received, self.on_time))
            if self._shared is not None:
                self._shared.leave(self)

    # --- credit --------------------------------------------------------------------------------

    def on_received(self) -> None:
        """Called for every link of the connection. Most have got nothing, and have their credit."""
        if self.receiver.transfers.total_messages != self._counted_messages or not self.receiver.credit:
            self.grant()

    def grant(self) -> None:
        """Count what has arrived, and grant credit for more."""
        transfers, receiver = self.receiver.transfers, self.receiver
        if arrived := transfers.total_messages - self._counted_messages:
            self._note_lost_credit(arrived)
            self._arrived, self._quiet_periods = time.monotonic(), 0
        self._window.received(arrived, transfers.total_bytes - self._counted_bytes)
        self._counted_messages, self._counted_bytes = transfers.total_messages, transfers.total_bytes
        if transfers.size >= _BLOCK_BYTES or len(transfers) >= _BLOCK_MESSAGES:
            self._blocks.append(transfers.take())
        if receiver.is_draining or not receiver.is_ready or not self._grants:
            return
        if self._shared is not None:
            is_full = self._window.size > self._own_bytes // 2
            self._window.window_bytes = self._own_bytes + self._shared.part(self, is_full=is_full)
        credit = self._window.credit()
        if self._window.is_worth_a_flow(credit, receiver.credit):
            receiver.grant(credit)

    def begin_pause(self) -> None:
        """Send what ``pause`` waits for."""
        self._grants = False
        with self._connection.core():
            if self.receiver.credit and not self.receiver.is_draining:
                self.receiver.drain(self.receiver.credit)

    def pause(self) -> None:
        """Take the credit back. Returns when the broker can send no more messages until ``resume``."""
        self._grants = False
        drain(self._connection, self.receiver)

    def resume(self) -> None:
        with self._connection.core():
            self._grants = True
            self.grant()

    def on_time(self, now: float) -> None:
        is_quiet = now - self._arrived >= QUIET_SECONDS and not self.receiver.transfers.is_inside_message
        if self._tries_more and is_quiet:
            self.try_more()

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
        if self._shared is not None and self._window.size <= self._own_bytes // 2:
            self._shared.leave(self)
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
        """Return whether the queue is proven to be empty, or not to be."""
        return self.receiver.proven_empty > self._proven_before or bool(self.waiting()[0])

    def await_probe(self) -> None:
        """Wait until ``is_probed``. An answer that proves nothing, or none, is followed by another drain."""
        while not self.is_probed:
            with contextlib.suppress(ReceiptTimeoutError):
                drain(self._connection, self.receiver, max(self._window.credit(), 1), until=lambda: self.is_probed)
        with self._connection.core():
            self.grant()


# --- the prefetch window in bytes → link credit, which counts messages ------------------------------

MAX_CREDIT = 2_000
"""Artemis converts as many messages as it has credit for before it writes the first one, and goes through all that are
not written for each write. With a credit of 100,000 it wrote nothing for seconds.
"""
_MAX_LOST = 100_000
"""What is granted beside it for credit that a broker has lost."""
_SURE = 3
"""After so many tries in a row that helped, credit is taken for lost: after one, a message may come by chance."""

_HARMLESS_BYTES = 8 << 20
"""Credit for so many bytes stands in a full window. Less would come before the peer reads that its credit is gone, and
Artemis may then send hundreds of messages beyond both credits (see ``Receiver``).
"""
_MIN_MEAN_BYTES = 64
_WORTH_A_FLOW = 4
"""A grant is worth a frame when it raises the credit by this part of the window or by half of ``MAX_CREDIT``, or when
no credit is left.
"""


@dataclass(slots=True)
class CreditWindow:
    """Counts what is received and not acknowledged, and computes how many more messages fit beside it."""

    window_bytes: int
    window_messages: int | None = None
    messages: int = 0
    """Received and not released."""
    size: int = 0
    """Their bytes."""
    lost: int = 0
    """Credit that the peer does not have any more, and sent no message for. It is granted beside the rest."""
    _extra: int = 0
    """Granted for a moment, to see whether messages come that lost credit has held back."""
    helped: int = 0
    """How many tries in a row were followed by messages at once, while none came without a try."""
    _rest: int = 0
    """How many more messages may come of the try that has helped."""
    _seen_messages: int = 0
    _seen_bytes: int = 0

    def received(self, messages: int, size: int) -> None:
        self.messages += messages
        self.size += size
        self._seen_messages += messages
        self._seen_bytes += size

    def released(self, messages: int) -> None:
        """They are acknowledged. Their bytes are taken to be as many as those of the others in flight."""
        if self.messages:
            self.size -= self.size * messages // self.messages
        self.messages = max(0, self.messages - messages)

    def credit(self) -> int:
        """Return how many messages the broker may send now: at least one while nothing is in flight, so that one large
        message passes any window.
        """
        mean = ASSUMED_MESSAGE_BYTES if not self._seen_messages else max(self._seen_bytes // self._seen_messages, 1)
        fits = max(0, self.window_bytes - self.size) // max(mean, _MIN_MEAN_BYTES)
        if self.window_messages is not None:
            fits = min(fits, self.window_messages - self.messages)
        credit = max(fits, 0 if self.messages else 1)
        return min(credit, MAX_CREDIT) + self.lost + self._extra if credit else 0

    def try_more(self) -> None:
        """Nothing comes although there is credit: grant more for a moment, twice as much as the last time."""
        self._extra = min(max(1, 2 * self._extra), MAX_CREDIT)

    def has_helped(self, messages: int, *, at_once: bool, left: int) -> int:
        """So many messages have come. Returns how much credit turns out to be lost.

        ``at_once``: right after ``try_more``. A peer that has lost all credit then sends no more than what was granted
        beside it, and sends nothing without a try. ``left``: the credit of the link, which no peer has lost that sends.
        """
        extra, self._extra = self._extra, 0
        if left:
            self.lost = min(self.lost, left)
        if at_once and not extra and messages <= self._rest:
            self._rest -= messages
            return 0
        if not at_once or messages > extra:
            self.helped = self._rest = 0
            return 0
        self.helped += 1
        self._rest = extra - messages
        if self.helped < _SURE:
            return 0
        self.lost = min(self.lost + extra, _MAX_LOST)
        return extra

    def is_worth_a_flow(self, credit: int, left: int) -> bool:
        """``left``: what remains of the credit granted before.

        It is taken back if too many bytes could still come.
        """
        if credit < left:
            return credit == 0 and left * self.size > _HARMLESS_BYTES * self.messages
        worth = min((credit + self.messages) // _WORTH_A_FLOW, MAX_CREDIT // 2)
        return credit > left and (not left or credit - left >= max(1, worth))
