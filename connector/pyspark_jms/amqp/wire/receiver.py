"""A receiving link: credit out, messages in, settled acceptances out (AMQP 1.0 §2.6.7, §2.6.12).

``Transfers`` joins transfer frames to bare messages of a block. Its ``take_plain`` handles the usual frame, a whole
message in one transfer, without an object for it. It stops at the first frame of another shape, which goes the general
way by ``Transfer``.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pyspark_jms.amqp.wire.constructors import BIN8, FIXED_WIDTHS, SMALL_UINT, UINT, UINT_0
from pyspark_jms.amqp.wire.link import Channel, Link
from pyspark_jms.amqp.wire.sections import Buffer
from pyspark_jms.amqp.wire.types import (
    Accepted,
    Attach,
    Disposition,
    Flow,
    Limits,
    Released,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from pyspark_jms.amqp.wire.values import malformed
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import OversizedMessage
from pyspark_jms.errors import MessageTooLargeError, PrefetchExceededError

__all__ = ["Receiver", "Transfers", "plain_handle"]

_UNSETTLED, _FIRST = 0, 0
_SEQUENCE, _HALF = 1 << 32, 1 << 31  # RFC 1982 serial numbers


class Receiver(Link):
    is_receiver = True

    def __init__(self, channel: Channel, name: str, handle: int) -> None:
        super().__init__(channel, name, handle)
        self.transfers = Transfers(channel.limits)
        self.is_selective = False
        """Whether the attach has a selector."""
        self.is_plain = False
        """Whether the attach is not to a durable subscription."""
        self.credit = 0
        """Granted last, and not used up by messages."""
        self._allowed = 0
        """How many messages the peer may still send. It is above ``credit`` after a lower credit was granted, because
        the peer may have sent more before it got to know, and after an answer to an earlier drain."""
        self._most = 0
        """The highest credit that was granted."""
        self._tolerated = 0
        """How many messages beyond the credit do not end the connection. Artemis (2.55) sent hundreds after a credit
        that was lower than what it had used, perhaps because proton-j computes what is left as an unsigned number."""
        self.received = 0
        """Deliveries so far."""
        self.unanswered: set[int] = set()
        """Deliveries that were accepted unsettled, and whose acceptance the peer has not confirmed."""
        self._draining_since: int | None = None
        self._drain_was_answered = True
        self.proven_empty = 0
        """Answered drains that prove an empty queue: no message came, and the drain before was answered too. A drain
        whose credit the messages use up exactly has no answer, and its late end may answer the next one (Artemis)."""

    def attach_to(self, source: Source | None, *, desired: tuple[str, ...] | None = None) -> None:
        self.is_selective = source is not None and bool(source.filter)
        self.is_plain = source is not None and not source.durable
        self.attach(
            snd_settle_mode=_UNSETTLED,
            rcv_settle_mode=_FIRST,
            source=source,
            target=Target(address=self.name),
            desired_capabilities=desired,
        )

    def on_attach(self, attach: Attach) -> None:
        super().on_attach(attach)
        self.delivery_count = attach.initial_delivery_count or 0

    @property
    def remote_source(self) -> Source | None:
        source = None if self.remote is None else self.remote.source
        return source if isinstance(source, Source) else None

    # --- credit --------------------------------------------------------------------------------

    def grant(self, credit: int) -> None:
        """Let the peer send this many messages from now on."""
        self._allow(credit)
        self._flow(drain=False)

    def drain(self, credit: int) -> None:
        """The peer sends what it has, at most ``credit`` messages, and then reports the rest of the credit as used."""
        if self._draining_since is not None:
            self._drain_was_answered = False
        self._draining_since = self.received
        self._allow(credit)
        self._flow(drain=True)

    def _allow(self, credit: int) -> None:
        if credit < self.credit:
            self._tolerated = self._most
        self.credit = credit
        self._allowed, self._most = max(self._allowed, credit), max(self._most, credit)

    def _flow(self, *, drain: bool) -> None:
        count = self.delivery_count % _SEQUENCE
        self.channel.flow(handle=self.handle, delivery_count=count, link_credit=self.credit, drain=drain)

    def on_flow(self, flow: Flow) -> None:
        if not flow.drain or flow.link_credit or self._draining_since is None:
            return
        if flow.delivery_count is not None:
            self._give_up((flow.delivery_count - self.delivery_count) % _SEQUENCE)
            self.delivery_count = flow.delivery_count
        self.credit = self._tolerated = 0
        if self._drain_was_answered and self.received == self._draining_since:
            self.proven_empty += 1
        self._draining_since, self._drain_was_answered = None, True

    def _give_up(self, credit: int) -> None:
        """The peer has advanced its delivery count by this much credit, for which it sent no message (§2.6.7).

        An answer to an earlier drain gives up less than the last one asked for: the peer may still use the rest.
        """
        if credit < _HALF:  # else the count went back, which allows nothing
            begun = self.transfers.is_inside_message  # its credit is taken off already
            self._allowed = max(0, self._allowed - credit + begun) if credit < self.credit else 0

    @property
    def is_draining(self) -> bool:
        return self._draining_since is not None

    # --- messages ------------------------------------------------------------------------------

    def take_plain(self, buffer: Buffer, position: int, handle: int = 0) -> tuple[int, int]:
        """Take transfers that look alike, as ``Transfers.take_plain`` does."""
        position, messages = self.transfers.take_plain(buffer, position, handle)
        self._use(messages)
        self._count(messages)
        return position, messages

    def on_transfer(self, transfer: Transfer, payload: bytes | memoryview) -> None:
        if transfer.delivery_id is None and not self.transfers.is_inside_message:
            raise malformed("a first transfer of a message without a delivery-id")
        if not self.transfers.is_inside_message:
            self._use(1)  # before its bytes are kept, of which there may be many
        more, aborted = bool(transfer.more), bool(transfer.aborted)
        self._count(int(self.transfers.add(transfer.delivery_id, payload, more=more, aborted=aborted)))

    def _use(self, messages: int) -> None:
        beyond = max(0, messages - self._allowed)
        if beyond > self._tolerated:
            raise PrefetchExceededError(
                f"The broker sent a message on link {self.name!r} beyond the credit that it was granted"
                " (amqp:link:transfer-limit-exceeded), against AMQP 1.0.",
                "The connector ended the connection, because its memory would have no limit. If brokerUrl leads to a"
                " broker of docs/brokers, report this with its version. Otherwise look at what is between the broker"
                " and Spark.",
            )
        self._allowed -= messages - beyond
        self._tolerated -= beyond

    def _count(self, messages: int) -> None:
        self.received += messages
        self.delivery_count += messages
        self.credit = max(0, self.credit - messages)
        if messages and not self.credit and self._draining_since is not None:
            # The credit of the drain is used up exactly: no answer will come.
            self._draining_since, self._drain_was_answered = None, False

    # --- settlement ----------------------------------------------------------------------------

    def accept(self, ids: Sequence[bytes | None], txn_id: bytes | None = None, *, settled: bool = True) -> None:
        """Settle deliveries as accepted, inside a transaction if there is one.

        Outside of a transaction nothing confirms it. Inside, ``accepted`` is the only outcome that brokers carry out.
        Not ``settled``: the peer answers, and until then ``unanswered`` has the deliveries (§4.4.2). It ignores the
        acceptance of a delivery that it has taken back.
        """
        state: Any = Accepted() if txn_id is None else TransactionalState(txn_id=txn_id, outcome=Accepted())
        for first, last in ranges_of(ids):
            self.channel.send(Disposition(role=True, first=first, last=last, settled=settled, state=state))
            if not settled:
                self.unanswered.update(range(first, last + 1))

    def on_disposition(self, disposition: Disposition, first: int, last: int) -> None:
        """The peer's answer to what was accepted unsettled."""
        state = disposition.state
        if isinstance(state, TransactionalState) and isinstance(state.outcome, Accepted):
            self.unanswered.difference_update(range(first, last + 1))

    def release(self, ids: Sequence[bytes | None]) -> None:
        """Give deliveries back; their delivery counts stay."""
        for first, last in ranges_of(ids):
            self.channel.send(Disposition(role=True, first=first, last=last, settled=True, state=Released()))


def ranges_of(ids: Sequence[bytes | None]) -> list[tuple[int, int]]:
    """Delivery-ids of four bytes → ranges of consecutive ones, both ends included."""
    numbers = np.frombuffer(b"".join(filter(None, ids)), ">u4").astype(np.int64)
    if not len(numbers):
        return []
    cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
    firsts, lasts = numbers[np.concatenate([[0], cuts])], numbers[np.concatenate([cuts, [len(numbers)]]) - 1]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


# --- from transfer frames to whole messages: the hot path -------------------------------------------

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
    """The common parts of frames that differ in their sizes, delivery-ids, tags and payloads only."""

    unpack: Callable[[Buffer, int], tuple[Any, ...]]
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
        """Return the number of whole messages in the open block."""
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

    def take_plain(self, buffer: Buffer, position: int, handle: int = 0) -> tuple[int, int]:
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

    def add(self, delivery_id: int | None, payload: Buffer, *, more: bool, aborted: bool) -> bool:
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

    def _extend(self, partial: bytearray, payload: Buffer) -> None:
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


def plain_handle(view: Buffer, position: int) -> int | None:
    """The handle of the link to which the frame here belongs, if the frame may be a plain transfer."""
    if len(view) - position < _SHORTEST:
        return None
    if view[position + _HANDLE] == UINT_0:
        return 0
    return view[position + _HANDLE + 1] if view[position + _HANDLE] == SMALL_UINT else None


def _shape_of(view: memoryview, position: int, handle: int) -> _Shape | None:
    """Return the shape of the frame, or None if it is not plain, or if its first bytes are not here yet."""
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
