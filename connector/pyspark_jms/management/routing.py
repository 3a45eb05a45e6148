"""Whether a fully qualified queue name (``ADDRESS::QUEUE``) names a queue or a topic subscription,
and how the queue of a subscription is named.

A consumer that subscribes with the other routing type adds it to the address. On Artemis, an address with both types
refuses every later STOMP subscription to the topic.
"""

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import Destination, DestinationKind, DurableSubscription
from pyspark_jms.jms.names import has_wildcards
from pyspark_jms.management.attributes import Management
from pyspark_jms.management.link import ManagementLink

__all__ = [
    "has_queues",
    "is_fully_qualified",
    "is_kept",
    "is_topic_only",
    "queue_names",
    "require_topic",
    "routing_of",
    "shows_addresses",
]


def is_fully_qualified(name: str, words: Management | None) -> bool:
    return words is not None and words.queue_separator in name and not has_wildcards(name)


def shows_addresses(words: Management | None) -> bool:
    """Return whether the broker tells of an address whether it is a queue's or a topic's."""
    return words is not None and words.inspects


def is_kept(link: ManagementLink, destination: Destination) -> bool:
    """Return whether the queue of a fully qualified name is durable. True also if there is no such queue."""
    try:
        return bool(link.queue_attribute(link.queue_name(destination.name), link.words.queue.durable))
    except InvalidDestinationError:
        return True


def is_topic_only(link: ManagementLink, address: str) -> bool:
    """Return whether an address is a topic only: Artemis makes one of each name to which an MQTT client publishes."""
    return _routes_only(link, address, DestinationKind.TOPIC)


def require_topic(link: ManagementLink, name: str) -> None:
    """Raise an ``InvalidDestinationError`` if an address has a queue, and no topic."""
    if _routes_only(link, name, DestinationKind.QUEUE) and has_queues(link, name):
        raise InvalidDestinationError(
            f"{name} is a queue on the broker, and no topic.",
            f"A subscription or a message to the topic would change its address for good. Use option queue={name}, or"
            " create a topic of another name.",
        )


def has_queues(link: ManagementLink, address: str) -> bool:
    return bool(_of_address(link, address, "queueNames"))


def _routes_only(link: ManagementLink, address: str, kind: DestinationKind) -> bool:
    return {link.words.queue.kind(each) for each in _of_address(link, address, "routingTypes")} == {kind}


def _of_address(link: ManagementLink, address: str, attribute: str) -> list[str]:
    """Return a list that the broker has of an address, in its own words, or an empty one if it is not known."""
    if not link.words.inspects:
        return []
    try:
        return list(link.attribute(f"address.{address}", attribute) or ())
    except InvalidDestinationError:
        return []


def routing_of(link: ManagementLink, destination: Destination) -> DestinationKind:
    """Return the routing type that the queue has, or that of ``destination`` for a queue that can be created with it.

    ``InvalidDestinationError`` if the queue belongs to another address, or if it does not exist and creating it would
    add a routing type to its address.
    """
    words = link.words
    address, _, queue = destination.name.rpartition(words.queue_separator)
    try:
        owner = link.queue_attribute(queue, words.queue.address)
        routing_type = link.queue_attribute(queue, words.queue.routing_type)
    except InvalidDestinationError:
        _require_creatable(link, destination)
        return destination.kind
    if owner != address:
        raise InvalidDestinationError(
            f"Queue {queue} belongs to address {owner}, not to {address}.",
            f"Its full name is {owner}{words.queue_separator}{queue}.",
        )
    return words.queue.kind(routing_type)


def _require_creatable(link: ManagementLink, destination: Destination) -> None:
    address, _, queue = destination.name.rpartition(link.words.queue_separator)
    types = _of_address(link, address, "routingTypes")
    if types and destination.kind not in {link.words.queue.kind(each) for each in types}:
        raise InvalidDestinationError(
            f"Address {address} has no queue {queue}, and its routing type is {' and '.join(types)}.",
            "Check the name. The queue of a durable subscription is TOPIC::CLIENTID.SUBSCRIPTIONNAME, or"
            " TOPIC::SUBSCRIPTIONNAME without a client id.",
        )


def queue_names(durable: DurableSubscription) -> tuple[str, ...]:
    """Return the names that the subscription's queue may have: Artemis escapes the dots of both parts with
    ``amqp-use-core-subscription-naming``.
    """
    escaped = (_escaped(each) for each in (durable.client_id, durable.name) if each)
    return (str(durable) if durable.client_id else f"{durable}:global", ".".join(escaped))


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace(".", "\\.")
