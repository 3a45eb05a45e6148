"""The registers of exactly-once reads, for an operator: which there are, what they have, and their end."""

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.management import AmqpManagementLink
from pyspark_jms.amqp.link.pull import browse
from pyspark_jms.amqp.link.read_register import (
    DEFAULT_PREFIX,
    ReadRegister,
    RegisterName,
    driver_container,
    queue_at,
)
from pyspark_jms.amqp.link.register import tokens_at
from pyspark_jms.amqp.link.staged_messages import seen_block, stream_of
from pyspark_jms.blocks.block import StagedRange
from pyspark_jms.delivery.register.token import Token
from pyspark_jms.errors import (
    DataLossError,
    InvalidDestinationError,
    JMSSecurityError,
    SubscriptionInUseError,
    UnsupportedError,
)
from pyspark_jms.management.link import ManagementLink
from pyspark_jms.management.routing import queue_names
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.sentences import counted

__all__ = [
    "ListedRegister",
    "ShownRegister",
    "drop_registers",
    "list_registers",
    "names_of_registers",
    "queue_in",
    "registers_in",
    "require_registers",
    "show_register",
    "staged_in",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRegister:
    name: str
    stream: str | None
    """What the offset log of the query's checkpoint has as ``stream``; None without a token."""
    reader: int
    batch: int | None
    messages: int
    blocks: int
    tokens: int
    owned: bool
    """Whether the driver of a query, or a task, is connected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRegister:
    name: str
    streams: tuple[str, ...]
    tokens: tuple[str, ...]
    reader: int
    batch: int | None
    """What the messages are the answer for."""
    next: int | None
    """The number that the reader's next message gets; None without a token."""
    blocks: int
    messages: int
    bytes: int
    sources: tuple[str, ...]


def registers_in(queues: Iterable[str], prefix: str) -> Iterator[RegisterName]:
    """Yield the registers among queues by their names: ``BASE.N``, or with a client id ``CLIENT.BASE.N``. Dots may be
    escaped.
    """
    for queue in sorted(map(_unescaped, queues)):
        name = RegisterName.of(queue)
        if name is None:
            continue
        if name.base.startswith(prefix):
            yield name
        elif f".{prefix}" in name.base:
            client_id, _, rest = name.base.partition(f".{prefix}")
            yield RegisterName(prefix + rest, name.reader, client_id)


def _unescaped(queue: str) -> str:
    return re.sub(r"\\([.\\])", r"\1", queue)


def list_registers(settings: ConnectionSettings, prefix: str) -> list[ListedRegister]:
    """List the registers. A queue that has no token of a reader is of another kind.

    Needs the permissions ``manage`` and ``browse``.
    """
    with AmqpManagementLink(settings) as link:
        found = {name: queue_in(link, name) for name in registers_in(_queues(link), prefix)}
        owned = {name: _is_owned(link, name) for name, queue in found.items() if queue}
    with contextlib.closing(connect(settings)) as connection:
        seen = [(name, _tokens(connection, name, found[name])) for name in owned]
    return [_listed(name, tokens, is_owned=owned[name]) for name, tokens in seen if tokens]


def _queues(link: ManagementLink) -> list[str]:
    found: list[str] = link.attribute(link.words.broker_resource, link.words.queue_names)
    return found


def queue_in(link: ManagementLink, name: RegisterName) -> str | None:
    """Return the fully qualified name of the register's queue, or None if another address has a queue of its name."""
    for queue in queue_names(name.place.subscription):
        with contextlib.suppress(InvalidDestinationError):
            is_there = link.queue_attribute(queue, link.words.queue.address) == name.address
            return name.place.fully_qualified(queue) if is_there else None
    return None


def _is_owned(link: ManagementLink, name: RegisterName) -> bool:
    """Return whether a query uses it: the driver has a connection while the query runs, and a task has the lock."""
    queue = queue_in(link, name)
    if queue and int(link.queue_attribute(link.queue_name(queue), link.words.queue.consumers)):
        return True
    return bool(link.rows("listConnections", "clientID", driver_container(name.base), 1))


def _tokens(connection: Connection, name: RegisterName, queue: str | None) -> list[Token]:
    try:
        return [stored.token for stored in tokens_at(connection, name.place, queue, Token)] if queue else []
    except DataLossError:
        return []


def _listed(name: RegisterName, tokens: Sequence[Token], *, is_owned: bool) -> ListedRegister:
    last = max(tokens, key=lambda token: token.batch)
    return ListedRegister(
        name=name.address,
        stream=last.stream,
        reader=name.reader,
        batch=last.batch,
        messages=last.next - last.first if last.blocks else 0,
        blocks=last.blocks,
        tokens=len(tokens),
        owned=is_owned,
    )


def names_of_registers(settings: ConnectionSettings, name: str, client_id: str | None) -> list[RegisterName]:
    """Return the register of this name, or all registers below it.

    Those below it are found by management. Without the permission it is ``BASE.N``, or the first one of ``BASE``.
    """
    alone = RegisterName.of(name, client_id) or RegisterName(name, 0, client_id)
    try:
        with AmqpManagementLink(settings) as link:
            queues = _queues(link)
    except (JMSSecurityError, UnsupportedError):
        return [alone]
    mine = [each for each in registers_in(queues, alone.base) if each.client_id == client_id]
    return [each for each in mine if name in {each.address, each.base}]


def show_register(settings: ConnectionSettings, name: RegisterName) -> ShownRegister:
    """Show what a register has, by browsing: nothing changes, and the query may run meanwhile."""
    tokens, blocks = _contents(settings, name)
    last = max(tokens, key=lambda token: token.batch, default=None)
    return ShownRegister(
        name=name.address,
        streams=tuple(sorted({token.stream for token in tokens} | {block.stream for block in blocks})),
        tokens=tuple(token.text() for token in tokens),
        reader=name.reader,
        batch=None if last is None else last.batch,
        next=None if last is None else last.next,
        blocks=len(blocks),
        messages=sum(block.end - block.first for block in blocks),
        bytes=sum(len(block.block.messages.data) for block in blocks),
        sources=tuple(sorted({block.block.source for block in blocks})),
    )


def _contents(settings: ConnectionSettings, name: RegisterName) -> tuple[list[Token], list[StagedRange]]:
    queue = queue_at(settings, name)
    with contextlib.closing(connect(settings)) as connection:
        tokens = _tokens(connection, name, queue)
        messages = browse(connection, queue) if queue else ()
        return tokens, [seen_block(message) for message in messages if stream_of(message) is not None]


def staged_in(settings: ConnectionSettings, name: RegisterName) -> tuple[Counter[str], int | None]:
    """Return how many messages a register has of each source, and of which batch."""
    tokens, blocks = _contents(settings, name)
    counts: Counter[str] = Counter()
    for block in blocks:
        counts[block.block.source] += block.end - block.first
    return counts, max((token.batch for token in tokens), default=None)


def require_registers(settings: ConnectionSettings, names: Sequence[RegisterName]) -> None:
    """Raise ``InvalidDestinationError`` if a queue of such a name may be the subscription of another application."""
    with AmqpManagementLink(settings) as link:
        queues = {name: queue for name in names if (queue := queue_in(link, name))}
    with contextlib.closing(connect(settings)) as connection:
        for name, queue in queues.items():
            tokens = len(_tokens(connection, name, queue))
            blocks = [stream_of(message) is not None for message in browse(connection, queue)]
            others = blocks.count(False) - tokens
            if others or not (blocks or name.address.startswith(DEFAULT_PREFIX)):
                why = f"{counted(others, 'message')} of another application" if others else "no token of a reader"
                raise InvalidDestinationError(
                    f"{queue} may be no staging queue: it has {why}. Nothing was deleted.",
                    "If it is a durable subscription, end it with pyspark-jms unsubscribe. If nobody needs it, delete"
                    " it with the broker's own tools.",
                )


def drop_registers(settings: ConnectionSettings, names: Sequence[RegisterName]) -> None:
    """Delete the registers. ``SubscriptionInUseError``: a query runs.

    Needs the permission ``manage``: between its batches a query has no lock, and only the connection of its driver
    shows that it runs.
    """
    with AmqpManagementLink(settings) as link:
        used = [name.address for name in names if _is_owned(link, name)]
    if used:
        raise SubscriptionInUseError(
            f"A query uses {', '.join(used)}. Nothing was deleted.", "Stop the query, and wait until its tasks end."
        )
    require_registers(settings, names)
    registers: list[ReadRegister] = []
    try:
        for name in names:
            registers.append(ReadRegister(settings, name))
            registers[-1].require_same_topic(settings)
            registers[-1].lock(create=False)
        for register in registers:
            register.release(closed=True)
    finally:
        for register in registers:
            register.close()
