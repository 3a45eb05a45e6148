"""Names of queues and topics with wildcards: which names such a pattern stands for, on any of the brokers. Pure."""

from collections.abc import Sequence

__all__ = ["has_wildcards", "may_receive"]

_ANY_WORDS = frozenset("#>")
"""Wildcards for any number of words: ``#`` of Artemis, ``>`` of ActiveMQ Classic."""

_MANAGED_WILDCARDS = frozenset("*#")
"""Wildcards of Artemis, the only broker with management."""


def has_wildcards(queue: str) -> bool:
    """Whether the name is a pattern on a broker with management: no queue has this name."""
    return not _MANAGED_WILDCARDS.isdisjoint(queue)


def may_receive(read: str, queue: str) -> bool:
    """Whether a consumer of ``read`` may receive messages sent to ``queue``, on any of the brokers.

    ``read`` may have wildcards: ``*`` for one word, ``#`` (Artemis) and ``>`` (ActiveMQ Classic) for any number of
    words. Both parts of ``ADDRESS::QUEUE`` are compared, because brokers route messages by the address.
    """
    patterns, names = {read, *read.split("::")}, {queue, *queue.split("::")}
    return any(_match(pattern.split("."), name.split(".")) for pattern in patterns for name in names)


def _match(pattern: Sequence[str], words: Sequence[str]) -> bool:
    if not pattern:
        return not words
    if pattern[0] in _ANY_WORDS:
        return any(_match(pattern[1:], words[skipped:]) for skipped in range(len(words) + 1))
    return bool(words) and pattern[0] in {"*", words[0]} and _match(pattern[1:], words[1:])
