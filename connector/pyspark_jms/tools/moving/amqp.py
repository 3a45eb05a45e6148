"""AMQP 1.0 for ``moving.engine``: a link that receives from a queue and sends to others, in one transaction."""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pyspark_jms.amqp.columns.encode import encode
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.source import AmqpSourceLink
from pyspark_jms.amqp.wire.sections import APPLICATION_PROPERTIES, MESSAGE_ANNOTATIONS, MalformedMessageError, sections
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.amqp.wire.values import decode
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.arrays import Int64s
from pyspark_jms.errors import (
    ConnectionLostError,
    JMSError,
    MalformedFrameError,
    ReceiptTimeoutError,
    TransactionRolledBackError,
    UnsupportedError,
)
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.network.connection import StateCondition, closed_on
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.tools.moving.engine import OutgoingMessages

__all__ = ["AmqpMover"]


class AmqpMover(AmqpSourceLink):
    """A ``moving.engine.MovingLink``."""

    def __init__(self, settings: ConnectionSettings, condition: StateCondition | None = None) -> None:
        super().__init__(settings, condition)
        self._max_message_bytes = settings.max_message_bytes
        self._prefix = f"ID:{uuid.uuid4()}:"
        self._transactions = Transactions(self.connection)
        with closed_on(JMSError, self.close):
            self._require_movable()

    def _require_movable(self) -> None:
        try:
            self.dialect.require(Feature.RELAY)
            self._transactions.begin()
            self._transactions.roll_back()
        except UnsupportedError as error:
            raise UnsupportedError(
                f"A message is moved in one transaction. {error.fact} Nothing was moved.",
                "Use a query that reads this queue and writes its rows to the other one with transaction=none: it may"
                " send a message twice and loses none. Or use the broker's own tools.",
            ) from None

    def origin(self, block: MessageBlock, index: int) -> Destination | None:
        """Return None also where the queue's name is not its address's: a subscription to a topic."""
        for facts in _annotations_and_properties(block.message(index)):
            if named := {str(facts[name]) for name in self.dialect.origin_names if name in facts}:
                return Destination(DestinationKind.QUEUE, named.pop()) if len(named) == 1 else None
        return None

    def check_target(self, name: str) -> None:
        self.dialect.send.check_name(name, by_row=True)

    def encode(self, destination: Destination, rows: pa.RecordBatch, numbers: Int64s) -> Sequence[MessageBlock]:
        return encode(
            rows,
            dialect=self.dialect,
            destination=destination,
            property_columns=(),
            now_ms=int(time.time() * 1000),
            message_id_prefix=self._prefix,
            numbers=numbers,
            max_message_bytes=self._max_message_bytes,
        )

    def forward(self, ids: Sequence[bytes], outgoing: Sequence[OutgoingMessages]) -> None:
        txn_id = self._transactions.begin()
        senders = [(self._sender(destination), blocks) for destination, blocks in outgoing]
        for sender, blocks in senders:
            for block in blocks:
                self._send(sender, block, txn_id)
        for sender, _ in senders:  # Classic would commit without a refused message
            self.connection.await_accepted(sender, "messages")
        self._transactions.accept([(self.prefetch.receiver, ids)])
        try:
            self._transactions.discharge()
        except (ConnectionLostError, ReceiptTimeoutError) as error:
            raise TransactionRolledBackError(
                f"The broker did not confirm the transaction: {error.fact}",
                "Its messages are either all moved or all still on the queue: run the command again.",
            ) from None
        with self.connection.core():
            self.prefetch.released(len(ids))

    def _sender(self, destination: Destination) -> Sender:
        address = self.dialect.send.target_address(destination.kind, destination.name)
        return self._transactions.sender_to(address, str(destination.kind))

    def _send(self, sender: Sender, block: MessageBlock, txn_id: bytes) -> None:
        following = 0
        while following < len(block):
            self.connection.await_credit(sender, "messages")
            with self.connection.core():
                following = sender.send(block, following, len(block), settled=False, txn_id=txn_id)


def _annotations_and_properties(message: bytes) -> Iterator[Mapping[Any, Any]]:
    """Return what a broker adds to a message as an annotation, or, if the message came over another protocol, a
    property.

    The annotations come first (AMQP 1.0 part 3 §3.2): a producer's properties do not replace them.
    """
    begin = 0
    try:
        for section in sections(message):
            if section.code in {MESSAGE_ANNOTATIONS, APPLICATION_PROPERTIES}:
                value = decode(message, begin, section.end)[0].value
                if isinstance(value, Mapping):
                    yield value
            begin = section.end
    except (MalformedFrameError, MalformedMessageError):
        return
