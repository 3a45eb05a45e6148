"""What ``to`` and ``reply-to`` of a message mean as JMS destinations. Pure."""

from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.jms.model import Destination, DestinationKind

__all__ = ["KINDS", "destination_of", "is_pattern", "reply_to_of"]

KINDS = (DestinationKind.QUEUE, DestinationKind.TOPIC, DestinationKind.QUEUE, DestinationKind.TOPIC)
"""The kind by ``x-opt-jms-dest`` and ``x-opt-jms-reply-to``: queue, topic, temporary queue, temporary topic."""

_MANY = frozenset("*#>,")
"""The wildcards of any broker, and what separates the names in a list of destinations."""


def is_pattern(source: Destination) -> bool:
    """Whether messages of several destinations may be read from ``source``."""
    return not _MANY.isdisjoint(source.name)


def destination_of(to: str | None, kind: int | None, source: Destination, dialect: Dialect) -> str:
    """JMSDestination: ``to`` where the message states the kind, or where ``source`` is a pattern; else ``source``.

    ``kind``: ``x-opt-jms-dest``, an index of ``KINDS``.
    """
    if not to:
        return str(source)
    prefixed, name = dialect.split_address(to)
    if kind is not None:
        return f"{KINDS[kind]}://{name}"
    if prefixed is not None:
        return f"{prefixed}://{name}"
    return f"{source.kind}://{name}" if is_pattern(source) else str(source)


def reply_to_of(reply_to: str | None, kind: int | None, dialect: Dialect) -> str | None:
    """JMSReplyTo: a queue, if the message does not state the kind."""
    if not reply_to:
        return None
    prefixed, name = dialect.split_address(reply_to)
    return f"{(prefixed or DestinationKind.QUEUE) if kind is None else KINDS[kind]}://{name}"
