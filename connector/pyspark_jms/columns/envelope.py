"""Envelopes (docs/typed-messages.md) → the columns with the types that they state.

``open_envelopes`` changes rows of messages that this sink sent over STOMP and that are read over AMQP: a broker
delivers the properties of an envelope as properties. Selectors compare the message as the broker has it, so envelopes
are opened after the selector. The decoder of STOMP calls ``read_elements`` and ``read_types`` itself.

The reference is ``read_one``, which parses one JSON text with Python's json and gives its elements or the reason why it
cannot be read. Does not know the bytes of a protocol.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from pyspark_jms.columns.arrays import Ints, Mask, contents, is_first, merged
from pyspark_jms.columns.schema import ARROW_SCHEMA, TYPED_VALUE
from pyspark_jms.columns.value_texts import misfits
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER, BodyType
from pyspark_jms.jms.rules import PROPERTY_TYPES, TEXTS, element_value_problem
from pyspark_jms.jms.subscription import MAX_ELEMENTS, BodyChoice, too_many

__all__ = [
    "Element",
    "EnvelopeElements",
    "EnvelopeKind",
    "UnreadableValueError",
    "column_of",
    "open_envelopes",
    "read_elements",
    "read_types",
    "read_types_of",
]

EnvelopeKind: TypeAlias = Literal[BodyType.MAP, BodyType.STREAM]
Element: TypeAlias = dict[str, str | None]


class UnreadableValueError(ValueError):
    """The reason why a value or text cannot be read, for column ``body_error``. It quotes nothing of the value."""


@dataclass(frozen=True, slots=True)
class EnvelopeElements:
    """The maps or streams of a column of texts."""

    column: pa.Array
    """The column of the schema; null where a text cannot be read."""

    reasons: dict[int, str]
    """The reason, by row, for each text that cannot be read."""


# --- rows of messages that were sent over STOMP and are read over AMQP ------------------------------

_MARKERS = pa.array([BODY_MARKER, TYPES_MARKER])
_LENGTHS = pa.array(sorted({len(BODY_MARKER), len(TYPES_MARKER)}), pa.int32())
_BODIES = ("text", "bytes", "map", "stream")
_PLAIN = (BodyType.TEXT.value, BodyType.BYTES.value, BodyType.MESSAGE.value)
"""What the broker makes of the SEND frame of an envelope."""
_JSON = "json"
"""The key of a map's or a stream's text in a row, until all of them are read at once."""
_CHANGED = ("properties", "property_types", "body_type", "body_error", *_BODIES)


def open_envelopes(rows: pa.RecordBatch, choice: BodyChoice) -> pa.RecordBatch:
    """Fill the columns that the STOMP decoder reads from an envelope. A marker that cannot be read stays a property.

    Rows without all columns of the schema have no envelopes: ``decode`` gives all columns if there is one. ``choice``
    is option ``bodyType``: markers of bodies are not read if it names one type for all messages.
    """
    if not rows.schema.equals(ARROW_SCHEMA):
        return rows
    found = _enveloped(rows)
    if not len(found):
        return rows
    some = rows.take(pa.array(found))
    columns = {name: some.column(name) for name in ARROW_SCHEMA.names}
    opened = [_open(row, choice) for row in some.select(_CHANGED).to_pylist()]
    columns |= {kind.value: _lists(kind, opened) for kind in (BodyType.MAP, BodyType.STREAM)}
    for name in set(_CHANGED) - {"map", "stream"}:
        columns[name] = pa.array([row[name] for row in opened], ARROW_SCHEMA.field(name).type)
    numbers = np.arange(len(rows))
    numbers[found] = -1
    return merged(rows, numbers, pa.RecordBatch.from_arrays(list(columns.values()), schema=ARROW_SCHEMA))


def _lists(kind: EnvelopeKind, rows: list[dict[str, Any]]) -> pa.Array:
    """The column of maps or streams. A row whose JSON cannot be read gets a ``body_error``."""
    own = pa.array([row[kind.value] for row in rows], ARROW_SCHEMA.field(kind.value).type)
    at = [number for number, row in enumerate(rows) if _JSON in row and row["body_type"] == kind]
    if not at:
        return own
    read = read_elements(kind, pa.array([rows[number][_JSON] for number in at], pa.binary()))
    for number, reason in read.reasons.items():
        rows[at[number]] |= {"body_error": reason, "bytes": rows[at[number]][_JSON]}
    places = np.arange(len(rows))
    places[at] = len(rows) + np.arange(len(at))
    return pa.concat_arrays([own, read.column]).take(pa.array(places))


def _enveloped(rows: pa.RecordBatch) -> Ints:
    """The rows with a marker, and without ``body_error``. Comparing lengths first costs a message some nanoseconds."""
    properties = rows.column("properties")
    names = properties.keys
    may_be = pc.is_in(pc.binary_length(names), value_set=_LENGTHS)
    if not may_be.true_count:
        return np.empty(0, np.int64)
    at = np.flatnonzero(pc.fill_null(pc.and_(may_be, pc.is_in(names, value_set=_MARKERS)), fill_value=False))
    ends = properties.offsets.to_numpy()[1:]
    found: Ints = np.unique(np.searchsorted(ends, at, side="right"))
    whole: Mask = np.asarray(rows.column("body_error").is_null())
    return found[whole[found]]


def _open(row: dict[str, Any], choice: BodyChoice) -> dict[str, Any]:
    properties, types = dict(row["properties"]), dict(row["property_types"] or ())
    row = row | _body(row, properties, choice)
    stated = read_types(pa.array([properties.get(TYPES_MARKER)], pa.string()))[0][0].as_py()
    if stated is not None:
        del properties[TYPES_MARKER]
        types |= dict(stated)
    return row | {
        "properties": list(properties.items()),
        "property_types": [(name, kind) for name, kind in types.items() if name in properties]
        if types
        else row["property_types"],
    }


def _body(row: dict[str, Any], properties: dict[str, str | None], choice: BodyChoice) -> dict[str, Any]:
    """The columns of the body that the marker names. Takes the marker out of ``properties`` if it was read."""
    marker = properties.get(BODY_MARKER)
    if choice != "auto" or marker is None:
        return {}
    if row["body_type"] in _PLAIN:
        data = row["bytes"] or (row["text"] or "").encode()
        try:
            columns = _body_of(marker, data)
        except UnreadableValueError as unreadable:
            columns = {"body_error": str(unreadable), "bytes": data}
            if marker in set(BodyType):
                columns["body_type"] = marker
                del properties[BODY_MARKER]
            return dict.fromkeys(_BODIES) | columns
        del properties[BODY_MARKER]
        return dict.fromkeys(_BODIES) | columns | {"body_type": marker}
    if marker == row["body_type"]:
        del properties[BODY_MARKER]
    return {}


def _body_of(marker: str, data: bytes) -> dict[str, Any]:
    match marker:
        case BodyType.TEXT:
            try:
                return {"text": data.decode()}
            except UnicodeDecodeError:
                raise UnreadableValueError("text is not valid UTF-8") from None
        case BodyType.BYTES | BodyType.OBJECT:
            return {"bytes": data}
        case BodyType.MAP | BodyType.STREAM:
            return {_JSON: data}
        case BodyType.MESSAGE:
            if data:
                raise UnreadableValueError("a message without a body has one")
            return {}
    raise UnreadableValueError(f"property {BODY_MARKER!r} does not name a body type")


# --- a column of texts ------------------------------------------------------------------------------

# Arrow's parser reads many texts at once. Its result is used only where ``read_one`` would give the same, and every
# other text goes to ``read_one``. So a message reads the same whatever messages are beside it.

_AT_ONCE = 256
"""The number of texts that Arrow parses at once. If Arrow refuses one of them, Python reads them all."""

_FEW = 16
"""Up to this number of texts, reading one by one is faster."""

_MOST_BYTES = 1 << 30
"""The limit of texts that are parsed at once: Arrow counts their bytes in 31 bits."""

_KEYS = {BodyType.MAP: ("name", "type", "value"), BodyType.STREAM: ("type", "value")}
_LISTS = {kind: pa.list_(pa.struct([pa.field(key, pa.string()) for key in keys])) for kind, keys in _KEYS.items()}
_STRING = re.compile(rb'"[^"]*"')
_OUTER = 2
"""The object and the array around the elements of an envelope."""

_NO_ENVELOPE = pa.scalar(b"{}", pa.binary())
_NO_NAME = pa.scalar("", pa.string())
_BEGIN, _OF, _END, _NO_GAP = (pa.scalar(part, pa.binary()) for part in (b'{"number":', b',"of":', b"}\n", b""))


def read_elements(kind: EnvelopeKind, texts: pa.Array) -> EnvelopeElements:
    """The elements of each text of a binary column."""
    reasons = _with_too_many(kind, texts)
    lists = _by_arrow(kind, _without(texts, reasons))
    odd = _odd(lists)
    read: list[list[Element] | None] = []
    for row in np.flatnonzero(odd).tolist():
        if row in reasons:
            read.append(None)
            continue
        try:
            read.append(read_one(kind, texts[row].as_py()))
        except UnreadableValueError as unreadable:
            read.append(None)
            reasons[row] = str(unreadable)
    if read:
        lists = _with(lists, odd, pa.array(read, lists.type))
    return EnvelopeElements(_MAKERS[kind](lists), reasons)


def _with_too_many(kind: EnvelopeKind, texts: pa.Array) -> dict[int, str]:
    """By row, the reason not to parse a text. A text of no more than ``MAX_ELEMENTS`` bytes cannot have too many."""
    long = np.flatnonzero(pc.greater(pc.binary_length(texts), pa.scalar(MAX_ELEMENTS)))
    return {row: f"the {kind} has {too_many('elements')}" for row in long.tolist() if _exceeds(texts[row].as_py())}


def _exceeds(data: bytes) -> bool:
    """Return whether a JSON text has more objects, arrays or members than an envelope of ``MAX_ELEMENTS``.

    They are counted before the text is parsed, because each takes a hundred bytes of memory when it is.
    """
    if not _counts_exceed(data):
        return False
    without_escapes = data.replace(rb"\\", b"").replace(rb"\"", b"")
    return _counts_exceed(_STRING.sub(b"", without_escapes))


def _counts_exceed(data: bytes) -> bool:
    objects, members = data.count(b"{") + data.count(b"["), data.count(b",")
    return objects > MAX_ELEMENTS + _OUTER or members > MAX_ELEMENTS * len(_KEYS[BodyType.MAP])


def _without(texts: pa.Array, rows: Iterable[int]) -> pa.Array:
    """The texts with a JSON that is no envelope in the place of some."""
    if not rows:
        return texts
    mask = np.zeros(len(texts), np.bool_)
    mask[list(rows)] = True
    return pc.if_else(pa.array(mask), _NO_ENVELOPE, texts)


def column_of(kind: EnvelopeKind, elements: Sequence[Sequence[Element] | None]) -> pa.Array:
    """The column of the schema for elements that were read one text at a time."""
    return _MAKERS[kind](pa.array(elements, _LISTS[kind]))


def _with(lists: pa.Array, odd: Mask, replacements: pa.Array) -> pa.Array:
    """``lists`` with the replacements in the places of the odd ones."""
    order = np.empty(len(lists), np.int64)
    order[np.flatnonzero(~odd)] = np.arange(len(lists) - len(replacements))
    order[np.flatnonzero(odd)] = np.arange(len(lists) - len(replacements), len(lists))
    return pa.concat_arrays([lists.filter(pa.array(~odd)), replacements]).take(pa.array(order))


# --- one text -----------------------------------------------------------------------------------


def read_one(kind: EnvelopeKind, data: bytes) -> list[Element]:
    """Return the elements of one text. Raise ``UnreadableValueError`` if it is not an envelope of values that fit."""
    try:
        elements = _of_shape(kind, data.decode())
    except UnicodeDecodeError:
        raise UnreadableValueError("text is not valid UTF-8") from None
    except (ValueError, RecursionError):
        raise UnreadableValueError(f"body is not the JSON of a {kind}") from None
    names: set[str] = set()
    for number, element in enumerate(elements, 1):
        problem = (kind is BodyType.MAP and _name_problem(element, names)) or _value_problem(element)
        if problem:
            raise UnreadableValueError(f"element {number} of the {kind} {problem}")
    return elements


def _of_shape(kind: EnvelopeKind, text: str) -> list[Element]:
    document = _load(text)
    if not isinstance(document, dict) or document.keys() != {kind.value}:
        raise ValueError
    elements = document[kind]
    if not isinstance(elements, list):
        raise ValueError  # noqa: TRY004 - a wrong shape has one reason only
    return [_element(kind, element) for element in elements]


def _element(kind: EnvelopeKind, element: Any) -> Element:
    if not isinstance(element, dict) or not element.keys() <= set(_KEYS[kind]):
        raise ValueError
    for value in element.values():
        if not isinstance(value, str | None):
            raise ValueError  # noqa: TRY004 - as above
        (value or "").encode()  # half of a surrogate pair is a ValueError
    return {key: element.get(key) for key in _KEYS[kind]}


def _name_problem(element: Element, names: set[str]) -> str | None:
    name = element["name"]
    if not name:
        return "has no name"  # JMS 3.1 §3.11.3
    if name in names:
        return "has the same name as an earlier one"
    names.add(name)
    return None


def _value_problem(element: Element) -> str | None:
    kind, value = element["type"], element["value"]
    if kind not in TEXTS:
        return "has no JMS type"
    return f"is not of type {kind}" if element_value_problem(kind, value) else None


def _load(text: str) -> Any:
    """JSON by RFC 8259 without numbers and without repeated keys in an object; otherwise a ``ValueError``."""
    return json.loads(text, object_pairs_hook=_object, parse_int=_refuse, parse_float=_refuse, parse_constant=_refuse)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _refuse(_: str) -> Any:
    raise ValueError


# --- many texts ---------------------------------------------------------------------------------


def _by_arrow(kind: EnvelopeKind, texts: pa.Array) -> pa.Array:
    """The list in each text, null where Arrow does not read it."""
    if len(texts) <= _FEW:
        return pa.nulls(len(texts), _LISTS[kind])
    return pa.concat_arrays([_parsed(kind, texts.slice(begin, _AT_ONCE)) for begin in range(0, len(texts), _AT_ONCE)])


def _parsed(kind: EnvelopeKind, texts: pa.Array) -> pa.Array:
    nothing = pa.nulls(len(texts), _LISTS[kind])
    numbers = pa.array(np.arange(len(texts)))
    lines = pc.binary_join_element_wise(_BEGIN, numbers.cast(pa.string()).view(pa.binary()), _OF, texts, _END, _NO_GAP)
    schema = pa.schema({"number": pa.int64(), "of": pa.struct({kind.value: _LISTS[kind]})})
    try:
        table = _table(lines, schema)
    except pa.ArrowInvalid:
        return nothing
    # A text may end its own object and begin another one, which Arrow takes for the next text: the counts then differ.
    if not table["number"].combine_chunks().equals(numbers):
        return nothing
    return pc.struct_field(table["of"], kind.value).combine_chunks()


def _table(lines: pa.Array, schema: pa.Schema) -> pa.Table:
    """One row for each object. An object with other keys than the schema's, or not UTF-8, is an ``ArrowInvalid``."""
    data, limits = contents(lines)
    size = int(limits[-1])
    if size > _MOST_BYTES:
        raise pa.ArrowInvalid
    table = pj.read_json(
        pa.BufferReader(data.slice(0, size)),
        read_options=pj.ReadOptions(use_threads=False, block_size=size),  # one block, because a text may have line ends
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )
    table.validate(full=True)
    return table


def _odd(lists: pa.Array) -> Mask:
    """Which lists ``read_one`` must read: all that may be wrong."""
    elements = lists.flatten()
    # A null element has no type, so it is reported as invalid.
    wrong = misfits(pc.struct_field(elements, "type"), pc.struct_field(elements, "value"))
    rows = np.repeat(np.arange(len(lists)), _lengths(lists))
    if lists.type == _LISTS[BodyType.MAP]:
        wrong |= _wrong_names(pc.struct_field(elements, "name"), rows, len(lists))
    odd: Mask = np.asarray(lists.is_null())
    odd[rows[wrong]] = True
    return odd


def _wrong_names(names: pa.Array, rows: Ints, maps: int) -> Mask:
    encoded = names.fill_null(_NO_NAME).dictionary_encode()
    code = encoded.indices.to_numpy().astype(np.int64)
    empty = np.asarray(pc.equal(encoded.dictionary, _NO_NAME))
    wrong: Mask = empty[code] | ~is_first(rows, code, maps, len(empty))
    return wrong


def _lengths(lists: pa.Array) -> Ints:
    lengths: Ints = lists.value_lengths().fill_null(0).to_numpy().astype(np.int64)
    return lengths


def _offsets(lists: pa.Array) -> pa.Array:
    return pa.array(np.concatenate(([0], np.cumsum(_lengths(lists)))), pa.int32())


def _map(lists: pa.Array) -> pa.Array:
    elements = lists.flatten()
    values = pa.StructArray.from_arrays([elements.field("type"), elements.field("value")], fields=list(TYPED_VALUE))
    kind = ARROW_SCHEMA.field("map").type
    return pa.MapArray.from_arrays(_offsets(lists), elements.field("name"), values, kind, mask=lists.is_null())


def _stream(lists: pa.Array) -> pa.Array:
    return lists


_MAKERS = {BodyType.MAP: _map, BodyType.STREAM: _stream}


# --- property_types -----------------------------------------------------------------------------


def read_types_of(texts: pa.Array, names: Sequence[str]) -> list[pa.Array]:
    """By name, the JMS type of that property in each text; null where the text does not state it or cannot be read."""
    encoded = texts.dictionary_encode()
    found = [_readable(text) or {} for text in encoded.dictionary.to_pylist()]
    return [pa.array([types.get(name) for types in found], pa.string()).take(encoded.indices) for name in names]


def _readable(text: str) -> dict[str, str] | None:
    return None if text.count(":") > MAX_ELEMENTS else _types_in(text)


def read_types(texts: pa.Array) -> tuple[pa.Array, Ints]:
    """Property name → JMS type, from each text; and the rows whose text cannot be read. Equal texts are read once."""
    encoded = texts.dictionary_encode()
    found = [_readable(text) for text in encoded.dictionary.to_pylist()]
    bad = np.array([types is None for types in found] + [False])
    codes = encoded.indices.fill_null(len(found)).to_numpy()
    column = pa.array([types and list(types.items()) for types in found], ARROW_SCHEMA.field("property_types").type)
    return column.take(encoded.indices), np.flatnonzero(bad[codes])


def _types_in(text: str) -> dict[str, str] | None:
    try:
        types = _load(text)
        if not isinstance(types, dict) or not all(types) or not set(types.values()) <= PROPERTY_TYPES:
            return None
        "".join(types).encode()
    except (ValueError, RecursionError, TypeError):  # a list among the values is not hashable
        return None
    return types
