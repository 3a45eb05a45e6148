"""Acknowledgements of a consumer: settled acceptances in a transaction, whose discharge is the receipt.

Nothing else proves that a broker has stored an acknowledgement: the answers to a detach, a drain or a close do not.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.link.transactions import attach_coordinator, await_declared
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.states import EndpointState
from pyspark_jms.amqp.wire.transactions import Answer, Coordinator
from pyspark_jms.errors import ConnectionLostError, IllegalStateError, LinkError

__all__ = ["Acknowledgement", "Acknowledger", "ranges_of"]

_log = logging.getLogger("pyspark_jms.link")


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """``answer`` of the discharge; None: the broker confirms no acknowledgement."""

    answer: Answer | None
    messages: int

    @property
    def is_confirmed(self) -> bool:
        return self.answer is None or (self.answer.done and self.answer.error is None)


class Acknowledger:
    """One transaction is always declared in advance, so that an acknowledgement waits for nothing."""

    def __init__(self, connection: Connection, receiver: Receiver, *, confirmed: bool = True) -> None:
        """Attaches to the coordinator. Without one, or if not ``confirmed``, acknowledgements go unconfirmed.

        A broker may end the session instead of the link (RabbitMQ 4.0).
        """
        self._connection = connection
        self._receiver = receiver
        self._coordinator: Coordinator | None = None
        self._declared: Answer | None = None
        if confirmed and connection.dialect.has_transactions:
            self._attach()

    def _attach(self) -> None:
        try:
            coordinator = attach_coordinator(self._connection, "acknowledgements")
            with self._connection.core():
                declared = coordinator.declare()
            await_declared(self._connection, coordinator, declared)
        except LinkError as error:
            if error.transient:
                raise
            _log.warning(
                "! %s has no transactions, so it confirms no acknowledgement: %s", self._connection.address, error
            )
            return
        self._coordinator, self._declared = coordinator, declared

    @property
    def is_confirmed(self) -> bool:
        """Whether the broker confirms acknowledgements."""
        return self._coordinator is not None

    @property
    def lost_session(self) -> bool:
        """Whether the broker has no transactions, and ended the session to tell so. No message was delivered yet."""
        return self._coordinator is None and self._connection.session.state is EndpointState.ENDED

    @property
    def is_ready(self) -> bool:
        """Whether a transaction has begun, so that ``acknowledge`` waits for nothing."""
        return self._declared is not None and self._declared.done

    def acknowledge(self, ids: Sequence[bytes], send: Callable[[bytes], None] | None = None) -> Acknowledgement:
        """``send``: called with the transaction, before the messages are accepted in it; needs transactions."""
        ranges = ranges_of(ids)
        if self._coordinator is None or self._declared is None:
            if send is not None:
                raise IllegalStateError("A message is moved without a transaction.", "Nothing was moved. Report this.")
            with self._connection.core():
                self._receiver.accept(ranges)
            return Acknowledgement(None, len(ids))
        declared = self._declared
        self._connection.await_(lambda: declared.done, "a transaction")
        if declared.txn_id is None:
            raise ConnectionLostError(
                f"{self._connection.address} refused to begin a transaction.", "The query connects again."
            )
        if send is not None:
            send(declared.txn_id)
        with self._connection.core():
            self._coordinator.require_open(declared.txn_id)
            self._receiver.accept(ranges, declared.txn_id)
            answer = self._coordinator.discharge(declared.txn_id)
            self._declared = self._coordinator.declare()
        return Acknowledgement(answer, len(ids))

    def await_confirmed(self, acknowledgement: Acknowledgement) -> None:
        """``ConnectionLostError`` when the broker has rolled it back: the messages are delivered again."""
        answer = acknowledgement.answer
        if answer is None:
            return
        self._connection.await_(lambda: answer.done, "the confirmation of acknowledgements")
        if answer.error is not None:
            self._connection.drop()
            raise ConnectionLostError(
                f"{self._connection.address} rolled acknowledgements back: {answer.error.condition}"
                f" {answer.error.description}.",
                "The messages are delivered again.",
            )


def ranges_of(ids: Sequence[bytes]) -> list[tuple[int, int]]:
    """Delivery-ids of four bytes → ranges of consecutive ones, both ends included."""
    if not ids:
        return []
    numbers = np.frombuffer(b"".join(ids), ">u4").astype(np.int64)
    cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
    firsts, lasts = numbers[np.concatenate([[0], cuts])], numbers[np.concatenate([cuts, [len(numbers)]]) - 1]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
