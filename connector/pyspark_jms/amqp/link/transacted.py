"""Messages that are sent and accepted in the open transaction of a connection, to several addresses."""

from collections.abc import Iterable, Sequence

from pyspark_jms.amqp.link.acknowledging import ranges_of
from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.link.senders import Senders, await_credit
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sections import Buffer
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.blocks.block import MessageBlock

__all__ = ["Transacted"]


class Transacted:
    """Whatever comes first begins the transaction. It is carried out by ``discharge``, or not at all."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._transactions = Transactions(connection)
        self._senders = Senders(connection, "staging")

    def send(self, address: str, capability: str, block: MessageBlock) -> None:
        """Presettled: the discharge tells whether the broker took them."""
        following = 0
        while following < len(block):
            sender, txn_id = self._sendable(address, capability)
            with self._connection.core():
                self._transactions.require_open(txn_id)
                following = sender.send(block, following, len(block), txn_id=txn_id)

    def send_pieces(self, address: str, capability: str, pieces: Sequence[Buffer]) -> None:
        """As ``send``, of one message whose bytes are in several places. They are not copied and must not change."""
        sender, txn_id = self._sendable(address, capability)
        with self._connection.core():
            self._transactions.require_open(txn_id)
            sender.send_pieces(pieces, txn_id=txn_id)

    def _sendable(self, address: str, capability: str) -> tuple[Sender, bytes]:
        """A sender that has credit, and the open transaction."""
        sender, txn_id = self._senders.attached(address, capability), self._transactions.begin()
        await_credit(self._connection, sender, "messages")
        return sender, txn_id

    def accept(self, accepted: Iterable[tuple[Receiver, Sequence[bytes]]]) -> None:
        txn_id = self._transactions.begin()
        with self._connection.core():
            self._transactions.require_open(txn_id)
            for receiver, ids in accepted:
                receiver.accept(ranges_of(ids), txn_id)

    def accept_confirmed(self, receiver: Receiver, ids: Sequence[bytes]) -> None:
        """Return when the broker has confirmed that the messages are in the transaction.

        A broker that has taken messages back, because somebody closed the consumer, would ignore their acceptance, and
        commit the rest.
        """
        txn_id = self._transactions.begin()
        with self._connection.core():
            self._transactions.require_open(txn_id)
            receiver.accept(ranges_of(ids), txn_id, settled=False)
        self._connection.await_(lambda: not receiver.unanswered or not receiver.is_attached, "an acceptance")
        self._connection.check_link(receiver)

    def open(self, address: str, capability: str) -> None:
        """Return when a transaction has begun and the broker takes messages to the address."""
        self._sendable(address, capability)

    def discharge(self) -> None:
        """As ``Transactions.discharge``."""
        self._transactions.discharge()

    def roll_back(self) -> None:
        """Never raises."""
        self._transactions.roll_back()
