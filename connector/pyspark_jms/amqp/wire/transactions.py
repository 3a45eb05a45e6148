"""The link to the transaction coordinator (AMQP 1.0 part 4): declare and discharge, and what came of them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyspark_jms.amqp.wire.link import Channel, PeerError
from pyspark_jms.amqp.wire.sender import Sender, is_final, refusal_of
from pyspark_jms.amqp.wire.types import Accepted, Declare, Declared, Discharge, Disposition, Flow, encode_performative
from pyspark_jms.amqp.wire.types import Coordinator as CoordinatorTarget
from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.errors import IllegalStateError

__all__ = ["Coordinator", "CoordinatorAnswer"]

_CAPABILITIES = ("amqp:local-transactions",)


@dataclass(slots=True)
class CoordinatorAnswer:
    """Of a request to the coordinator. ``done`` when the peer has answered."""

    expected: type[Accepted] | type[Declared]
    done: bool = False
    txn_id: bytes | None = None
    """Of a declare."""
    error: PeerError | None = None
    """Why the peer refused it. A refused discharge has rolled the transaction back."""


@dataclass(slots=True)
class _Requests:
    waiting: list[tuple[MessageBlock, CoordinatorAnswer]] = field(default_factory=list)
    """Not sent: the peer may grant credit for one request at a time (Broker-J)."""
    open: dict[int, CoordinatorAnswer] = field(default_factory=dict)
    transactions: set[bytes] = field(default_factory=set)


class Coordinator(Sender):
    def __init__(self, channel: Channel, name: str, handle: int) -> None:
        super().__init__(channel, name, handle)
        self._requests = _Requests()

    def attach_to_coordinator(self) -> None:
        self.attach_to(CoordinatorTarget(capabilities=_CAPABILITIES))

    def declare(self) -> CoordinatorAnswer:
        return self._request(encode_performative(Declare()), CoordinatorAnswer(Declared))

    def discharge(self, txn_id: bytes, *, fail: bool = False) -> CoordinatorAnswer:
        """After this call no frame may name the transaction: a broker would store such a message outside of it."""
        self.require_open(txn_id)
        self._requests.transactions.discard(txn_id)
        return self._request(encode_performative(Discharge(txn_id=txn_id, fail=fail)), CoordinatorAnswer(Accepted))

    def require_open(self, txn_id: bytes) -> None:
        """Every transfer and acceptance inside a transaction calls this first."""
        if txn_id not in self._requests.transactions:
            raise IllegalStateError("A frame names a transaction that is not open.", "Nothing was sent. Report this.")

    def _request(self, body: bytes, answer: CoordinatorAnswer) -> CoordinatorAnswer:
        """§4.2, §4.3: an unsettled message whose value is the request."""
        message = b"\x00\x53\x77" + body
        self._requests.waiting.append((MessageBlock(message, ends=index_of(np.array([len(message)]))), answer))
        self._send_waiting()
        return answer

    def on_flow(self, flow: Flow) -> None:
        super().on_flow(flow)
        self._send_waiting()

    def _send_waiting(self) -> None:
        waiting = self._requests.waiting
        while waiting and self.sendable:
            block, answer = waiting.pop(0)
            before = set(self.unsettled)
            self.send(block, 0, 1, settled=False)
            (number,) = self.unsettled - before
            self._requests.open[number] = answer

    def on_disposition(self, disposition: Disposition, first: int, last: int) -> None:
        """§4.2, §4.3: a declare ends with ``declared``, a discharge with ``accepted``. All else is a refusal."""
        if not is_final(disposition):
            return
        for number in range(first, last + 1):
            answer = self._requests.open.pop(number, None)
            if answer is not None:
                self.unsettled.discard(number)
                self._take(answer, disposition.state)

    def _take(self, answer: CoordinatorAnswer, state: Any) -> None:
        answer.done = True
        if not isinstance(state, answer.expected):
            answer.error = refusal_of(state) or PeerError("amqp:illegal-state", "the answer to another request")
        elif isinstance(state, Declared):
            answer.txn_id = state.txn_id
            self._requests.transactions.add(answer.txn_id)
