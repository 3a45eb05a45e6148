"""Staging queues for an operator: which there are, what one has, and its end."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.management import AmqpManagementLink
from pyspark_jms.amqp.link.pull import browse
from pyspark_jms.amqp.link.staged_messages import SeenBlock, SeenToken, seen_block, seen_token
from pyspark_jms.amqp.link.staging_queue import Names, StagingQueue
from pyspark_jms.delivery.staging.tokens import SourceToken, is_token
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["ListedQueue", "ShownQueue", "drop_stream", "list_streams", "show_stream", "staged_messages"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedQueue:
    """A staging queue as the broker's management shows it."""

    name: str
    blocks: int
    tokens: int
    owned: bool
    """Whether a connection has the lock: a query runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownQueue:
    """What a staging queue has."""

    name: str
    streams: tuple[str, ...]
    tokens: tuple[str, ...]
    next: int | None
    """The number that the next message gets; None without a token."""
    floor: int | None
    """Spark has committed all messages below."""
    blocks: int
    messages: int
    bytes: int
    sources: tuple[str, ...]
    oldest_seconds: float | None


def list_streams(settings: ConnectionSettings, prefix: str) -> list[ListedQueue]:
    """Needs the permission ``manage``. Of queues whose address begins with the prefix."""
    with AmqpManagementLink(settings) as link:
        words = link.words
        queues: list[str] = link.attribute(words.broker_resource, words.queue_names)
        return [
            ListedQueue(
                name=address,
                blocks=link.queue_attribute(queue, words.queue.messages),
                tokens=link.queue_attribute(f"{address}.token", words.queue.messages)
                if f"{address}.token" in queues
                else 0,
                owned=link.queue_attribute(queue, words.queue.consumers) > 0,
            )
            for queue, address in sorted(_of_blocks(queues, prefix))
        ]


def staged_messages(settings: ConnectionSettings, names: Names) -> Counter[str]:
    """How many messages a staging queue has of each source, by browsing."""
    connection = connect(settings)
    try:
        blocks = [seen_block(message) for message in browse(connection, names.blocks)]
    finally:
        connection.close()
    counts: Counter[str] = Counter()
    for block in blocks:
        counts[block.block.source] += block.end - block.first
    return counts


def _of_blocks(queues: Sequence[str], prefix: str) -> Iterator[tuple[str, str]]:
    """The queues of blocks, and their addresses: ``ADDRESS.owner`` is that of ``Names``; with a client id it is
    ``CLIENT.ADDRESS``.
    """
    for queue in queues:
        if queue.startswith(f"{prefix}") and queue.endswith(".owner"):
            yield queue, queue.removesuffix(".owner")
        elif f".{prefix}" in queue:
            yield queue, queue[queue.index(f".{prefix}") + 1 :]


def show_stream(settings: ConnectionSettings, names: Names) -> ShownQueue:
    """By browsing: nothing changes, and the query may run meanwhile."""
    connection = connect(settings)
    try:
        tokens = [seen_token(message) for message in browse(connection, names.tokens)]
        blocks = [seen_block(message) for message in browse(connection, names.blocks)]
    finally:
        connection.close()
    return _shown(names.address, tokens, blocks)


def _shown(name: str, tokens: Sequence[SeenToken], blocks: Sequence[SeenBlock]) -> ShownQueue:
    known = [SourceToken.parse(token.text) for token in tokens if is_token(token.text)]
    last = max(known, key=lambda token: token.next, default=None)
    oldest = min((block.moved_ms for block in blocks), default=None)
    return ShownQueue(
        name=name,
        streams=tuple(sorted({token.id for token in known} | {block.stream for block in blocks})),
        tokens=tuple(token.text() for token in known),
        next=None if last is None else last.next,
        floor=None if last is None else last.floor,
        blocks=len(blocks),
        messages=sum(block.end - block.first for block in blocks),
        bytes=sum(len(block.block.messages.data) for block in blocks),
        sources=tuple(sorted({block.block.source for block in blocks})),
        oldest_seconds=None if oldest is None else round(max(0.0, time.time() - oldest / 1000), 1),
    )


def drop_stream(settings: ConnectionSettings, names: Names) -> None:
    """``SubscriptionInUseError`` while a query has the lock."""
    queue = StagingQueue(settings, names)
    try:
        queue.lock()
        queue.delete_tokens()
    except BaseException:
        queue.close()
        raise
    queue.close(delete=True)
