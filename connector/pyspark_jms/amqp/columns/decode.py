"""A block of whole AMQP 1.0 messages → one RecordBatch of the schema.

Each step works on all messages at once. What it does not take is read one message at a time.
Does not know sockets and Spark.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from os.path import commonprefix
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.amqp.columns.bodies import BY_ANNOTATION, body_columns
from pyspark_jms.amqp.columns.byte_reader import ByteReader, Refusals, TooNearTheEndError
from pyspark_jms.amqp.columns.entries import MARKERS, EnvelopedError, PropertyReader
from pyspark_jms.amqp.columns.headers import (
    ABSENT,
    BOOLEAN,
    BYTE,
    LONG,
    TIME,
    UBYTE,
    UINT,
    Annotations,
    destination_of,
    field_at,
    fingerprint_texts,
    ids,
    numbers,
    reply_to_of,
    string,
    times,
)
from pyspark_jms.amqp.columns.one_message import BlockContext, read_message
from pyspark_jms.amqp.columns.walk import NeededParts, Parts, TooManyAtOnceError, walk
from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.amqp.wire.constructors import TYPES
from pyspark_jms.amqp.wire.sections import EMPTY_MESSAGE_ID, digest, fingerprint
from pyspark_jms.blocks.block import MessageBlock, positions_of, wrong_index
from pyspark_jms.columns.arrays import Ints, Uint8s, contents, merged, require_offsets, stacked, strings_at
from pyspark_jms.columns.origins import Origin, Origins, longest_name, spelled
from pyspark_jms.columns.schema import ARROW_SCHEMA, BODY_COLUMNS, COLUMNS, PROPERTY_MAPS, WantedColumns, property_keys
from pyspark_jms.jms.headers import HEADERS, Annotation, Header, HeaderField, HeaderType, PropertiesField
from pyspark_jms.jms.model import DEFAULT_PRIORITY, DESTINATION_WORDS, HIGHEST_PRIORITY, DeliveryMode
from pyspark_jms.jms.subscription import BodyChoice

__all__ = ["decode"]

_ROW_PREFIX = len("temp-queue://") + len("/~") + 32
"""The most that JMSDestination, JMSReplyTo and delivery_id add to a name, in bytes."""


def decode(
    block: MessageBlock,
    *,
    dialect: Dialect,
    source: Origin,
    first_sequence: int,
    body_type: BodyChoice,
    wanted: WantedColumns | None = None,
) -> pa.RecordBatch:
    """Decode the bare messages of a block (AMQP 1.0 §3.2), of whose index only ``ends`` is used.

    An index that leaves the block is an ``IllegalStateError``. A message that cannot be read becomes a row whose
    ``body_error`` states the reason, with the message in ``bytes``; none raises. ``wanted``: the columns of the rows;
    the rows have all columns if one of them is in an envelope, which is opened later.
    """
    context = BlockContext(dialect=dialect, source=source, body_type=body_type, wanted=wanted)
    if not len(block):
        return pa.RecordBatch.from_pylist([], schema=context.schema)
    try:
        return _decoded(block, context, first_sequence)
    except EnvelopedError:
        return _decoded(block, replace(context, wanted=None), first_sequence)


def _decoded(block: MessageBlock, context: BlockContext, first_sequence: int) -> pa.RecordBatch:
    rows = len(block)
    buffer = pa.py_buffer(block.data)
    require_offsets(buffer.size + rows * (longest_name(context.source) + _ROW_PREFIX))
    begins, ends = _bounds(block, buffer.size)
    batch = stacked(list(_pieces(block, ByteReader(buffer), begins, ends, context)))
    place = context.schema.get_field_index("sequence")
    if place < 0:
        return batch
    sequence = pa.array(np.arange(first_sequence, first_sequence + rows, dtype=np.int64))
    return batch.set_column(place, ARROW_SCHEMA.field("sequence"), sequence)


def _pieces(
    block: MessageBlock, reader: ByteReader, begins: Ints, ends: Ints, context: BlockContext
) -> Iterator[pa.RecordBatch]:
    """The rows of all messages, in as few batches as the number of their elements allows."""
    pending = [(0, len(begins))]
    while pending:
        first, last = pending.pop()
        try:
            fast, numbers = _read(reader, begins[first:last], ends[first:last], context.between(first, last))
        except TooNearTheEndError:
            reader = reader.padded()
            pending.append((first, last))
        except TooManyAtOnceError:
            middle = (first + last) // 2
            pending += [(middle, last), (first, middle)]
        else:
            yield _with_others(fast, numbers, block, first, context)


def _bounds(block: MessageBlock, size: int) -> tuple[Ints, Ints]:
    ends = positions_of(block.ends)
    begins = np.concatenate(([0], ends))[:-1]
    if ends[-1] != size or (begins > ends).any():
        raise wrong_index()
    return begins, ends


def _read(reader: ByteReader, begins: Ints, ends: Ints, context: BlockContext) -> tuple[pa.RecordBatch, Ints]:
    """The rows of the messages that can be read all at once, and by message, the number of its row; -1: it has none."""
    numbers = np.full(len(begins), -1, np.int64)
    needed = _needed_parts(context.wanted, reader.raw[begins[0] : ends[0]])
    parts = walk(reader, begins, ends, needed)
    if not len(parts):
        return pa.RecordBatch.from_pylist([], schema=context.schema), numbers
    try:
        columns, refused = columns_of(reader, parts, context)
    except _MorePartsNeededError:
        parts = walk(reader, begins, ends)
        columns, refused = columns_of(reader, parts, context)
    numbers[parts.numbers] = np.arange(len(parts))
    numbers[parts.numbers[refused]] = -1
    arrays = [columns[f.name] if f.name in columns else pa.nulls(len(parts), f.type) for f in context.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=context.schema), numbers


# --- which parts are needed -------------------------------------------------------------------------

_FIELDS: dict[str, list[HeaderField | PropertiesField | Annotation]] = {
    **{header.name: [header.amqp] for header in HEADERS},
    "delivery_id": [PropertiesField.MESSAGE_ID],
    "JMSExpiration": [PropertiesField.ABSOLUTE_EXPIRY_TIME, PropertiesField.CREATION_TIME, HeaderField.TTL],
}
"""By column, the fields of the sections that decide about it."""

_MARKER_PREFIX = commonprefix(sorted(MARKERS)).encode()  # noqa: RUF071 - names, not paths


class _MorePartsNeededError(Exception):
    """A part was not walked, and decides about a wanted column."""


def _needed_parts(wanted: WantedColumns | None, first: Uint8s) -> NeededParts:
    """Return what must be located in each message. ``first`` has the bytes of the first one.

    The others mostly state the type of their body if it does. Where that is wrong, ``columns_of`` raises
    ``_MorePartsNeededError``.
    """
    if wanted is None or wanted.properties or PROPERTY_MAPS & wanted.fixed:
        return NeededParts()
    fields = [field for name in wanted.fixed for field in _FIELDS.get(name, ())]
    if BODY_COLUMNS & wanted.fixed and Annotation.MESSAGE_TYPE.encode() not in first.tobytes():
        fields.append(PropertiesField.CONTENT_TYPE)
    header, properties = (
        max((field + 1 for field in fields if isinstance(field, section)), default=0)
        for section in (HeaderField, PropertiesField)
    )
    return NeededParts(header, properties, application_properties=False)


# --- the columns of the messages that are read all at once ------------------------------------------

_SLASH = pa.scalar("/", pa.string())
_NO_ID, _TRUE = pa.scalar(EMPTY_MESSAGE_ID, pa.string()), pa.scalar(value=True, type=pa.bool_())


def columns_of(reader: ByteReader, parts: Parts, context: BlockContext) -> tuple[dict[str, pa.Array], Ints]:
    """Every wanted column but ``sequence``, and the rows that are left to the reader of one message."""
    refusals = Refusals()
    return _Rows(reader, parts, context, refusals).columns(), refusals.rows()


class _Rows:
    def __init__(self, reader: ByteReader, parts: Parts, context: BlockContext, refusals: Refusals) -> None:
        self._reader = reader
        self._parts = parts
        self._reading = context
        self._refusals = refusals
        self._annotations = Annotations(reader, parts.annotations, len(parts), refusals)

    def columns(self) -> dict[str, pa.Array]:
        """Each step is carried out only for a column that is wanted. A fault elsewhere in the message is not seen."""
        wanted = self._reading.wanted
        names = frozenset(COLUMNS) if wanted is None else wanted.fixed
        found = {name: read() for name, read in self._readers().items() if name in names}
        if BODY_COLUMNS & names:
            found |= self._bodies(names)
        if PROPERTY_MAPS & names:
            found |= self._properties().columns()
        return found if wanted is None else found | self._wanted_properties(wanted)

    @cached_property
    def _message_ids(self) -> pa.Array:
        return self._ids(PropertiesField.MESSAGE_ID, of_messages=True)

    @cached_property
    def _content_types(self) -> pa.Array:
        if self._parts.needed.properties <= PropertiesField.CONTENT_TYPE:
            raise _MorePartsNeededError
        return self._string(PropertiesField.CONTENT_TYPE, TYPES["symbol"])

    @cached_property
    def _earlier(self) -> Ints:
        """Return how often each message was delivered before."""
        return self._header(HeaderField.DELIVERY_COUNT, UINT, absent=0)

    def _readers(self) -> dict[str, Callable[[], pa.Array]]:
        """Column → the function that makes it, for columns that come from one header."""
        return {header.name: partial(self._usual, header) for header in HEADERS} | {
            "JMSMessageID": lambda: self._message_ids,
            "JMSRedelivered": lambda: pa.array(self._earlier > 0),
            "delivery_id": lambda: self._delivery_ids(self._message_ids),
            "JMSDestination": self._destinations,
            "JMSReplyTo": self._reply_tos,
            "JMSExpiration": self._expirations,
            "JMSDeliveryTime": self._delivery_times,
            "JMSDeliveryMode": self._delivery_modes,
            "JMSPriority": self._priorities,
            "content_type": lambda: self._content_types,
            "body_error": lambda: pa.nulls(len(self._parts), pa.string()),
        }

    def _usual(self, header: Header) -> pa.Array:
        """A header that is the value of a field of section properties."""
        assert isinstance(header.amqp, PropertiesField)
        match header.type:
            case HeaderType.ID:
                return self._ids(header.amqp, of_messages=False)
            case HeaderType.TIME:
                return times(self._time(header.amqp))
        return self._string(header.amqp)

    def _properties(self) -> PropertyReader:
        from_stomp = np.asarray(self._message_ids.is_null())
        return PropertyReader(
            self._reader, self._parts, self._refusals, self._reading.dialect, from_stomp, self._earlier
        )

    def _wanted_properties(self, wanted: WantedColumns) -> dict[str, pa.Array]:
        if not self._parts.needed.application_properties:
            self._require_no_marker()
            return {}
        return self._properties().wanted(wanted.properties)

    def _require_no_marker(self) -> None:
        """Require that no marker was found: whether a name is a property's is only known from all properties."""
        begins, ends = self._parts.passed_over
        found, limits = contents(strings_at(self._reader.buffer, begins, ends))
        if found.slice(0, int(limits[-1])).to_pybytes().find(_MARKER_PREFIX) >= 0:
            raise _MorePartsNeededError

    def _bodies(self, wanted: Collection[str]) -> dict[str, pa.Array]:
        types = self._annotations.small(Annotation.MESSAGE_TYPE, BYTE, range(len(BY_ANNOTATION)))
        return body_columns(
            self._reader,
            self._parts,
            self._refusals,
            annotations=types,
            content_types=lambda: self._content_types,
            choice=self._reading.body_type,
            wanted=wanted,
        )

    def _priorities(self) -> pa.Array:
        return _int32(np.minimum(self._header(HeaderField.PRIORITY, UBYTE, absent=DEFAULT_PRIORITY), HIGHEST_PRIORITY))

    def _header(self, number: int, codes: Mapping[int, int | None], *, absent: int) -> Ints:
        field = field_at(self._parts.header, number)
        return numbers(self._reader, field, len(self._parts), codes, absent=absent, refusals=self._refusals)

    def _string(self, number: int, codes: tuple[int, ...] = TYPES["string"]) -> pa.Array:
        field = field_at(self._parts.properties, number)
        return string(self._reader, field, len(self._parts), self._refusals, codes)

    def _ids(self, number: int, *, of_messages: bool) -> pa.Array:
        field = field_at(self._parts.properties, number)
        return ids(self._reader, field, len(self._parts), self._refusals, of_messages=of_messages)

    def _time(self, number: int) -> Ints:
        field = field_at(self._parts.properties, number)
        return numbers(self._reader, field, len(self._parts), TIME, absent=0, refusals=self._refusals)

    def _expirations(self) -> pa.Array:
        """``absolute-expiry-time``; without one, ``creation-time`` and ``ttl``."""
        expiry, life = self._time(PropertiesField.ABSOLUTE_EXPIRY_TIME), self._header(HeaderField.TTL, UINT, absent=0)
        if life.any():
            created = self._time(PropertiesField.CREATION_TIME)
            # A sum that is too large for int64 lies outside of the years that Spark has, before and after it wraps.
            expiry = np.where((expiry == 0) & (created != 0) & (life != 0), created + life, expiry)
        return times(expiry)

    def _delivery_times(self) -> pa.Array:
        found = self._annotations.numbers(Annotation.DELIVERY_TIME, TIME | LONG)
        return times(np.where(found == ABSENT, 0, found))

    def _delivery_modes(self) -> pa.Array:
        durable = self._header(HeaderField.DURABLE, BOOLEAN, absent=0)
        return _int32(np.where(durable == 1, DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT))

    # --- destinations and ids ---------------------------------------------------------------------

    def _destinations(self) -> pa.Array:
        kinds = self._annotations.small(Annotation.DESTINATION, BYTE, range(len(DESTINATION_WORDS)))
        source, dialect = self._reading.source, self._reading.dialect
        texts, codes = self._different(PropertiesField.TO)
        if isinstance(source, Origins):
            every, codes = source.each, codes + source.numbers(self._parts.numbers) * len(texts)
        else:
            every = (source,)

        def spelled_at(code: int, kind: int | None) -> str:
            origin, text = divmod(code, len(texts))
            return destination_of(texts[text], kind, every[origin], dialect)

        return _by_pair(codes, kinds, spelled_at)

    def _reply_tos(self) -> pa.Array:
        if field_at(self._parts.properties, PropertiesField.REPLY_TO) is None:
            return pa.nulls(len(self._parts), pa.string())
        kinds = self._annotations.small(Annotation.REPLY_TO, BYTE, range(len(DESTINATION_WORDS)))
        dialect = self._reading.dialect
        texts, codes = self._different(PropertiesField.REPLY_TO)
        return _by_pair(codes, kinds, lambda code, kind: reply_to_of(texts[code], kind, dialect))

    def _different(self, number: int) -> tuple[list[str | None], Ints]:
        """The different texts of a field, which end with None, and the number of each row's text."""
        texts = self._string(number)
        field = field_at(self._parts.properties, number)
        if field is not None and field.content is not None and len(field.rows) == len(texts):
            return [texts[0].as_py(), None], np.zeros(len(texts), np.int64)
        encoded = texts.dictionary_encode()
        different = encoded.dictionary.to_pylist()
        return [*different, None], encoded.indices.fill_null(len(different)).to_numpy().astype(np.int64)

    def _delivery_ids(self, message_ids: pa.Array) -> pa.Array:
        """``NAME/message-id``, or ``NAME/~fingerprint`` without a message-id."""
        without = np.flatnonzero(np.asarray(pc.equal(message_ids, _NO_ID).fill_null(_TRUE)))
        if len(without):
            digests = self._fingerprints(without)
            mask = np.zeros(len(message_ids), np.bool_)
            mask[without] = True
            message_ids = pc.replace_with_mask(message_ids, pa.array(mask), digests)
        names = spelled(self._reading.source, self._parts.numbers, lambda each: each.name)
        return pc.binary_join_element_wise(names, message_ids, _SLASH)

    def _fingerprints(self, rows: Ints) -> pa.Array:
        data = memoryview(self._reader.buffer)
        places = zip(self._parts.begins[rows].tolist(), self._parts.ends[rows].tolist(), strict=True)
        if self._reading.dialect.changes_annotations:
            return fingerprint_texts([fingerprint(data[begin:end], annotated=False) for begin, end in places])
        return fingerprint_texts([digest(data[begin:end]) for begin, end in places])


def _int32(values: Ints) -> pa.Array:
    return pa.array(values.astype(np.int32))


def _by_pair(codes: Ints, kinds: Ints, spell: Callable[[int, int | None], str | None]) -> pa.Array:
    """``spell`` of each row's code and its kind, called once for each different pair."""
    width = len(DESTINATION_WORDS) + 1
    pairs = codes * width + kinds + 1
    first = int(pairs[0])
    each, where = (np.array([first]), None) if (pairs == first).all() else np.unique(pairs, return_inverse=True)
    different = (divmod(pair, width) for pair in each.tolist())
    texts = pa.array([spell(code, kind - 1 if kind else None) for code, kind in different], pa.string())
    return pa.repeat(texts[0], len(pairs)) if where is None else texts.take(pa.array(where))


# --- messages that are read one at a time -----------------------------------------------------------

_BYTES_AT_ONCE = 1 << 18


def _with_others(
    fast: pa.RecordBatch, numbers: Ints, block: MessageBlock, first: int, context: BlockContext
) -> pa.RecordBatch:
    """One row for each message from ``first`` on: that of ``fast``, or else what the reader of one message reads."""
    others = np.flatnonzero(numbers < 0)
    if not len(others):
        return fast
    return merged(fast, numbers, stacked(list(_one_by_one(block, (first + others).tolist(), context))))


def _one_by_one(block: MessageBlock, rows: list[int], context: BlockContext) -> Iterator[pa.RecordBatch]:
    """The rows of some messages. Those of ``_BYTES_AT_ONCE`` are Python objects at the same time."""
    read, size = [], 0
    for row in rows:
        message = block.message(row)
        read.append(_row(message, context.between(row, row + 1)))
        size += len(message)
        if size >= _BYTES_AT_ONCE or row == rows[-1]:
            yield pa.RecordBatch.from_pylist(read, schema=context.schema)
            read, size = [], 0


def _row(message: bytes, context: BlockContext) -> dict[str, Any]:
    row = read_message(message, context)
    if context.wanted is None:
        return row
    texts, types = (dict(row.get(name) or ()) for name in ("properties", "property_types"))
    if MARKERS & texts.keys():
        raise EnvelopedError
    for name in context.wanted.properties:
        text, kind = property_keys(name)
        row |= {text: texts.get(name), kind: types.get(name)}
    return row
