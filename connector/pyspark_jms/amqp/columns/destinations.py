"""What ``to`` and ``reply-to`` of a message mean as JMS destinations. Pure."""

from collections.abc import Mapping

from pyspark_jms.jms.model import Destination, DestinationKind

__all__ = ["KINDS", "destination_of", "is_pattern", "reply_to_of"]

KINDS = (DestinationKind.QUEUE, DestinationKind.TOPIC, DestinationKind.QUEUE, DestinationKind.TOPIC)
"""The kind by ``x-opt-jms-dest`` and ``x-opt-jms-reply-to``: queue, topic, temporary queue, temporary topic."""

_MANY = frozenset("*#>,")
"""The wildcards of any broker, and what separates the names in a list of destinations."""


def is_pattern(source: Destination) -> bool:
    """Whether messages of several destinations may be read from ``source``."""
    return not _MANY.isdisjoint(source.name)


def destination_of(
    to: str | None, kind: int | None, source: Destination, prefixes: Mapping[str, DestinationKind]
) -> str:
    """JMSDestination: ``to`` where the message states the kind, or where ``source`` is a pattern; else ``source``.

    ``kind``: ``x-opt-jms-dest``, an index of ``KINDS``.
    """
    if not to:
        return str(source)
    prefixed, name = _split(to, prefixes)
    if kind is not None:
        return f"{KINDS[kind]}://{name}"
    if prefixed is not None:
        return f"{prefixed}://{name}"
    return f"{source.kind}://{name}" if is_pattern(source) else str(source)


def reply_to_of(reply_to: str | None, kind: int | None, prefixes: Mapping[str, DestinationKind]) -> str | None:
    """JMSReplyTo: a queue, if the message does not state the kind."""
    if not reply_to:
        return None
    prefixed, name = _split(reply_to, prefixes)
    return f"{(prefixed or DestinationKind.QUEUE) if kind is None else KINDS[kind]}://{name}"


def _split(address: str, prefixes: Mapping[str, DestinationKind]) -> tuple[DestinationKind | None, str]:
    for prefix, kind in prefixes.items():
        if address.startswith(prefix):
            return kind, address.removeprefix(prefix)
    return None, address
