"""Transfer frames in what the socket gave → bare messages in a block. The receiver's hot path.

``take_plain`` handles the usual frame, a whole message in one transfer, without an object for it. It stops at the first
frame of another shape, which goes the general way by ``Transfer``.
"""

import struct
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from pyspark_jms.amqp.wire.constructors import BIN8, FIXED_WIDTHS, SMALL_UINT, UINT, UINT_0
from pyspark_jms.amqp.wire.limits import Limits
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import OversizedMessage
from pyspark_jms.errors import MessageTooLargeError

__all__ = ["Transfers", "plain_handle"]

Bytes: TypeAlias = bytes | bytearray | memoryview

_PLAIN = 0x0200_0000_0053_14C0
"""Bytes 4 to 12 of the usual frame: offset 2, type AMQP, channel 0, descriptor of transfer, list8."""
_SHORTEST = 20
_LIST_SIZE, _LIST_BEGIN, _HANDLE = 12, 13, 14
"""Positions in the usual frame. The size of the list counts from ``_LIST_BEGIN``."""
_ID_BYTES = {code: FIXED_WIDTHS[code] for code in (UINT_0, SMALL_UINT, UINT)}
"""Constructors (§1.6) of a delivery-id → bytes of its value."""
_NOTHING = b"\x40\x42\x43"
"""null, false and 0."""
_WHOLE = struct.Struct(">I")


class _Shape(NamedTuple):
    """What frames have in common that differ in their sizes, delivery-ids, tags and payloads only."""

    unpack: Callable[[Bytes, int], tuple[Any, ...]]
    """A frame → its size, signature, ``head``, delivery-id, ``middle`` and ``tail``."""
    width: int
    """Bytes before the payload."""
    head: bytes
    middle: bytes
    tail: bytes
    zeros: bytes
    """What the delivery-id lacks of four bytes."""


class Transfers:
    """The open block of one receiver on channel 0. Ids are delivery-ids of four bytes."""

    def __init__(self, limits: Limits, head_bytes: int | None = None) -> None:
        """``head_bytes``: how much to keep of each message, for messages that are acknowledged and not read."""
        self._head_bytes = head_bytes
        self._max_bytes = limits.max_message_bytes
        self._keep_oversized = limits.keep_oversized
        self._max_delivery_bytes = limits.max_delivery_bytes
        self._data = bytearray()
        self._block = MessageBlock(self._data)
        self._partial: bytearray | None = None
        self._partial_id = b""
        self._delivery_bytes = 0
        self._large: OversizedMessage | None = None
        self.total_messages = self.total_bytes = 0
        """Of all blocks: what was kept."""
        self.oversized: list[OversizedMessage] = []
        """Messages above the limit, in the order of their ends."""

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

    def take_plain(self, buffer: Bytes, position: int, handle: int = 0) -> tuple[int, int]:
        """Take whole messages of the peer's ``handle`` from here on. Returns the position of the first other frame, and
        how many were taken.
        """
        if self._partial is not None:
            return position, 0
        view, before, size_before = memoryview(buffer), len(self._block), len(self._data)
        while (shape := _shape_of(view, position, handle)) is not None:
            end = self._take_alike(view, position, shape)
            if end == position:
                break
            position = end
        taken = len(self._block) - before
        self.total_messages += taken
        self.total_bytes += len(self._data) - size_before
        return position, taken

    def _take_alike(self, view: memoryview, position: int, shape: _Shape) -> int:
        """Take the messages of frames of one shape. Returns the position of the first other frame."""
        unpack, width, head, middle, tail, zeros = shape
        data, ends, ids = self._data, self._block.ends, self._block.ids
        last, limit, kept = len(view), self._max_bytes, self._head_bytes
        while last - position >= width:
            size, signature, own_head, identifier, own_middle, own_tail = unpack(view, position)
            if signature != _PLAIN or own_head != head or own_middle != middle or own_tail != tail:
                break
            end = position + size
            if end > last or size > limit or size < width:
                break
            begin = position + width
            data += view[begin:end] if kept is None else view[begin : min(begin + kept, end)]
            ends.append(len(data))
            ids.append(zeros + identifier)
            position = end
        return position

    def add(self, delivery_id: int | None, payload: Bytes, *, more: bool, aborted: bool) -> bool:
        """The general way: one transfer. Returns whether it ended a delivery (§2.6.14)."""
        if self._partial is None:
            self._partial = bytearray()
            self._partial_id = _WHOLE.pack(delivery_id or 0)
            self._delivery_bytes = 0
        self._extend(self._partial, payload)
        if more and not aborted:
            return False
        whole, self._partial = self._partial, None
        large, self._large = self._large, None
        if aborted:
            return True
        if large is not None:
            self.oversized.append(large)
            self.total_messages += 1
            return True
        kept = memoryview(whole)[: self._head_bytes]
        self._data += kept
        self.total_messages += 1
        self.total_bytes += len(kept)
        self._block.ends.append(len(self._data))
        self._block.ids.append(self._partial_id)
        return True

    def _extend(self, partial: bytearray, payload: Bytes) -> None:
        self._delivery_bytes += max(len(payload), 1)  # an empty transfer also counts: they may never end either
        if self._delivery_bytes > self._max_delivery_bytes:
            raise MessageTooLargeError(
                f"A message has not ended after {self._delivery_bytes:,} bytes.",
                "It stays on the broker. Take it off with another client. If no producer sends such a message, look at"
                " the broker.",
            )
        if self._large is None and len(partial) + len(payload) > self._max_bytes:
            self._large = OversizedMessage(b"", self._partial_id, self._keep_oversized())
            self._large.add(partial)
            partial.clear()
        if self._large is None:
            partial += payload
        else:
            self._large.add(payload)


def plain_handle(view: Bytes, position: int) -> int | None:
    """The handle of the link to which the frame here belongs, if the frame may be a plain transfer."""
    if len(view) - position < _SHORTEST:
        return None
    if view[position + _HANDLE] == UINT_0:
        return 0
    return view[position + _HANDLE + 1] if view[position + _HANDLE] == SMALL_UINT else None


def _shape_of(view: memoryview, position: int, handle: int) -> _Shape | None:
    """The shape of the frame here; None: it is not plain, or its first bytes are not here yet."""
    if len(view) - position < _SHORTEST:
        return None
    width = _LIST_BEGIN + view[position + _LIST_SIZE]
    first = bytes(view[position : position + width])
    if len(first) < width or width <= _HANDLE or plain_handle(view, position) != handle:
        return None
    at = _HANDLE + (1 if first[_HANDLE] == UINT_0 else 2)
    if width <= at or first[at] not in _ID_BYTES:
        return None
    id_bytes = _ID_BYTES[first[at]]
    tag = at + 1 + id_bytes
    if width < tag + 2 or first[tag] != BIN8:
        return None
    tail = tag + 2 + first[tag + 1]
    if tail > width or first[tail:].strip(_NOTHING):
        return None
    layout = struct.Struct(f">IQ{at + 1 - _LIST_SIZE}s{id_bytes}s2s{tail - tag - 2}x{width - tail}s")
    return _Shape(
        layout.unpack_from, width, first[_LIST_SIZE : at + 1], first[tag : tag + 2], first[tail:], bytes(4 - id_bytes)
    )
