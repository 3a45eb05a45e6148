"""The text of an ERROR frame → ``JMSError``."""

import re

from pyspark_jms.errors import (
    BrokerError,
    ConnectionLostError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    SubscriptionInUseError,
    UnconvertibleMessageError,
)
from pyspark_jms.network.address import Address
from pyspark_jms.stomp.dialects import DIALECTS, Dialect

__all__ = ["error_of"]

_MAX_CHARACTERS = 300


def error_of(address: Address, text: str, dialect: Dialect | None) -> JMSError:
    """The error for the text of an ERROR frame. Before CONNECTED (``dialect`` None) the texts of all dialects count."""
    known = (dialect,) if dialect else tuple(DIALECTS.values())
    for each in known:
        text = re.sub(each.message_in_error, "", text, flags=re.DOTALL) if each.message_in_error else text
    if any(each in text for dialect in known for each in dialect.conversion_errors):
        return UnconvertibleMessageError(f"{address} closed the subscription.", _CONVERSION_REMEDY)
    reason = text.strip()[:_MAX_CHARACTERS] or "nothing"
    for error, texts, remedy in (
        (
            ConnectionLostError,
            [t for d in known for t in d.idle_errors],
            "The broker received nothing from this client for too long.",
        ),
        (JMSSecurityError, [t for d in known for t in d.security_errors], _SECURITY_REMEDY),
        (JMSSecurityError, [t for d in known for t in d.subscribe_errors], _SUBSCRIBE_REMEDY),
        (SubscriptionInUseError, [t for d in known for t in d.in_use_errors], _IN_USE_REMEDY),
        (BrokerError, [t for d in known for t in d.send_errors], _SEND_REMEDY),
        (InvalidSelectorError, [t for d in known for t in d.selector_errors], "Check the selector."),
        (InvalidDestinationError, [t for d in known for t in d.destination_errors], _DESTINATION_REMEDY),
    ):
        if any(t in reason for t in texts):
            verb = "ended the session" if error is ConnectionLostError else "refused"
            return error(f"{address} {verb}: {reason}.", remedy)
    return BrokerError(f"{address} answered with an ERROR: {reason}.", "See the broker's log for the reason.")


_SECURITY_REMEDY = (
    "Check user and password, and that this user may consume from (source) or send to (sink) this destination;"
    " the broker's log names the missing permission."
)
_CONVERSION_REMEDY = (
    "The queue has a message that this broker cannot send over STOMP, usually one of an AMQP client. Read the queue"
    " over AMQP, where the message is a row (brokerUrl=amqp://…; a durable subscription as"
    " queue=TOPIC::CLIENTID.SUBSCRIPTIONNAME), or move it away with an AMQP client. With windowBytes=1 a query reads"
    " the messages before it over STOMP. Each start costs the message and its next neighbours a delivery attempt. If"
    " somebody deleted the queue or closed its consumer on the broker, start the query again."
)
_SUBSCRIBE_REMEDY = (
    "This user may not consume from this destination, or the address of a topic also has the routing type ANYCAST, with"
    " which the broker creates no STOMP subscription: artemis address update --name TOPIC --multicast --no-anycast. The"
    " broker's log has the reason."
)
_IN_USE_REMEDY = (
    "Stop other readers with this clientId and subscriptionName, or give another clientId. The broker closes a dead"
    " connection when heart-beats are missing."
)
_SEND_REMEDY = "This user may not send to the destination, or its address is full: see the broker's log."
_DESTINATION_REMEDY = (
    "Create the address and queue on the broker, or let it create them (auto-create). The queue of a durable"
    " subscription is named TOPIC::QUEUE."
)
