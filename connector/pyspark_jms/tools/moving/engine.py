"""The messages of a queue → the queues that they came from, or one other queue. For dead letters. No Spark.

The queue that the broker notes comes first. The property ``SOURCE_PROPERTY`` is a claim, which any producer can make:
it counts only where the broker notes no queue, and only if the caller accepts claims. The caller's permissions would
otherwise let a producer send to queues that it must not use.

A message is decoded and sent as a new message: body, properties, types and headers stay, ``JMSMessageID`` and
``JMSTimestamp`` are new, and it does not expire. A message that cannot be moved stays where it is.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.blocks.block import MessageBlock, PartitionSlice
from pyspark_jms.columns.arrays import Int64s
from pyspark_jms.columns.row_parts import good_rows
from pyspark_jms.delivery.message_range import Bounds
from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import DEAD_LETTER_PROPERTIES, MOVED_PROPERTY, SOURCE_PROPERTY, Destination, DestinationKind
from pyspark_jms.jms.rules import VALUELESS_TYPES
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.source.end_of_queue import blocks_until, end_of_look
from pyspark_jms.source.links import Reading, SourceLink
from pyspark_jms.source.task_inputs import rows_of

__all__ = ["ConnectMover", "Moved", "MovingLink", "OutgoingMessages", "look_for_targets", "move"]

_TRANSACTION_MESSAGES = 1_000
_SPARE_MESSAGES = 100
"""Messages that stay occupy the prefetch window, so with a limit it is larger than the limit."""
_NO_ORIGIN = "neither the broker nor a property names the queue that the message came from: give --to"
_CAME_BACK = "the message was moved by this command and came back"
_CAME_LATE = "the message came after the queues were printed: run the command again"
_UNREADABLE = "a part of the message cannot be read and would be lost: see body_error of pyspark-jms peek"
_SENT_AS_NULL = (
    "a property or an element is a list, map, array or described value of AMQP, which a row cannot have: it would be"
    " lost"
)
_EMPTY_TEXT = "the text is empty, so it may be a body that STOMP does not carry: move it over AMQP"
_OWN_PROPERTIES = DEAD_LETTER_PROPERTIES | {MOVED_PROPERTY}

OutgoingMessages: TypeAlias = tuple[Destination, Sequence[MessageBlock]]
"""Encoded messages, and where they go."""


class MovingLink(SourceLink, Protocol):
    """A ``SourceLink`` that can also send."""

    def origin(self, block: MessageBlock, index: int) -> Destination | None:
        """Return the queue from which the broker itself took the message, or None if the message does not name it."""

    def check_target(self, name: str) -> None:
        """Raise an ``InvalidDestinationError`` for a queue that no row may name."""

    def encode(self, destination: Destination, rows: pa.RecordBatch, numbers: Int64s) -> Sequence[MessageBlock]:
        """Encode the rows with these numbers. An error that is about certain rows has ``WrongRows`` as its cause."""

    def forward(self, ids: Sequence[bytes], outgoing: Sequence[OutgoingMessages]) -> None:
        """Send the messages, and acknowledge those with these ids. Returns when the broker has confirmed both."""


ConnectMover: TypeAlias = Callable[[ConnectionSettings, StateCondition], MovingLink]
"""``UnsupportedError`` if the broker cannot confirm a move."""


@dataclass(slots=True)
class Moved:
    """What a move did so far."""

    guarantee: str
    messages: int = 0
    targets: Counter[str] = field(default_factory=Counter)
    """Queue → how many messages were moved to it."""

    left: Counter[str] = field(default_factory=Counter)
    """Reason → how many messages stayed on the queue."""


def move(
    reading: Reading,
    connect: ConnectMover,
    *,
    to: Destination | None,
    limit: int | None,
    on_moved: Callable[[int], None],
    accept_claims: bool = False,
    targets: Collection[str] | None = None,
) -> Moved:
    """Move at most ``limit`` messages, or all. If ``to`` is None, each goes to the queue that it came from.

    ``accept_claims``: where the broker notes no queue, follow the property ``SOURCE_PROPERTY``. ``targets``: the queues
    that the user has seen; a message for another one stays.
    ``on_moved`` is called with the number of messages that the broker has confirmed.
    """
    condition = StateCondition()
    with closing(connect(reading.options.connection, condition)) as link:
        if to is not None:
            link.check_target(to.name)
        mover = _Mover(link=link, reading=reading, limit=limit, to=to, accept_claims=accept_claims, targets=targets)
        for block in mover.blocks(condition):
            mover.take(block, on_moved)
    return mover.moved


def look_for_targets(
    reading: Reading, connect: ConnectMover, *, limit: int | None, accept_claims: bool
) -> Counter[str] | None:
    """Return queue → how many messages ``move`` would send to it now, or None if the broker shows no messages without
    delivering them. The messages are browsed: none is taken.
    """
    condition = StateCondition()
    with closing(connect(reading.options.connection, condition)) as link:
        if not link.dialect.browses:
            return None
        mover = _Mover(link=link, reading=reading, limit=limit, to=None, accept_claims=accept_claims)
        found: Counter[str] = Counter()
        for block in mover.blocks(condition, browse=True):
            found.update(target.name for target in mover.movable(block))
    return found


@dataclass(eq=False, kw_only=True)
class _Mover:
    link: MovingLink
    reading: Reading
    limit: int | None
    to: Destination | None
    accept_claims: bool
    targets: Collection[str] | None = None

    def __post_init__(self) -> None:
        acknowledges = self.link.dialect.acknowledges_in_transactions
        self.moved = Moved("exactly-once" if acknowledges else "at-least-once")
        self._refusals: dict[Destination, str | None] = {}
        """Destination → why no message may go there."""
        self._run = uuid.uuid4().hex
        """Marks what this run moves: a consumer may refuse a message, and the broker brings it back."""
        self._rows = 0
        self._room = Bounds(self.limit, None)

    def blocks(self, condition: StateCondition, *, browse: bool = False) -> Iterator[MessageBlock]:
        """Subscribe, and yield what comes until the queue has ended, or the limit is reached."""
        link, options = self.link, self.reading.options
        link.subscribe(
            Subscription(
                destination=options.destinations[0],
                window_bytes=options.window_bytes,
                window_messages=None if self.limit is None else self.limit + _SPARE_MESSAGES,
                transform=True,
                browse=browse,
                selector=options.selector_for(link.dialect),
                probes=True,
            )
        )
        connect = partial(self.reading.connect, StateCondition())
        for block in blocks_until(link, condition, end_of_look(link, connect, options.idle_timeout, misses=True)):
            yield block
            if not self._room.is_left:
                return

    def take(self, block: MessageBlock, on_moved: Callable[[int], None]) -> None:
        for start in range(0, len(block), _TRANSACTION_MESSAGES):
            end = min(start + _TRANSACTION_MESSAGES, len(block))
            self._move(replace(block.slice(start, end), ids=block.ids[start:end]))
            on_moved(self.moved.messages)

    def movable(self, block: MessageBlock) -> list[Destination]:
        """Return where the messages that can be moved go, in their order, up to the limit."""
        targets = self._targets_of(block, self._rows_of(block))
        found = [target for target in targets if isinstance(target, Destination)][: self._room.messages]
        self._room.messages -= len(found)
        return found

    def _rows_of(self, block: MessageBlock) -> pa.RecordBatch:
        place = PartitionSlice(str(self.reading.options.destinations[0]), self.link.dialect.name, 0, block)
        return rows_of([place], self.reading)[0]

    def _targets_of(self, block: MessageBlock, rows: pa.RecordBatch) -> list[Destination | str]:
        lossy = _lossy(rows)
        return [self._target(block, row, lossy) for row in rows.select(_DECIDING).to_pylist()]

    def _move(self, block: MessageBlock) -> None:
        """Move a part of a block in one transaction."""
        rows = self._rows_of(block)
        targets = self._targets_of(block, rows)
        movable = [index for index, target in enumerate(targets) if isinstance(target, Destination)]
        self.moved.left.update(target for target in targets if isinstance(target, str))
        outgoing: list[OutgoingMessages] = []
        ids: list[bytes] = []
        sent: Counter[str] = Counter()
        for target, indices in groupby(movable[: self._room.messages], lambda index: targets[index]):
            assert isinstance(target, Destination)
            kept = self._encodable(target, rows.take(pa.array(list(indices))), outgoing)
            ids += [block.ids[index] or b"" for index in kept]
            sent[target.name] += len(kept)
        if ids:
            self.link.forward(ids, outgoing)
            self.moved.messages += len(ids)
            self._room.messages -= len(ids)
            self.moved.targets.update(sent)

    def _encodable(self, target: Destination, rows: pa.RecordBatch, outgoing: list[OutgoingMessages]) -> list[int]:
        """Add the messages of the rows that can be sent, and return the positions of their messages in the block."""
        blocks: list[MessageBlock] = []

        def encode(part: pa.RecordBatch, numbers: Int64s) -> None:
            blocks[:] = self.link.encode(target, part, numbers)

        sent = _as_new(rows, self._run, self.link.dialect.added_properties)
        good, bad = good_rows(sent, self._rows, encode)
        self._rows += rows.num_rows
        for fault in bad:
            self.moved.left[fault.first.fact] += fault.count
        if good.num_rows:
            outgoing.append((target, blocks))
        kept: list[int] = good.column("sequence").to_pylist()
        return kept

    def _target(self, block: MessageBlock, row: dict[str, Any], lossy: Collection[int]) -> Destination | str:
        """Return where a message goes, or why it stays."""
        properties = dict(row["properties"] or ())
        if properties.get(MOVED_PROPERTY) == self._run:
            return _CAME_BACK
        if row["body_error"] is not None:
            return _UNREADABLE
        if row["sequence"] in lossy:
            return _SENT_AS_NULL
        if not self.link.dialect.carries_all_bodies and row["body_type"] == "text" and not row["text"]:
            return _EMPTY_TEXT
        noted = self.to or self.link.origin(block, row["sequence"])
        target = noted or _named(properties.get(SOURCE_PROPERTY))
        if target is None:
            return _NO_ORIGIN
        if refusal := self._refusal(target):
            return refusal
        if not noted and not self.accept_claims:
            return _claim_of(target)
        return target if self.targets is None or target.name in self.targets else _CAME_LATE

    def _refusal(self, target: Destination) -> str | None:
        if target not in self._refusals:
            try:
                self.link.check_target(target.name)
                self.reading.require_destination(target)
            except InvalidDestinationError as error:
                self._refusals[target] = error.fact
            else:
                self._refusals[target] = None
        return self._refusals[target]


_VALUELESS = pa.array(sorted(VALUELESS_TYPES), pa.string())
_DECIDING = ["sequence", "properties", "body_error", "body_type", "text"]
_WITH_TYPES = ["sequence", "properties", "property_types", "map", "stream"]
_DROPPED = ["JMSExpiration", "JMSDeliveryTime"]
"""A message that is moved neither expires nor waits again."""


def _lossy(rows: pa.RecordBatch) -> frozenset[int]:
    """Return the numbers of the rows that have null in place of a value."""
    kinds = [rows.column("property_types").items, *(_kinds(rows.column(name)) for name in ("map", "stream"))]
    if not any(pc.any(pc.is_in(each, value_set=_VALUELESS)).as_py() for each in kinds):
        return frozenset()
    return frozenset(row["sequence"] for row in rows.select(_WITH_TYPES).to_pylist() if _has_lost_value(row))


def _kinds(elements: pa.MapArray | pa.ListArray) -> pa.Array:
    return (elements.items if pa.types.is_map(elements.type) else elements.values).field("type")


def _has_lost_value(row: dict[str, Any]) -> bool:
    texts = dict(row["properties"] or ())
    values = [(kind, texts.get(name)) for name, kind in row["property_types"] or ()]
    elements = [each for _, each in row["map"] or ()] + (row["stream"] or [])
    values += [(each["type"], each["value"]) for each in elements]
    return any(kind in VALUELESS_TYPES and value is None for kind, value in values)


def _claim_of(target: Destination) -> str:
    return (
        f"property {SOURCE_PROPERTY} names queue {target.name!r}, and any producer can set it:"
        " give --yes to follow the property, or --to"
    )


def _named(source: str | None) -> Destination | None:
    """Return the queue of ``SOURCE_PROPERTY``. A topic is not one: all its subscribers would get the message again."""
    try:
        found = None if source is None else Destination.parse(source)
    except ValueError:
        return None
    return found if found is not None and found.kind is DestinationKind.QUEUE else None


def _as_new(rows: pa.RecordBatch, run: str, added: tuple[str, ...]) -> pa.RecordBatch:
    """Remove what made the rows dead letters, and add the mark of this run. ``added``: see ``BrokerDialect``."""
    rows = rows.drop_columns(_DROPPED)
    for name, mark in (("properties", [(MOVED_PROPERTY, run)]), ("property_types", [])):
        index = rows.schema.get_field_index(name)
        values = [_without_own(entries, added) + mark for entries in rows.column(index).to_pylist()]
        rows = rows.set_column(index, name, pa.array(values, rows.schema.field(index).type))
    return rows


def _without_own(entries: Sequence[tuple[str, str]] | None, added: tuple[str, ...]) -> list[tuple[str, str]]:
    return [pair for pair in entries or () if pair[0] not in _OWN_PROPERTIES and not pair[0].startswith(added)]
