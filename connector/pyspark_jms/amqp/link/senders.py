"""The sending links of one connection, by address."""

import uuid

from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.link.reasons import error_of
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.amqp.wire.types import Target

__all__ = ["Senders", "await_accepted", "await_credit", "check_refusal"]


class Senders:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._senders: dict[str, Sender] = {}

    def attached(self, address: str, capability: str) -> Sender:
        """The sender of an address; the error of a refusal.

        With the capability ``queue`` Artemis would lose what is sent to a topic, and the other way round.
        """
        sender = self._senders.get(address)
        if sender is None or not sender.is_attached:
            with self._connection.core() as session:
                sender = self._senders[address] = session.link(Sender, f"sending-{uuid.uuid4().hex}")
                sender.attach_to(Target(address=address, capabilities=(capability,)))
            self._connection.await_attached(sender)
        return sender


def await_credit(connection: Connection, sender: Sender, what: str) -> None:
    """Wait until a message can be sent; the error that ended the link. ``what`` the credit is for."""
    connection.await_(lambda: sender.sendable or not sender.is_attached, f"credit for {what}")
    connection.check_link(sender)


def await_accepted(connection: Connection, sender: Sender, what: str) -> None:
    """Wait until the broker has accepted every message that was sent unsettled; raise why it did not."""
    connection.await_(lambda: not sender.unsettled or not sender.is_attached, f"the confirmation of {what}")
    check_refusal(connection, sender)
    connection.check_link(sender)


def check_refusal(connection: Connection, sender: Sender) -> None:
    """Raise why the broker did not accept a message, if it has said so."""
    if sender.rejection is not None:
        raise error_of(connection.address, sender.rejection)
