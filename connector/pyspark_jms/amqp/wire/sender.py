"""A sending link: messages → transfer frames, as far as credit and the session's window allow (AMQP 1.0 §2.6).

The ``Coordinator`` is the sending link to the transaction coordinator (part 4): declare and discharge, and what came of
them.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pyspark_jms.amqp.wire.link import Channel, Link, PeerError, peer_error
from pyspark_jms.amqp.wire.sections import Buffer
from pyspark_jms.amqp.wire.types import (
    Accepted,
    Declare,
    Declared,
    Discharge,
    Disposition,
    Flow,
    Modified,
    Received,
    Rejected,
    Released,
    Source,
    TransactionalState,
    encode_performative,
)
from pyspark_jms.amqp.wire.types import Coordinator as CoordinatorTarget
from pyspark_jms.amqp.wire.values import Described, encode
from pyspark_jms.blocks.block import MessageBlock, block_of, positions_of
from pyspark_jms.errors import IllegalStateError

__all__ = ["COORDINATOR", "Coordinator", "CoordinatorAnswer", "Sender"]

_MIXED, _FIRST = 2, 0
_SEQUENCE = 1 << 32
_WORD = struct.Struct(">I")
_UNKNOWN_ID = 0xFEFEFEFE
"""Stands in the template of a transfer for the delivery-id, which it holds twice: as number and as tag."""


class Sender(Link):
    is_receiver = False

    def __init__(self, channel: Channel, name: str, handle: int) -> None:
        super().__init__(channel, name, handle)
        self.credit = 0
        self.unsettled: set[int] = set()
        """Delivery-ids that were sent unsettled and have no outcome."""
        self.rejection: PeerError | None = None
        """The first outcome that was not ``accepted``."""

    def attach_to(self, target: Any) -> None:
        self.attach(
            snd_settle_mode=_MIXED,
            rcv_settle_mode=_FIRST,
            source=Source(address=self.name),
            target=target,
            initial_delivery_count=0,
        )

    def on_flow(self, flow: Flow) -> None:
        """Compute the credit. The peer's delivery count may be lower than ours (§2.6.7)."""
        if flow.link_credit is not None:
            missing = (self.delivery_count - (flow.delivery_count or 0)) % _SEQUENCE
            self.credit = max(0, flow.link_credit - missing)

    @property
    def sendable(self) -> int:
        """Return how many messages of one frame each can be sent now."""
        return min(self.credit, self.channel.sendable) if self.is_ready else 0

    def send(
        self, block: MessageBlock, first: int, last: int, *, settled: bool = True, txn_id: bytes | None = None
    ) -> int:
        """Send messages ``first`` to ``last`` (not included) of a block as far as that is possible now.

        Returns the index of the first message that was not sent.
        """
        last = min(last, first + self.sendable)
        if first >= last:
            return first
        delivery_id = self.channel.next_delivery_id(last - first)
        head = _transfer(self.handle, settled=settled, txn_id=txn_id)
        ends = positions_of(block.ends)[first:last]
        starts = np.concatenate([[block.start(first)], ends[:-1]])
        largest = int((ends - starts).max()) + len(head) + _WORD.size
        if largest <= self.channel.max_payload:
            frames = _whole_frames(block, starts, ends, head, delivery_id)
            self.channel.send_frames([frames], last - first)
        else:
            last = self._send_split(block, first, last, delivery_id, settled=settled, txn_id=txn_id)
        self.credit -= last - first
        self.delivery_count += last - first
        if not settled:
            self.unsettled.update(range(delivery_id, delivery_id + last - first))
        return last

    def _send_split(
        self, block: MessageBlock, first: int, last: int, delivery_id: int, *, settled: bool, txn_id: bytes | None
    ) -> int:
        """Messages that may be larger than a frame. A message is begun only if the window takes it whole, or if the
        window is as large as it gets: then the peer extends it while the message is sent.
        """
        view = memoryview(block.data)
        for index in range(first, last):
            piece = view[block.start(index) : block.ends[index]]
            self._send_one([piece], delivery_id + index - first, settled=settled, txn_id=txn_id)
        return last

    def send_pieces(self, pieces: Sequence[Buffer], *, settled: bool = True, txn_id: bytes | None = None) -> None:
        """Send one message whose bytes are in several places, without copying them. Only while ``sendable``."""
        delivery_id = self.channel.next_delivery_id(1)
        self._send_one(pieces, delivery_id, settled=settled, txn_id=txn_id)
        self.credit -= 1
        self.delivery_count += 1
        if not settled:
            self.unsettled.add(delivery_id)

    def _send_one(self, pieces: Sequence[Buffer], delivery_id: int, *, settled: bool, txn_id: bytes | None) -> None:
        whole, part = (_transfer(self.handle, settled=settled, txn_id=txn_id, more=more) for more in (False, True))
        identifier = _WORD.pack(delivery_id % _SEQUENCE)
        for payload, is_last in _payloads(pieces, self.channel.max_payload - len(part) - _WORD.size):
            head = (whole if is_last else part).replace(_WORD.pack(_UNKNOWN_ID), identifier)
            size = _WORD.size + len(head) + sum(map(len, payload))
            self.channel.send_frames([_WORD.pack(size) + head, *payload], 1)

    def on_disposition(self, disposition: Disposition, first: int, last: int) -> None:
        """Outcomes of deliveries of this link. Those inside a transaction count at its end."""
        known = {number for number in range(first, last + 1) if number in self.unsettled}
        if known and _is_final(disposition):
            self.unsettled -= known
            self.rejection = self.rejection or _refusal_of(disposition.state)


def _is_final(disposition: Disposition) -> bool:
    """Return whether the peer has decided on the deliveries. Before, it may tell how much of a message has arrived."""
    return bool(disposition.settled) or not isinstance(_outcome(disposition.state), Received | None)


def _refusal_of(state: Any) -> PeerError | None:
    """Return why the peer did not take a message, from the state in a final disposition, or None if it did (§3.4).

    RabbitMQ releases a message that no queue takes, and a router one that nobody takes at present.
    """
    outcome = _outcome(state)
    match outcome:
        case Accepted():
            return None
        case Rejected():
            return peer_error(outcome.error) or PeerError("amqp:rejected")
        case Released():
            return PeerError("amqp:released", "no queue or consumer took the message")
        case Modified():
            return PeerError("amqp:modified", "the message could not be delivered")
        case None | Received():
            return PeerError("amqp:illegal-state", "the message was settled without an outcome")
        case _:
            name = outcome.descriptor if isinstance(outcome, Described) else type(outcome).__name__
            return PeerError("amqp:not-implemented", f"the message has the unknown outcome {name}")


def _outcome(state: Any) -> Any:
    return state.outcome if isinstance(state, TransactionalState) else state


@lru_cache(maxsize=16)
def _transfer(handle: int, *, settled: bool, txn_id: bytes | None, more: bool = False) -> bytes:
    """A transfer frame without its size and payload. It has ``_UNKNOWN_ID`` in place of the delivery-id and the tag."""
    state = b"\x40" if txn_id is None else encode_performative(TransactionalState(txn_id=txn_id))
    identifier = _WORD.pack(_UNKNOWN_ID)
    fields = [
        b"\x70" + _WORD.pack(handle),
        b"\x70" + identifier,
        b"\xa0\x04" + identifier,
        b"\x43",
        encode(settled),
        encode(more),
        b"\x40",
        state,
    ]
    data = b"".join(fields)
    body = b"\x00\x53\x14\xd0" + struct.pack(">II", len(data) + 4, len(fields)) + data
    return b"\x02\x00\x00\x00" + body


def _payloads(pieces: Sequence[Buffer], room: int) -> Iterator[tuple[list[memoryview], bool]]:
    """The payload of each frame of a message, and whether it is the last one."""
    payload: list[memoryview] = []
    free = room
    for each in pieces:
        piece, at = memoryview(each), 0
        while at < len(piece):
            if not free:
                yield payload, False
                payload, free = [], room
            payload.append(piece[at : at + free])
            at += len(payload[-1])
            free -= len(payload[-1])
    yield payload, True


def _whole_frames(block: MessageBlock, starts: Any, ends: Any, head: bytes, delivery_id: int) -> bytes:
    """One frame for each message: the heads as one matrix, then heads and payloads in turn."""
    count, width = len(ends), len(head) + _WORD.size
    heads = np.empty((count, width), np.uint8)
    heads[:, 4:] = np.frombuffer(head, np.uint8)
    heads[:, :4] = (ends - starts + width).astype(">u4").view(np.uint8).reshape(-1, 4)
    ids = ((np.arange(count) + delivery_id) % _SEQUENCE).astype(">u4").view(np.uint8).reshape(-1, 4)
    at = head.index(_WORD.pack(_UNKNOWN_ID)) + 4
    for place in (at, at + 6):
        heads[:, place : place + 4] = ids
    flat, view = heads.tobytes(), memoryview(block.data)
    pieces: list[Buffer] = [flat] * (2 * count)
    pieces[0::2] = [flat[i : i + width] for i in range(0, count * width, width)]
    pieces[1::2] = [view[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    return b"".join(pieces)


# --- transactions -----------------------------------------------------------------------------------

COORDINATOR = CoordinatorTarget(capabilities=("amqp:local-transactions",))
"""What a :class:`Coordinator` is attached to."""


@dataclass(slots=True)
class CoordinatorAnswer:
    """The answer to a request to the coordinator. ``done`` when the peer has answered."""

    expected: type[Accepted] | type[Declared]
    done: bool = False
    txn_id: bytes | None = None
    """Of a declare."""
    error: PeerError | None = None
    """Why the peer refused it. A refused discharge has rolled the transaction back."""


class Coordinator(Sender):
    def __init__(self, channel: Channel, name: str, handle: int) -> None:
        super().__init__(channel, name, handle)
        self._waiting: list[tuple[MessageBlock, CoordinatorAnswer]] = []
        """Requests that are not sent: the peer may grant credit for one at a time (Broker-J)."""
        self._open: dict[int, CoordinatorAnswer] = {}
        self._transactions: set[bytes] = set()

    def declare(self) -> CoordinatorAnswer:
        return self._request(encode_performative(Declare()), CoordinatorAnswer(Declared))

    def discharge(self, txn_id: bytes, *, fail: bool = False) -> CoordinatorAnswer:
        """End the transaction. No later frame may name it: a broker would store such a message outside of it."""
        self.require_open(txn_id)
        self._transactions.discard(txn_id)
        return self._request(encode_performative(Discharge(txn_id=txn_id, fail=fail)), CoordinatorAnswer(Accepted))

    def require_open(self, txn_id: bytes) -> None:
        """Every transfer and acceptance inside a transaction calls this first."""
        if txn_id not in self._transactions:
            raise IllegalStateError("A frame names a transaction that is not open.", "Nothing was sent. Report this.")

    def _request(self, body: bytes, answer: CoordinatorAnswer) -> CoordinatorAnswer:
        """Send an unsettled message whose value is the request (§4.2, §4.3)."""
        message = b"\x00\x53\x77" + body
        self._waiting.append((block_of(message), answer))
        self._send_waiting()
        return answer

    def on_flow(self, flow: Flow) -> None:
        super().on_flow(flow)
        self._send_waiting()

    def _send_waiting(self) -> None:
        while self._waiting and self.sendable:
            block, answer = self._waiting.pop(0)
            before = set(self.unsettled)
            self.send(block, 0, 1, settled=False)
            (number,) = self.unsettled - before
            self._open[number] = answer

    def on_disposition(self, disposition: Disposition, first: int, last: int) -> None:
        """Note an answer: ``declared`` to a declare, ``accepted`` to a discharge (§4.2, §4.3). Others are refusals."""
        if not _is_final(disposition):
            return
        for number in range(first, last + 1):
            answer = self._open.pop(number, None)
            if answer is not None:
                self.unsettled.discard(number)
                self._take(answer, disposition.state)

    def _take(self, answer: CoordinatorAnswer, state: Any) -> None:
        answer.done = True
        if not isinstance(state, answer.expected):
            answer.error = _refusal_of(state) or PeerError("amqp:illegal-state", "the answer to another request")
        elif isinstance(state, Declared):
            answer.txn_id = state.txn_id
            self._transactions.add(answer.txn_id)
