"""Frames (AMQP 1.0 §2.3): a header of eight bytes, a performative, a payload."""

import struct

from pyspark_jms.amqp.wire.limits import Limits
from pyspark_jms.amqp.wire.types import Performative, encode_performative
from pyspark_jms.amqp.wire.values import malformed

__all__ = ["AMQP_HEADER", "EMPTY_FRAME", "SASL_HEADER", "frame", "frame_size"]

AMQP_HEADER, SASL_HEADER = b"AMQP\0\1\0\0", b"AMQP\3\1\0\0"
"""§2.2, §5.3.2: each peer sends one first."""

_HEADER = struct.Struct(">IBBH")
HEADER_BYTES = _HEADER.size
EMPTY_FRAME = _HEADER.pack(8, 2, 0, 0)
"""§2.4.5: keeps a connection alive."""


def frame(channel: int, performative: Performative, payload: bytes = b"", *, sasl: bool = False) -> bytes:
    body = encode_performative(performative) + payload
    return _HEADER.pack(len(body) + HEADER_BYTES, 2, int(sasl), channel) + body


def frame_size(buffer: bytearray | memoryview, position: int, limits: Limits) -> int:
    """Bytes of the frame that begins here, of which at least eight are in the buffer."""
    size = int.from_bytes(buffer[position : position + 4], "big")
    offset = buffer[position + 4] * 4
    if not HEADER_BYTES <= offset <= size:
        raise malformed(f"a frame of {size} bytes whose body begins at {offset}")
    if size > limits.max_frame_bytes:
        raise malformed(f"a frame of {size:,} bytes, and {limits.max_frame_bytes:,} are allowed")
    return size
