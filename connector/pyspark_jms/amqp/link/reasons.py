"""AMQP error conditions, and the texts that brokers put beside them → ``JMSError``."""

from pyspark_jms.amqp.wire.link import PeerError
from pyspark_jms.errors import (
    BrokerError,
    ConnectionLostError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    SubscriptionInUseError,
)
from pyspark_jms.network.address import Address

__all__ = ["error_of"]

_MAX_CHARACTERS = 300
_SECURITY_REMEDY = (
    "Check user and password, and that this user may consume from (source) or send to (sink) this destination;"
    " the broker's log names the missing permission."
)
_IN_USE_REMEDY = (
    "Stop other readers with this clientId and subscriptionName, or give another clientId. The broker closes a dead"
    " connection when its idle time-out is over."
)
_KIND_REMEDY = (
    "Use option topic for a topic and option queue for a queue. The queue of a durable subscription is named"
    " TOPIC::QUEUE."
)
_SELECTOR_REMEDY = "Check the selector."
_RULES: tuple[tuple[type[JMSError], tuple[str, ...], tuple[str, ...], str], ...] = (
    # Error class, conditions, parts of the description (Artemis, Classic), remedy.
    (
        SubscriptionInUseError,
        ("amqp:link:stolen",),
        ("Maximum Consumer Limit", "already connected", "AMQ229019"),
        _IN_USE_REMEDY,
    ),
    (
        JMSSecurityError,
        ("amqp:unauthorized-access",),
        ("AMQ229031", "AMQ229032", "AMQ229213", "not authorized"),
        _SECURITY_REMEDY,
    ),
    (InvalidSelectorError, (), ("Invalid selector", "selector filter"), _SELECTOR_REMEDY),
    (
        InvalidDestinationError,
        (),
        ("amqp_address_v1_not_permitted",),
        "Name a queue of RabbitMQ 4 as /queues/NAME, and to write also /exchanges/NAME/KEY, percent-encoded.",
    ),
    (
        InvalidDestinationError,
        ("amqp:not-found", "amqp:resource-deleted"),
        ("AMQ229216", "AMQ119002"),
        "Create the address and queue on the broker, or let it create them (auto-create).",
    ),
    (
        InvalidDestinationError,  # Azure Service Bus, from its documentation
        (),
        ("requires sessions",),
        "Read a queue or a subscription without sessions: this connector asks for none.",
    ),
    (
        InvalidDestinationError,
        (),
        ("Incorrect Routing Type", "is not configured for"),
        _KIND_REMEDY,
    ),
    (
        InvalidDestinationError,
        ("amqp:released",),
        (),
        "Create the queue or the binding that takes these messages; a router needs a broker or a consumer behind it.",
    ),
    (
        ConnectionLostError,
        ("amqp:connection:forced", "amqp:session:unattached-handle"),
        ("idle-timeout expired",),
        "The broker is stopping, an operator closed the connection, or this process was silent for too long.",
    ),
)


def error_of(address: Address, error: PeerError, *, selected: bool = False) -> JMSError:
    """``selected``: it ended a link with a selector, which is then the invalid field of its attach."""
    reason = " ".join(filter(None, (error.condition, error.description.strip()[:_MAX_CHARACTERS])))
    for kind, conditions, texts, remedy in _RULES:
        if error.condition in conditions or any(text in error.description for text in texts):
            verb = "ended the connection" if kind is ConnectionLostError else "refused"
            return kind(f"{address} {verb}: {reason}.", remedy)
    if selected and error.condition == "amqp:invalid-field":
        return InvalidSelectorError(f"{address} refused: {reason}.", _SELECTOR_REMEDY)
    return BrokerError(f"{address} answered with an error: {reason}.", "See the broker's log for the reason.")
