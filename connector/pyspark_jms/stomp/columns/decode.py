"""A block of whole MESSAGE frames → one RecordBatch of the schema.

Each step works on all frames at once: only messages and headers with faults are handled one by one.
Does not know sockets and Spark.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.arrays import Ints, Mask, is_utf8, not_utf8, require_offsets
from pyspark_jms.columns.envelope import (
    Element,
    EnvelopeElements,
    EnvelopeKind,
    UnreadableValueError,
    column_of,
    read_elements,
)
from pyspark_jms.columns.origins import Origin, longest_name
from pyspark_jms.columns.schema import ARROW_SCHEMA, BODY_COLUMNS, COLUMNS, PROPERTY_MAPS, WantedColumns
from pyspark_jms.columns.value_texts import BODY_TYPE_NAMES, integers
from pyspark_jms.jms.model import BODY_MARKER, OCTET_STREAM, BodyType
from pyspark_jms.jms.rules import element_value_problem
from pyspark_jms.jms.subscription import MAX_ELEMENTS, BodyChoice, too_many
from pyspark_jms.sentences import joined_faults
from pyspark_jms.stomp.columns.frames import FrameBounds, with_few_headers
from pyspark_jms.stomp.columns.headers import Headers, HeaderTexts, layout_of
from pyspark_jms.stomp.columns.lines import Fault, Lines, NotPlainError, split_lines, wanted_lines
from pyspark_jms.stomp.dialects.base import BodyRule, Dialect

__all__ = ["decode"]

_ROW_PREFIX = len("queue://") + len("/")
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
    """Decode the MESSAGE frames of a block, which is as ``FrameScanner`` makes it.

    An index that the bytes do not bear out is an ``IllegalStateError``.
    A message that cannot be read becomes a row whose ``body_error`` states the reason; none raises.
    ``wanted``: the columns of the rows, instead of all.
    """
    schema = ARROW_SCHEMA if wanted is None else wanted.schema
    frames = FrameBounds.of(block)
    rows = len(frames)
    if not rows:
        return pa.RecordBatch.from_pylist([], schema=schema)
    frames, too_many = with_few_headers(frames, dialect)
    require_offsets(frames.raw.size + rows * (longest_name(source) + _ROW_PREFIX))
    read = _FrameReader(frames, too_many, dialect, source, first_sequence, body_type, wanted)
    few = None if wanted is None else _few_lines(frames, dialect, wanted)
    if few is not None:
        try:
            return read.batch(few)
        except NotPlainError:
            pass
    return read.batch(split_lines(frames))


@dataclass(frozen=True, slots=True)
class _FrameReader:
    frames: FrameBounds
    too_many: dict[int, str]
    dialect: Dialect
    source: Origin
    first_sequence: int
    body_type: BodyChoice
    wanted: WantedColumns | None

    def batch(self, lines: Lines) -> pa.RecordBatch:
        frames, wanted, rows = self.frames, self.wanted, len(self.frames)
        schema = ARROW_SCHEMA if wanted is None else wanted.schema
        names = frozenset(schema.names)
        properties = None if wanted is None or "properties" in wanted.fixed else wanted.properties
        texts = HeaderTexts(lines, layout_of(lines, self.dialect, properties))
        forced = self.body_type
        types = detect_body_types(texts, self.dialect) if forced == "auto" else force_body_type(texts, forced)
        headers = Headers(texts, self.dialect, types.unread_markers)
        columns, faults = headers.columns(names), headers.faults
        columns |= headers.property_columns(() if wanted is None else wanted.properties)
        if names & BODY_COLUMNS:
            lost = lost_bodies(texts, self.dialect, frames.body_ends - frames.body_starts)
            unread = types.unread | lost | self.too_many
            bodies, unreadable = read_bodies(frames, types.codes, unread, types.transformed, wanted=names)
            columns, faults = columns | bodies, faults + unreadable
        made: dict[str, Callable[[], pa.Array]] = {
            "sequence": lambda: pa.array(np.arange(rows) + self.first_sequence, pa.int64()),
            "JMSDestination": lambda: headers.read_from(self.source),
            "body_error": lambda: _reasons(faults, rows),
            "delivery_id": lambda: headers.delivery_id(self.source),
        }
        columns |= {name: make() for name, make in made.items() if name in names}
        # Without messages of a kind, its column is null.
        every = [columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in schema]
        return pa.RecordBatch.from_arrays(every, schema=schema)


_BODY_ROLES = frozenset(
    {"@body", "@content-length", "@message-type", "@stored-size", "@transformation", "content_type"}
)
"""The headers that decide about the type of a body, in any dialect."""
_NEEDS_ALL_LINES = PROPERTY_MAPS | {"body_error", "bytes"}


def _few_lines(frames: FrameBounds, dialect: Dialect, wanted: WantedColumns) -> Lines | None:
    """The lines that decide about the wanted columns, if these are few and the frames have one layout; else None."""
    if _NEEDS_ALL_LINES & wanted.fixed:
        return None
    roles = set(wanted.fixed)
    if BODY_COLUMNS & wanted.fixed:
        roles |= _BODY_ROLES
    if wanted.fixed & {"JMSMessageID", "delivery_id"}:
        roles.add("@message-id")
    if "JMSDestination" in wanted.fixed:
        roles.add("@destination")
    if wanted.properties:
        roles.add("@types")
    names = {name for name, role in dialect.message_headers.items() if role in roles}
    renamed = {name for name, shown in dialect.property_names.items() if shown in wanted.properties}
    return wanted_lines(frames, names.union(wanted.properties, renamed))


def _reasons(faults: list[Fault], rows: int) -> pa.Array:
    """``body_error``: the faults of a message, in the order of its bytes."""
    if not faults:
        return pa.nulls(rows, pa.string())
    texts: list[str | None] = [None] * rows
    ordered = sorted(faults, key=lambda fault: (fault.row, fault.place))
    for row, of_row in groupby(ordered, key=lambda fault: fault.row):
        reasons = [fault.reason for fault in of_row]
        texts[row] = joined_faults(reasons)
    return pa.array(texts, pa.string())


# --- the columns of bodies -------------------------------------------------------------------------

# A body's type comes from the headers alone, and its column from its bytes. What cannot be read stays in ``bytes``,
# with the reason as a fault.

_TEXT, _BYTES, _MAP, _STREAM, _OBJECT, _MESSAGE = range(len(BODY_TYPE_NAMES))
_AFTER_HEADERS = 1 << 62


def read_bodies(
    frames: FrameBounds,
    codes: Ints,
    unread: dict[int, str],
    transformed: Mask | None = None,
    *,
    wanted: Collection[str] = COLUMNS,
) -> tuple[dict[str, pa.Array], list[Fault]]:
    """Each body in the column of its type; or raw in ``bytes``, with the reason among the faults.

    ``unread``: by row, the reason not to read a body; ``transformed``: which maps the broker has rendered as XML. The
    bytes of an object are never deserialised. ``wanted``: the columns; ``bytes`` wants all of them.
    """
    reasons = dict(unread)
    is_text = codes == _TEXT
    is_text[list(unread)] = False
    text = frames.bodies(is_text)
    if not is_utf8(text):
        wrong = not_utf8(text)
        reasons |= dict.fromkeys(np.flatnonzero(wrong).tolist(), "text is not valid UTF-8")
        text = frames.bodies(is_text & ~wrong)
    columns = {"body_type": BODY_TYPE_NAMES.take(pa.array(codes)), "text": text}
    if ("bytes" in wanted or "map" in wanted or "stream" in wanted) and (codes > _BYTES).any():
        columns |= _typed(frames, codes, transformed, reasons)
    if "bytes" not in wanted:
        return columns, []
    raw = (codes == _BYTES) | (codes == _OBJECT)
    raw[list(reasons)] = True
    columns["bytes"] = frames.bodies(raw).view(pa.binary()) if raw.any() else pa.nulls(len(raw), pa.binary())
    return columns, [Fault(row, _AFTER_HEADERS, reason) for row, reason in reasons.items()]


def _typed(frames: FrameBounds, codes: Ints, transformed: Mask | None, reasons: dict[int, str]) -> dict[str, pa.Array]:
    """``map`` and ``stream``. Adds to ``reasons`` why a body could not be read."""
    columns: dict[str, pa.Array] = {}
    unread = np.zeros(len(codes), np.bool_)
    unread[list(reasons)] = True
    in_xml = np.zeros(len(codes), np.bool_) if transformed is None else transformed & (codes == _MAP)
    places: tuple[tuple[EnvelopeKind, Mask, Callable[[EnvelopeKind, pa.Array], EnvelopeElements]], ...] = (
        (BodyType.MAP, (codes == _MAP) & ~in_xml, read_elements),
        (BodyType.MAP, in_xml, read_xml),
        (BodyType.STREAM, codes == _STREAM, read_elements),
    )
    for kind, mask, read in places:
        rows = np.flatnonzero(mask & ~unread)
        if len(rows):
            elements = read(kind, frames.bodies_of(rows))
            reasons |= {int(rows[index]): reason for index, reason in elements.reasons.items()}
            column = _spread(elements.column, rows, len(codes))
            columns[kind.value] = pc.coalesce(columns[kind.value], column) if kind.value in columns else column
    unexpected = np.flatnonzero((codes == _MESSAGE) & (frames.body_starts < frames.body_ends) & ~unread)
    reasons |= dict.fromkeys(unexpected.tolist(), "a message without a body has one")
    return columns


def _spread(column: pa.Array, rows: Ints, count: int) -> pa.Array:
    if len(rows) == count:
        return column
    places = np.full(count, -1)
    places[rows] = np.arange(len(rows))
    return column.take(pa.array(places, mask=places < 0))


# --- which type a body has --------------------------------------------------------------------------

_MOST_STORED = (1 << 62) - 1
_TRANSFORMED = "the broker turned the object into XML"
_LOST_BODY = "the broker did not send the body: it is neither text nor bytes"
_UNKNOWN_BODY = f"property {BODY_MARKER!r} does not name a body type"


@dataclass(frozen=True, slots=True)
class BodyTypes:
    """The body types of all frames."""

    codes: Ints
    """The code of each frame's body type."""

    unread: dict[int, str]
    """By row, the reason not to read a body."""

    transformed: Mask | None
    """Which maps the broker has rendered as XML, or None if no map is read."""

    unread_markers: Ints
    """The lines of markers that were not read. They stay properties."""


def force_body_type(headers: HeaderTexts, kind: Literal["text", "bytes"]) -> BodyTypes:
    """One type for all frames. Markers are not read."""
    markers = headers.line("@body")
    codes = np.full(len(headers), BODY_TYPE_NAMES.index(kind).as_py())
    return BodyTypes(codes, {}, transformed=None, unread_markers=markers[markers >= 0])


def detect_body_types(headers: HeaderTexts, dialect: Dialect) -> BodyTypes:
    """The type of each frame: by its marker, else by the dialect's rule."""
    transformed, objects = (
        headers.equals("@transformation", text) for text in (dialect.transformed_map, dialect.transformed_object)
    )
    codes = _by_rule(headers, dialect)
    codes[transformed] = _MAP
    codes[objects] = _OBJECT
    unread = dict.fromkeys(np.flatnonzero(objects).tolist(), _TRANSFORMED)
    markers = headers.line("@body")
    if "@body" not in headers.layout.roles:
        return BodyTypes(codes, unread, transformed, unread_markers=markers[:0])
    marked = pc.index_in(headers.text("@body"), value_set=BODY_TYPE_NAMES).fill_null(-1).to_numpy()
    unknown = np.flatnonzero((marked < 0) & (markers >= 0))
    unread |= dict.fromkeys(unknown.tolist(), _UNKNOWN_BODY)
    return BodyTypes(np.where(marked < 0, codes, marked), unread, transformed, unread_markers=markers[unknown])


def _by_rule(headers: HeaderTexts, dialect: Dialect) -> Ints:
    match dialect.body_rule:
        case BodyRule.CONTENT_LENGTH_NOT_LAST:
            line, last = headers.line("@content-length"), headers.lines.first[1:] - 1
            is_bytes = (line >= 0) & (line != last)
        case BodyRule.CONTENT_LENGTH:
            is_text = headers.equals("@message-type", dialect.text_message_type)
            is_bytes = (headers.line("@content-length") >= 0) & ~is_text
        case BodyRule.CONTENT_TYPE:
            is_bytes = headers.equals("content_type", OCTET_STREAM)
    codes: Ints = np.where(is_bytes, _BYTES, _TEXT)
    return codes


def lost_bodies(headers: HeaderTexts, dialect: Dialect, sizes: Ints) -> dict[int, str]:
    """Map each row whose body was lost to the reason: STOMP does not carry its type.

    The broker gives the stored size of a large message. Bytes are stored as they are, and texts in UTF-16, which is at
    most twice as large as UTF-8.
    """
    if "@stored-size" not in headers.layout.roles:
        return {}
    stored, _ = integers(headers.text("@stored-size"), 0, _MOST_STORED)
    lost = 2 * sizes + dialect.stored_text_overhead < stored.fill_null(0).to_numpy()
    return dict.fromkeys(np.flatnonzero(lost).tolist(), _LOST_BODY)


# --- maps as XML ------------------------------------------------------------------------------------

# ActiveMQ Classic's transformation jms-xml makes XML of a map. One text is read at a time, and only the elements that
# XStream writes for a map are accepted: no declarations, no external documents.

_TYPES = {"byte-array": "bytes"} | {
    name: name for name in ("boolean", "byte", "short", "int", "long", "float", "double", "char", "string")
}
_MAP_XML = re.compile(r"\s*(?:<map/>|<map>(?P<entries>.*)</map>)\s*", re.DOTALL)
_ENTRY = re.compile(
    r"\s*<entry>\s*<string>(?P<name>[^<]*)</string>\s*"
    rf"(?:<null/>|<(?P<type>{'|'.join(_TYPES)})(?:/>|>(?P<value>[^<]*)</(?P=type)>))\s*</entry>\s*"
)
_REFERENCE = re.compile(r"&(?:#(?P<decimal>[0-9]{1,7})|#x(?P<hex>[0-9a-fA-F]{1,6})|(?P<name>[a-z]{2,4}));|&")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_NO_MAP = "body is not the XML of a map"


def read_xml(kind: EnvelopeKind, texts: pa.Array) -> EnvelopeElements:
    """The elements of each text of a binary column."""
    assert kind is BodyType.MAP, "the broker transforms no streams"
    found: list[list[Element] | None] = []
    reasons = {}
    for row, text in enumerate(texts.to_pylist()):
        try:
            found.append(_elements(text))
        except UnreadableValueError as unreadable:
            found.append(None)
            reasons[row] = str(unreadable)
    return EnvelopeElements(column_of(kind, found), reasons)


def _elements(data: bytes) -> list[Element]:
    try:
        whole = _MAP_XML.fullmatch(data.decode())
    except UnicodeDecodeError:
        raise UnreadableValueError("text is not valid UTF-8") from None
    if whole is None:
        raise UnreadableValueError(_NO_MAP)
    entries = whole["entries"] or ""
    elements: dict[str, Element] = {}
    at = number = 0
    while at < len(entries) and (entry := _ENTRY.match(entries, at)):
        number += 1
        if number > MAX_ELEMENTS:
            raise UnreadableValueError(f"the map has {too_many('elements')}")
        element = _element(entry, number)
        elements[element["name"] or ""] = element
        at = entry.end()
    if entries[at:].strip():
        raise UnreadableValueError(_NO_MAP)
    return list(elements.values())


def _element(entry: re.Match[str], number: int) -> Element:
    kind = _TYPES.get(entry["type"] or "", "string")
    value = None if entry["type"] is None else _plain(entry["value"] or "")
    if value is not None and kind == "bytes":
        value = "".join(value.split())  # base64 may have line ends
    if value is not None and element_value_problem(kind, value):
        raise UnreadableValueError(f"element {number} of the map is not of type {kind}")
    return {"name": _plain(entry["name"]), "type": kind, "value": value}


def _plain(text: str) -> str:
    return _REFERENCE.sub(_character, text)


def _character(reference: re.Match[str]) -> str:
    if reference["name"] in _NAMED:
        return _NAMED[reference["name"]]
    code = int(reference["decimal"] or "0") or int(reference["hex"] or "0", 16)
    surrogate = range(0xD800, 0xE000)
    if not code or code in surrogate or code > 0x10FFFF:  # noqa: PLR2004 - the last code point of Unicode
        raise UnreadableValueError(_NO_MAP)
    return chr(code)
