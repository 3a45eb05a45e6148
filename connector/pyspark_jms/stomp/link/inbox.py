"""The messages that a connection has received and nobody has taken yet."""

import tempfile
from collections.abc import Callable
from typing import BinaryIO, Literal

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import JMSError
from pyspark_jms.network.arrivals import Arrivals
from pyspark_jms.stomp.wire.oversized import OversizedMessage, not_kept
from pyspark_jms.stomp.wire.scan import FrameScanner

__all__ = ["SEGMENT_BYTES", "Inbox"]

SEGMENT_BYTES = 15 << 20
"""A block is closed at this size, nearly what a task reads by default, since decoding a block takes at least 2 ms."""


def _nowhere() -> None:
    return None


def _temporary_file() -> BinaryIO:
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise not_kept(error) from None


_OVERSIZED: dict[str, Callable[[], BinaryIO | None] | None] = {
    "stop": None,
    "skip": _nowhere,
    "deadLetter": _temporary_file,  # the body may be larger than memory allows; the file ends with the process
}
"""Where the body of a message above maxMessageBytes is kept, by the value of option onTooLarge."""


class Inbox:
    """Filled by the io thread and emptied by another one; ``changed`` guards it."""

    def __init__(
        self, changed: Arrivals, *, max_body_bytes: int, on_too_large: Literal["stop", "skip", "deadLetter"]
    ) -> None:
        self._changed = changed
        self._scanner = FrameScanner(max_body_bytes=max_body_bytes, keep_oversized=_OVERSIZED[on_too_large])
        self._blocks: list[MessageBlock] = []
        self.received_bytes = 0
        """Without heart-beats."""

    def set_ack_header(self, name: str | None) -> None:
        """The header whose value ACK takes, if it is not ``message-id``."""
        self._scanner.ack_header = name.encode() if name else None

    def feed(self, data: memoryview) -> list[bytes]:
        """Keep the MESSAGE frames of ``data``, and return all other frames."""
        with self._changed:
            self.received_bytes += len(data) if len(data) > 1 else 0
            before = self._scanner.messages
            others = self._scanner.feed(data)
            if self._scanner.size >= SEGMENT_BYTES:
                self._blocks.append(self._scanner.take())
                before = -1
            if self._scanner.messages != before or self._scanner.oversized:
                self._changed.notify_all()
        return others

    def waiting(self) -> tuple[int, int]:
        """Messages and bytes received and not taken."""
        with self._changed:
            messages = self._scanner.messages + sum(map(len, self._blocks))
            return messages, self._scanner.size + sum(len(block.data) for block in self._blocks)

    def take(self) -> list[MessageBlock]:
        """The MESSAGE frames received since the last call, in blocks of about ``SEGMENT_BYTES``."""
        with self._changed:
            blocks, self._blocks = self._blocks, []
            if self._scanner.messages:
                blocks.append(self._scanner.take())
            return blocks

    def take_oversized(self) -> list[OversizedMessage]:
        """The messages above maxMessageBytes since the last call, unless onTooLarge ends the session for them."""
        with self._changed:
            oversized, self._scanner.oversized = self._scanner.oversized, []
            return oversized

    @property
    def refused(self) -> JMSError | None:
        """The error of a message that was too large to be received."""
        return self._scanner.refused
