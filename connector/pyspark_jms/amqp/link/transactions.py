"""The transactions of one connection, one at a time: begun, filled with messages and acceptances, committed or rolled
back.

Whoever sends or accepts by links of its own takes the id from ``begin``, on the same connection.
"""

import contextlib
import uuid
from collections.abc import Callable, Iterable, Sequence

from pyspark_jms.amqp.dialects.cannot import NO_TRANSACTIONS
from pyspark_jms.amqp.link.connection import Connection, error_of
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sections import Buffer
from pyspark_jms.amqp.wire.sender import COORDINATOR, Coordinator, CoordinatorAnswer, Sender
from pyspark_jms.amqp.wire.types import Target
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import ConnectionLostError, JMSError, LinkError, ReceiptTimeoutError, TransactionRolledBackError
from pyspark_jms.jms.features import Feature

__all__ = ["Transactions"]

Accepted = tuple[Receiver, Sequence[bytes | None]]
"""A link, and the ids of messages that it delivered."""
_ABORT_SECONDS = 5.0
"""When the rollback takes longer, the connection is closed, which rolls back as well."""


class Transactions:
    def __init__(self, connection: Connection) -> None:
        """Attaches to the coordinator with the first transaction."""
        self._connection = connection
        self._coordinator: Coordinator | None = None
        self._declared: CoordinatorAnswer | None = None
        self._senders: dict[str, Sender] = {}
        """By address."""
        self._has_answers = False
        """Whether the broker has been asked to answer an acceptance of the open transaction."""

    # --- the beginning -------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._declared is not None and self._declared.done

    def begin(self) -> bytes:
        """The id of the open transaction; opens one if none is open. ``UnsupportedError`` if the broker has none."""
        is_first = self._coordinator is None
        try:
            return self.await_open()
        except LinkError as error:
            if error.transient or not is_first:
                raise
            raise NO_TRANSACTIONS[Feature.TRANSACTIONS].error(self._connection.address, error.fact) from None

    def await_open(self) -> bytes:
        """Begin and wait, or raise the error of the refusal, after which the session may have ended."""
        coordinator = self._coordinator or self._attached()
        declared = self._declared
        if declared is None:
            with self._connection.core():
                declared = coordinator.declare()
        if not declared.done:
            self._connection.await_(lambda: declared.done or not coordinator.is_attached, "a transaction")
            self._connection.check_link(coordinator)
        if declared.error is not None:
            self._declared = None
            raise error_of(self._connection.address, declared.error)
        self._coordinator, self._declared = coordinator, declared
        assert declared.txn_id is not None
        return declared.txn_id

    def _attached(self) -> Coordinator:
        self._connection.dialect.require(Feature.TRANSACTIONS)
        name = f"transactions-{uuid.uuid4().hex}"
        coordinator = self._connection.attached(Coordinator, COORDINATOR, name)
        self._connection.await_credit(coordinator, "transactions")
        return coordinator

    def require_open(self, txn_id: bytes) -> None:
        """Called with the connection's core at hand, right before each frame that names the transaction."""
        assert self._coordinator is not None
        self._coordinator.require_open(txn_id)

    # --- what is in it: whatever comes first begins it -----------------------------------------

    def send(self, address: str, capability: str, block: MessageBlock) -> None:
        """Send the messages presettled: the discharge tells whether the broker took them."""
        following = 0
        while following < len(block):
            sender, txn_id = self.sendable(address, capability)
            with self._connection.core():
                self.require_open(txn_id)
                following = sender.send(block, following, len(block), txn_id=txn_id)

    def send_pieces(self, address: str, capability: str, pieces: Sequence[Buffer]) -> None:
        """Send one message whose bytes are in several places. They are not copied and must not change."""
        sender, txn_id = self.sendable(address, capability)
        with self._connection.core():
            self.require_open(txn_id)
            sender.send_pieces(pieces, txn_id=txn_id)

    def sendable(self, address: str, capability: str) -> tuple[Sender, bytes]:
        """A transaction has begun, and the broker takes messages to the address."""
        sender, txn_id = self.sender_to(address, capability), self.begin()
        self._connection.await_credit(sender, "messages")
        return sender, txn_id

    def sender_to(self, address: str, capability: str) -> Sender:
        """The sender of an address; the error of a refusal.

        With the capability ``queue`` Artemis would lose what is sent to a topic, and the other way round.
        """
        sender = self._senders.get(address)
        if sender is None or not sender.is_attached:
            target, name = Target(address=address, capabilities=(capability,)), f"sending-{uuid.uuid4().hex}"
            sender = self._senders[address] = self._connection.attached(Sender, target, name)
        return sender

    def accept(self, accepted: Iterable[Accepted], *, answered: bool = False) -> None:
        """``answered``: return when the broker has confirmed that the messages are in the transaction.

        A broker that has taken messages back, because somebody closed the consumer, would ignore their acceptance, and
        commit the rest. It carries out acceptances in order, so it is asked to answer the last one of each link.
        """
        txn_id, last = self.begin(), 1 if answered else 0
        self._has_answers |= answered
        every = [(receiver, ids) for receiver, ids in accepted if ids]
        with self._connection.core():
            self.require_open(txn_id)
            for receiver, ids in every:
                receiver.accept(ids[: len(ids) - last], txn_id)
                receiver.accept(ids[len(ids) - last :], txn_id, settled=False)
        for receiver, _ in every if answered else ():
            self._await_answers(receiver)

    def _await_answers(self, receiver: Receiver) -> None:
        self._connection.await_(lambda: not receiver.unanswered or not receiver.is_attached, "an acceptance")
        self._connection.check_link(receiver)

    # --- the end -------------------------------------------------------------------------------

    def commit(self) -> None:
        """Return when the broker has confirmed the transaction; otherwise raise, even if the outcome is unknown."""
        try:
            self.discharge()
        except (ConnectionLostError, ReceiptTimeoutError) as error:
            raise TransactionRolledBackError(
                f"The broker did not confirm the transaction: {error.fact}",
                "The broker may have committed nevertheless: a retry can then send these rows twice.",
            ) from None

    def discharge(self, meanwhile: Callable[[], object] | None = None) -> None:
        """Commit. A ``LinkError`` means that the outcome is unknown: then the connection is closed.

        ``meanwhile`` is called while the broker executes the transaction, and raises nothing.
        """
        if self._declared is None:
            return
        error = self._discharged(meanwhile).error
        if error is not None:
            # Artemis tells a refusal before it has given the messages of the transaction back to their links. Those of
            # a link that is detached in between stay in delivery, for nobody. It answers an empty transaction later.
            with contextlib.suppress(JMSError):
                self._discharged()
            refusal = error_of(self._connection.address, error)
            raise TransactionRolledBackError(
                f"The broker did not commit: {refusal.fact}",
                f"Nothing of this transaction was sent or acknowledged. {refusal.remedy}",
            )

    def _discharged(self, meanwhile: Callable[[], object] | None = None) -> CoordinatorAnswer:
        txn_id, coordinator = self.begin(), self._coordinator
        assert coordinator is not None
        self._declared, self._has_answers = None, False
        try:
            with self._connection.core():
                answer = coordinator.discharge(txn_id)
            if meanwhile is not None:
                meanwhile()
            self._connection.await_(lambda: answer.done, "the confirmation of the transaction")
        except (ConnectionLostError, ReceiptTimeoutError):
            self._connection.drop()
            raise
        return answer

    def go_on(self, txn_id: bytes) -> CoordinatorAnswer:
        """Discharge the open transaction and declare the next one, and wait for neither.

        Called with the connection's core at hand. Returns the answer to the discharge.
        """
        assert self._coordinator is not None
        answer = self._coordinator.discharge(txn_id)
        self._declared = self._coordinator.declare()
        return answer

    def roll_back(self) -> None:
        """Never raises: the end of the connection rolls back too.

        Only the end does it where an acceptance was answered: by a rollback Artemis 2.55 gives that message back to its
        link alone, also to a link that has ended, and then nobody gets it.
        """
        declared, self._declared = self._declared, None
        if declared is None or declared.txn_id is None or self._coordinator is None:
            return
        if self._has_answers:
            self._connection.drop()
            return
        with contextlib.suppress(JMSError):
            with self._connection.core():
                answer = self._coordinator.discharge(declared.txn_id, fail=True)
            self._connection.await_(lambda: answer.done, "the rollback", _ABORT_SECONDS)
