"""A MESSAGE frame larger than is allowed: its headers, and its body on its way to where it is kept. Opens nothing."""

from typing import BinaryIO

__all__ = ["OversizedMessage"]


class OversizedMessage:
    """``head`` is the frame up to its blank line, ``identifier`` as ``FrameRun`` has it, ``size`` counts the body's
    bytes so far. ``body`` None: it is not kept.
    """

    def __init__(self, head: bytes, identifier: bytes, body: BinaryIO | None) -> None:
        self.head = head
        self.identifier = identifier
        self.body = body
        self.size = 0

    def add(self, part: memoryview) -> None:
        self.size += len(part)
        if self.body is not None:
            self.body.write(part)

    def __repr__(self) -> str:
        return f"OversizedMessage({self.size:,} bytes)"
