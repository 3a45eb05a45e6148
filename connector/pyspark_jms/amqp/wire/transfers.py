"""Transfer frames in what the socket gave → bare messages in a block. The receiver's hot path.

``take_plain`` handles the usual frame, a whole message in one transfer, without an object for it. It stops at the first
frame of another shape, which goes the general way by ``Transfer``.
"""

import struct

from pyspark_jms.amqp.wire.limits import Limits
from pyspark_jms.blocks.block import MessageBlock

__all__ = ["Transfers"]

_HEAD = struct.Struct(">IQ").unpack_from
_PLAIN = 0x0200_0000_0053_14C0
"""Bytes 4 to 12 of the usual frame: offset 2, type AMQP, channel 0, descriptor of transfer, list8."""
_SHORTEST = 20
_ZERO, _SMALL_UINT, _UINT, _BINARY = 0x43, 0x52, 0x70, 0xA0
"""Constructors (§1.6) of the fields of a usual transfer."""
_NOTHING = b"\x40\x42\x43"
"""null, false and 0."""
_WHOLE = struct.Struct(">I")


class Transfers:
    """The open block of one receiver, whose link has handle 0 on channel 0. Ids are delivery-ids of four bytes."""

    def __init__(self, limits: Limits) -> None:
        self._max_bytes = limits.max_message_bytes
        self._data = bytearray()
        self._block = MessageBlock(self._data)
        self._partial: bytearray | None = None
        self._partial_id = b""
        self._partial_size = 0
        self.total_messages = self.total_bytes = 0
        """Of all blocks."""
        self.oversized: list[tuple[bytes, int]] = []
        """Delivery-id and size of messages that were passed over."""

    def __len__(self) -> int:
        """Whole messages in the open block."""
        return len(self._block)

    @property
    def size(self) -> int:
        return len(self._data)

    @property
    def is_inside_message(self) -> bool:
        return self._partial is not None

    def take(self) -> MessageBlock:
        """The open block; the next message begins a new one."""
        block, self._data = self._block, bytearray()
        self._block = MessageBlock(self._data)
        return block

    def take_plain(self, buffer: bytearray, position: int) -> tuple[int, int]:
        """Take whole messages from here on. Returns the position of the first other frame, and how many were taken."""
        if self._partial is not None:
            return position, 0
        data, ends, ids = self._data, self._block.ends, self._block.ids
        last, limit, first, size_before = len(buffer), self._max_bytes, len(ends), len(data)
        while last - position >= _SHORTEST:
            size, signature = _HEAD(buffer, position)
            if signature != _PLAIN or position + size > last or size > limit or buffer[position + 14] != _ZERO:
                break
            begin = position + 13 + buffer[position + 12]
            delivery, at = _delivery_id(buffer, position + 15)
            if delivery is None or buffer[at] != _BINARY:
                break
            at += 2 + buffer[at + 1]
            if not at <= begin <= position + size or not _is_whole(buffer, at, begin):
                break
            data += buffer[begin : position + size]
            ends.append(len(data))
            ids.append(delivery)
            position += size
        taken = len(ends) - first
        self.total_messages += taken
        self.total_bytes += len(data) - size_before
        return position, taken

    def add(self, delivery_id: int | None, payload: bytes, *, more: bool, aborted: bool) -> bool:
        """The general way: one transfer. Returns whether it ended a delivery (§2.6.14)."""
        if self._partial is None:
            self._partial, self._partial_size = bytearray(), 0
            self._partial_id = _WHOLE.pack(delivery_id or 0)
        self._partial_size += len(payload)
        if self._partial_size <= self._max_bytes:
            self._partial += payload
        else:
            self._partial.clear()
        if more and not aborted:
            return False
        whole, self._partial = self._partial, None
        if aborted:
            return True
        if self._partial_size > self._max_bytes:
            self.oversized.append((self._partial_id, self._partial_size))
            self.total_messages += 1
            return True
        self._data += whole
        self.total_messages += 1
        self.total_bytes += len(whole)
        self._block.ends.append(len(self._data))
        self._block.ids.append(self._partial_id)
        return True


def _delivery_id(buffer: bytearray, at: int) -> tuple[bytes | None, int]:
    """The delivery-id as four bytes, and where the next field begins. None: it is missing."""
    code = buffer[at]
    if code == _UINT:
        return bytes(buffer[at + 1 : at + 5]), at + 5
    if code == _SMALL_UINT:
        return b"\0\0\0" + buffer[at + 1 : at + 2], at + 2
    return (b"\0\0\0\0", at + 1) if code == _ZERO else (None, at)


def _is_whole(buffer: bytearray, at: int, end: int) -> bool:
    """Whether the fields message-format, settled, more, … are all 0, false or null: a whole message, not aborted."""
    return not buffer[at:end].strip(_NOTHING)
