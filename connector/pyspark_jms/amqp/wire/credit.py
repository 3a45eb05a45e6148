"""The prefetch window in bytes → link credit, which counts messages. Pure."""

from dataclasses import dataclass

from pyspark_jms.jms.subscription import ASSUMED_MESSAGE_BYTES

__all__ = ["MAX_CREDIT", "CreditWindow"]

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
    """What is received and not acknowledged, and how many more messages fit beside it."""

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
        """How many messages the broker may send now: at least one while nothing is in flight, so that one large
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
