"""The messages that a connection has received and nobody has taken yet."""

from typing import Literal

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import KEPT, OversizedMessage
from pyspark_jms.errors import JMSError
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.stomp.link.prefetch_limit import NOT_SUBSCRIBED, PrefetchLimit
from pyspark_jms.stomp.wire.scan import FrameScanner

__all__ = ["SEGMENT_BYTES", "Prefetch"]

SEGMENT_BYTES = 15 << 20
"""A block is closed at this size, nearly what a task reads by default, since decoding a block takes at least 2 ms."""


class Prefetch:
    """Filled by the io thread and emptied by another one; ``condition`` guards it."""

    def __init__(
        self, condition: StateCondition, *, max_body_bytes: int, on_too_large: Literal["fail", "drop", "deadLetter"]
    ) -> None:
        self._condition = condition
        keep = None if on_too_large == "fail" else KEPT[on_too_large]
        self._scanner = FrameScanner(max_body_bytes=max_body_bytes, keep_oversized=keep)
        self._blocks: list[MessageBlock] = []
        self.received_bytes = 0
        """Without heart-beats."""
        self.limit: PrefetchLimit = NOT_SUBSCRIBED

    def set_ack_header(self, name: str | None) -> None:
        """The header whose value ACK takes, if it is not ``message-id``."""
        self._scanner.ack_header = name.encode() if name else None

    def feed(self, data: memoryview) -> list[bytes]:
        """Keep the MESSAGE frames of ``data``, and return all other frames.

        ``PrefetchExceededError`` if another message comes when those that wait exceed the limit.
        """
        with self._condition:
            self.received_bytes += len(data) if len(data) > 1 else 0
            before = self._scanner.messages
            waiting = self._all_waiting()
            others = self._scanner.feed(data)
            if self.limit.is_exceeded(*waiting) and self._all_waiting() > waiting:
                raise self.limit.error(*waiting)
            if self._scanner.size >= SEGMENT_BYTES:
                self._blocks.append(self._scanner.take())
                before = -1
            if self._scanner.messages != before or self._scanner.oversized:
                self._condition.notify_all()
        return others

    def waiting(self) -> tuple[int, int]:
        """Messages and bytes received and not taken."""
        with self._condition:
            messages = self._scanner.messages + sum(map(len, self._blocks))
            return messages, self._scanner.size + sum(len(block.data) for block in self._blocks)

    def _all_waiting(self) -> tuple[int, int]:
        """Count also the messages above maxMessageBytes, which occupy the broker's window, too."""
        messages, size = self.waiting()
        oversized = self._scanner.oversized
        return messages + len(oversized), size + sum(each.size for each in oversized)

    def take(self) -> list[MessageBlock]:
        """The MESSAGE frames received since the last call, in blocks of about ``SEGMENT_BYTES``."""
        with self._condition:
            blocks, self._blocks = self._blocks, []
            if self._scanner.messages:
                blocks.append(self._scanner.take())
            return blocks

    def take_oversized(self) -> list[OversizedMessage]:
        """The messages above maxMessageBytes since the last call, unless onTooLarge ends the session for them."""
        with self._condition:
            oversized, self._scanner.oversized = self._scanner.oversized, []
            return oversized

    @property
    def refused(self) -> JMSError | None:
        """The error of a message that was too large to be received."""
        return self._scanner.refused
