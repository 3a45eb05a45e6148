"""Acknowledgements of a consumer: settled acceptances in a transaction, whose discharge is the receipt.

Nothing else proves that a broker has stored an acknowledgement: the answers to a detach, a drain or a close do not.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.states import EndpointState
from pyspark_jms.amqp.wire.transactions import CoordinatorAnswer
from pyspark_jms.errors import ConnectionLostError, LinkError

__all__ = ["Acknowledgement", "Acknowledger"]

_log = logging.getLogger("pyspark_jms.link")


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """``answer`` of the discharge; None: the broker confirms no acknowledgement."""

    answer: CoordinatorAnswer | None
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
        self._transactions = Transactions(connection)
        self.is_confirmed = False
        """Whether the broker confirms acknowledgements."""
        if confirmed and connection.dialect.has_transactions:
            self._attach()

    def _attach(self) -> None:
        try:
            self._transactions.await_open()
        except LinkError as error:
            if error.transient:
                raise
            _log.warning(
                "! %s has no transactions, so it confirms no acknowledgement: %s", self._connection.address, error
            )
            return
        self.is_confirmed = True

    @property
    def lost_session(self) -> bool:
        """Whether the broker has no transactions, and ended the session to tell so. No message was delivered yet."""
        return not self.is_confirmed and self._connection.session.state is EndpointState.ENDED

    @property
    def is_ready(self) -> bool:
        """Whether a transaction has begun, so that ``acknowledge`` waits for nothing."""
        return self._transactions.is_open

    def acknowledge(self, ids: Sequence[bytes]) -> Acknowledgement:
        if not self.is_confirmed:
            with self._connection.core():
                self._receiver.accept(ids)
            return Acknowledgement(None, len(ids))
        txn_id = self._open()
        with self._connection.core():
            self._transactions.require_open(txn_id)
            self._receiver.accept(ids, txn_id)
            answer = self._transactions.go_on(txn_id)
        return Acknowledgement(answer, len(ids))

    def _open(self) -> bytes:
        try:
            return self._transactions.await_open()
        except LinkError as error:
            if error.transient:
                raise
            raise ConnectionLostError(
                f"{self._connection.address} refused to begin a transaction.", "The query connects again."
            ) from None

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
