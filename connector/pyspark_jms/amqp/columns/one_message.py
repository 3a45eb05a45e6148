"""One encoded message → one row, every byte checked: the reader of what the vectorised decoder does not take.

A message that is not AMQP 1.0, or holds what JMS does not have, becomes a row with ``body_error`` and its bytes. What
can be read is in the row's other columns: a faulty property does not hide the body.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from pyspark_jms.amqp.columns.bodies import BY_ANNOTATION, OBJECT_TYPE, is_text_type
from pyspark_jms.amqp.columns.headers import destination_of, reply_to_of
from pyspark_jms.amqp.columns.one_value import (
    AMQP_NAMES,
    BINARIES,
    BOOLEANS,
    JMS_TYPES,
    STRINGS,
    SYMBOLS,
    element_text,
    number,
    property_text,
    required,
    string,
    utf8,
)
from pyspark_jms.amqp.dialects.base import COMPRESSED_PROPERTY, SIZE_PROPERTY, Dialect
from pyspark_jms.amqp.wire.constructors import NULL, codes_of
from pyspark_jms.amqp.wire.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    EMPTY_MESSAGE_ID,
    FOOTER,
    HEADER,
    LISTS,
    MAPS,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    Buffer,
    MalformedMessageError,
    content,
    count_of,
    elements,
    fingerprint,
    id_text,
    sections,
    stable_id,
)
from pyspark_jms.columns.envelope import UnreadableValueError
from pyspark_jms.columns.origins import Origin, between, origin_at
from pyspark_jms.columns.schema import ARROW_SCHEMA, FIRST_MS, LAST_MS, WantedColumns
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.headers import (
    JMSX_FIELDS,
    TEXT_FIELDS,
    Annotation,
    Header,
    HeaderField,
    HeaderType,
    PropertiesField,
)
from pyspark_jms.jms.model import (
    DEFAULT_PRIORITY,
    DESTINATION_WORDS,
    HIGHEST_PRIORITY,
    BodyType,
    DeliveryMode,
    Destination,
)
from pyspark_jms.jms.rules import shown_name
from pyspark_jms.jms.subscription import MAX_ELEMENTS, BodyChoice, too_many
from pyspark_jms.sentences import joined_faults

__all__ = ["BlockContext", "has_unheld_time", "read_message"]

_BYTE, _UINTS, _LONGS = map(codes_of, ("byte", "uint", "long"))
_TIMES = codes_of("long", "timestamp")
_MAX_INT = (1 << 31) - 1
_MAP_SECTIONS = dict.fromkeys((DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, FOOTER), "annotations") | {
    APPLICATION_PROPERTIES: "properties"
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockContext:
    """The facts that all messages of a block share."""

    dialect: Dialect
    source: Origin
    body_type: BodyChoice
    wanted: WantedColumns | None = None
    """The columns to decode, or None for all."""

    @property
    def schema(self) -> pa.Schema:
        return ARROW_SCHEMA if self.wanted is None else self.wanted.schema

    def between(self, first: int, last: int) -> "BlockContext":
        """Return the context of the messages ``first`` to ``last`` (not included) of the block."""
        source = between(self.source, first, last)
        return self if source is self.source else replace(self, source=source)

    @property
    def only_source(self) -> Destination:
        """Return the source of a context that has one message."""
        return origin_at(self.source, 0)


@dataclass(slots=True)
class _Row:
    columns: dict[str, Any] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    properties: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    time_to_live: int = 0
    """``ttl`` of the header, in milliseconds."""

    def read(self, name: str, read: Callable[[bytes, int], Any], message: bytes, at: int) -> Any:
        """The value at a position; None and a fault if ``read`` raises ``UnreadableValueError``."""
        try:
            return read(message, at)
        except UnreadableValueError as unreadable:
            self.faults.append(f"{name} {unreadable}")
            return None


@dataclass(frozen=True, slots=True)
class _Parts:
    """The positions of a message's parts: fields by their number, annotations by their name."""

    header: dict[int, int]
    annotations: dict[bytes, int]
    properties: dict[int, int]
    application_properties: list[tuple[int, int]]
    bodies: list[tuple[int, int]]
    """The code of each body section, and the position of its value."""
    faults: list[str]
    """What has too many entries, which are left out."""


def read_message(message: bytes, context: BlockContext) -> dict[str, Any]:
    """The columns of one message without ``sequence``. It never raises."""
    row = _Row()
    try:
        parts = _parts_of(message)
    except MalformedMessageError as malformed:
        row.faults.append(f"the message is malformed: {malformed}")
        row.columns["JMSDestination"] = str(context.only_source)
        id_ = (stable_id(message) or b"").decode()  # it may stand before what is malformed
    else:
        _read_header(message, parts, row)
        _read_properties(message, parts, row, context)
        _read_application_properties(message, parts, row, context.dialect)
        row.faults += parts.faults
        if not parts.faults:
            _read_body(message, parts, row, context)
        row.columns |= {
            "properties": [(name, text) for name, (_, text) in row.properties.items()],
            "property_types": [(name, kind) for name, (kind, _) in row.properties.items()],
        }
        id_ = row.columns["JMSMessageID"]
    if row.faults:
        row.columns["body_error"] = joined_faults(row.faults)
        row.columns.setdefault("bytes", message)
    row.columns["delivery_id"] = delivery_id(context, id_, message)
    return row.columns


def delivery_id(context: BlockContext, id_: str | None, message: Buffer) -> str:
    """``NAME/message-id``; without a message-id the fingerprint stands for it, after ``~``."""
    if not id_ or id_ == EMPTY_MESSAGE_ID:
        id_ = f"~{fingerprint(message, annotated=not context.dialect.changes_annotations).hex()}"
    return f"{context.only_source.name}/{id_}"


def _parts_of(message: bytes) -> _Parts:
    parts = _Parts({}, {}, {}, [], [], [])
    in_body = 0
    for code, value, _ in sections(message):
        count = count_of(message, value)
        if DATA <= code <= VALUE:
            in_body += max(1, count // 2 if message[value] in MAPS else count)
            if in_body <= MAX_ELEMENTS:
                parts.bodies.append((code, value))
        elif code in _MAP_SECTIONS and count // 2 > MAX_ELEMENTS:
            parts.faults.append(f"the message has {too_many(_MAP_SECTIONS[code])}")
        elif code == HEADER:
            parts.header.update(_fields(message, value, HeaderField))
        elif code == MESSAGE_ANNOTATIONS:
            parts.annotations.update(_annotations(message, value))
        elif code == PROPERTIES:
            parts.properties.update(_fields(message, value, PropertiesField))
        elif code == APPLICATION_PROPERTIES:
            parts.application_properties.extend(_pairs(message, value))
        else:
            _pairs(message, value)
    if in_body > MAX_ELEMENTS:
        parts.faults.append(f"the body has {too_many('elements')}")
    return parts


def _fields(message: bytes, at: int, known: type[IntEnum]) -> dict[int, int]:
    """The fields of a list that are not null."""
    found = list(elements(message, at, LISTS))
    if len(found) > len(known):
        raise MalformedMessageError("a section has too many fields")
    return {number: at for number, at in enumerate(found) if message[at] != NULL}


def _pairs(message: bytes, at: int) -> list[tuple[int, int]]:
    found = list(elements(message, at, MAPS))
    if len(found) % 2:
        raise MalformedMessageError("a map has a key without a value")
    return list(zip(found[::2], found[1::2], strict=True))


def _annotations(message: bytes, at: int) -> dict[bytes, int]:
    return {content(message, key): value for key, value in _pairs(message, at) if message[key] in SYMBOLS}


# --- header and properties -----------------------------------------------------------------------


def _read_header(message: bytes, parts: _Parts, row: _Row) -> None:
    def of(field: HeaderField, kind: str, absent: int) -> int:
        at = parts.header.get(field)
        found = None if at is None else row.read(field.title, partial(required, kind=kind), message, at)
        return absent if found is None else int(found)

    durable = of(HeaderField.DURABLE, "boolean", 0)
    earlier = of(HeaderField.DELIVERY_COUNT, "uint", 0)
    row.time_to_live = of(HeaderField.TTL, "uint", 0)
    row.columns |= {
        "JMSDeliveryMode": int(DeliveryMode.PERSISTENT if durable else DeliveryMode.NON_PERSISTENT),
        "JMSPriority": min(of(HeaderField.PRIORITY, "ubyte", DEFAULT_PRIORITY), HIGHEST_PRIORITY),
        "JMSRedelivered": earlier > 0,
    }
    row.properties["JMSXDeliveryCount"] = (ValueType.INT, str(min(earlier + 1, _MAX_INT)))


def _read_properties(message: bytes, parts: _Parts, row: _Row, context: BlockContext) -> None:
    def of(field: PropertiesField, read: Callable[[bytes, int], Any]) -> Any:
        at = parts.properties.get(field)
        return None if at is None else row.read(field.title, read, message, at)

    dialect = context.dialect
    to, reply_to = of(PropertiesField.TO, string), of(PropertiesField.REPLY_TO, string)
    expiry, created = (
        of(field, partial(required, kind="timestamp"))
        for field in (PropertiesField.ABSOLUTE_EXPIRY_TIME, PropertiesField.CREATION_TIME)
    )
    if not expiry and created and row.time_to_live:
        expiry = created + row.time_to_live
    row.columns |= {
        **{name: of(field, read) for field, (name, read) in _TEXT_READERS.items()},
        "JMSDestination": destination_of(
            to, _kind(message, parts, Annotation.DESTINATION), context.only_source, dialect
        ),
        "JMSReplyTo": reply_to_of(reply_to, _kind(message, parts, Annotation.REPLY_TO), dialect),
        "JMSExpiration": _micros(expiry),
        "JMSTimestamp": _micros(created),
        "JMSDeliveryTime": _micros(_annotation(message, parts, Annotation.DELIVERY_TIME, _TIMES)),
    }
    given: dict[str, tuple[ValueType, Callable[[bytes, int], str]]] = {
        "JMSXGroupID": (ValueType.STRING, string),
        "JMSXGroupSeq": (ValueType.INT, _sequence),
        "JMSXUserID": (ValueType.STRING, partial(string, kind="binary")),
    }
    for name, (kind, read) in given.items():
        if (text := of(JMSX_FIELDS[name], read)) is not None:
            row.properties[name] = kind, text


def _id(message: bytes, at: int, *, of_message: bool) -> str:
    text = id_text(message, at, of_message=of_message)
    if text is None:
        if message[at] in STRINGS:
            raise UnreadableValueError("is not valid UTF-8")
        raise UnreadableValueError("is not a string, ulong, uuid or binary")
    return text


def _reader_of(header: Header) -> Callable[[bytes, int], str]:
    match header.type:
        case HeaderType.ID:
            return partial(_id, of_message=header.amqp is PropertiesField.MESSAGE_ID)
        case HeaderType.SYMBOL:
            return partial(string, kind="symbol")
    return string


_TEXT_READERS = {field: (header.name, _reader_of(header)) for field, header in TEXT_FIELDS.items()}


def _sequence(message: bytes, at: int) -> str:
    """A uint as the int of JMS with the same bits (AMQP-JMS binding §3.2.2.2)."""
    found = required(message, at, "uint")
    return str(found - (1 << 32) if found > _MAX_INT else found)


def _micros(milliseconds: int | None) -> int | None:
    """Microseconds; None for 0, as JMS has it for an absent time, and outside of the years 1 to 9999."""
    return milliseconds * 1000 if milliseconds and FIRST_MS <= milliseconds <= LAST_MS else None


def has_unheld_time(message: bytes) -> bool:
    """Return True if a time of the message lies outside of the years that the columns hold."""
    try:
        parts = _parts_of(message)
    except MalformedMessageError:
        return False
    expiry, created = (
        number(message, parts.properties.get(each), _TIMES)
        for each in (PropertiesField.ABSOLUTE_EXPIRY_TIME, PropertiesField.CREATION_TIME)
    )
    delivery = _annotation(message, parts, Annotation.DELIVERY_TIME, _TIMES)
    life = number(message, parts.header.get(HeaderField.TTL), _UINTS)
    ends = created + life if created and life else None
    return any(each and _micros(each) is None for each in (expiry, created, delivery, ends))


def _annotation(message: bytes, parts: _Parts, name: Annotation, codes: bytes) -> int | None:
    return number(message, parts.annotations.get(name.encode()), codes)


def _kind(message: bytes, parts: _Parts, name: Annotation) -> int | None:
    kind = _annotation(message, parts, name, _BYTE)
    return kind if kind is not None and 0 <= kind < len(DESTINATION_WORDS) else None


# --- application properties -------------------------------------------------------------------------


def _read_application_properties(message: bytes, parts: _Parts, row: _Row, dialect: Dialect) -> None:
    own = row.properties.copy()
    row.properties.clear()
    stomp_headers = dialect.ignored_stomp_headers if PropertiesField.MESSAGE_ID not in parts.properties else ()
    for place, (key, value) in enumerate(parts.application_properties, 1):
        name = row.read("the name of a property", string, message, key)
        if name is None or name in own or name in dialect.ignored_properties or name in stomp_headers:
            continue  # JMSXDeliveryCount is one of ``own``
        if name.startswith(dialect.ignored_property_prefixes):
            continue
        if name in row.properties:
            row.faults.append(f"property {shown_name(name, place)} is there twice")
            continue
        try:
            row.properties[name] = property_text(message, value)
        except UnreadableValueError as unreadable:
            row.faults.append(f"property {shown_name(name, place)} {unreadable}")
    row.properties |= own


# --- the body ---------------------------------------------------------------------------------------


def _read_body(message: bytes, parts: _Parts, row: _Row, context: BlockContext) -> None:
    kind = _annotation(message, parts, Annotation.MESSAGE_TYPE, _BYTE)
    size = _size_before_compression(message, parts)
    facts = BodyFacts(parts.bodies, kind, row.columns["content_type"], context.body_type, size)
    try:
        row.columns |= read_body(message, facts, row.faults)
    except UnreadableValueError as unreadable:
        row.faults.append(f"the body {unreadable}")


def _size_before_compression(message: bytes, parts: _Parts) -> int | None:
    """The bytes that the body had before its producer compressed it; None if it did not, -1 if that is not known."""
    found = {content(message, key): value for key, value in parts.application_properties if message[key] in STRINGS}
    if not number(message, found.get(COMPRESSED_PROPERTY.encode()), BOOLEANS):
        return None
    size = number(message, found.get(SIZE_PROPERTY.encode()), _LONGS)
    return -1 if size is None else size


_LIST, _MAP, _NOTHING, _SCALAR = "list", "map", "nothing", "scalar"
_NOT_SCALAR = frozenset({"array", "described type"})
_OBJECTS_OF_AMQP = frozenset({"string", _SCALAR, _LIST, _MAP})
"""Qpid JMS can send an object as a value of AMQP instead of serialised bytes: the row has that value."""

_SHAPES = {NULL: _NOTHING} | {code: shape for shape in ("string", "binary", _LIST, _MAP) for code in codes_of(shape)}

_TypedText: TypeAlias = tuple[str, str | None]
"""The type and the value of an element, of which Arrow makes a struct."""


@dataclass(frozen=True, slots=True)
class BodyFacts:
    """The facts that decide on the type of a body."""

    sections: list[tuple[int, int]]
    """The code of each section, and the position of its value."""
    annotation: int | None
    content_type: str | None
    choice: BodyChoice
    size_before_compression: int | None = None
    """Bytes, or None if the producer did not compress the body, -1 if it did and the size is not known."""


def read_body(message: bytes, facts: BodyFacts, faults: list[str]) -> dict[str, Any]:
    """``body_type`` and the column of that type; ``UnreadableValueError`` if the body has none, or is not of its type.

    An item or element that cannot be read is null, or left out if its key cannot be read, and adds to ``faults``.
    """
    shape = _shape(message, facts.sections)
    kind = _type_of(shape, facts)
    places = [at for _, at in facts.sections]
    _require_whole(message, places, shape, facts)
    match kind:
        case BodyType.TEXT:
            return {"body_type": kind.value, "text": _text(message, places, shape)}
        case BodyType.BYTES | BodyType.OBJECT:
            return {"body_type": kind.value, "bytes": _bytes(message, places, shape, facts)}
        case BodyType.MAP if shape in {_MAP, _NOTHING}:
            return {"body_type": kind.value, "map": _map(message, places if shape == _MAP else [], faults)}
        case BodyType.STREAM if shape in {_LIST, _NOTHING}:
            return {"body_type": kind.value, "stream": _stream(message, places if shape == _LIST else [], faults)}
        case BodyType.MESSAGE if shape == _NOTHING:
            return {"body_type": kind.value}
    raise UnreadableValueError(f"is not that of a {kind}")


def _shape(message: bytes, sections: list[tuple[int, int]]) -> str:
    """One of data, string, scalar, binary, list, map and nothing: no section, or a null."""
    if not sections:
        return _NOTHING
    section, at = sections[0]
    if section in {DATA, SEQUENCE}:
        allowed, shape = (BINARIES, "data") if section == DATA else (LISTS, _LIST)
        if any(message[at] not in allowed for _, at in sections):
            raise UnreadableValueError("has a section of the wrong type")
        return shape
    found = _SHAPES.get(message[at], _SCALAR)
    if found == _SCALAR and AMQP_NAMES.get(message[at]) in _NOT_SCALAR:
        raise UnreadableValueError("is of a type that JMS does not have")
    return found


def _require_whole(message: bytes, places: list[int], shape: str, facts: BodyFacts) -> None:
    """Refuse the body of a BytesMessage that Artemis has cut (``dialects.base.COMPRESSED_PROPERTY``)."""
    size = facts.size_before_compression
    if size is None or shape != "data" or facts.annotation == BY_ANNOTATION.index(BodyType.OBJECT):
        return
    found = len(_joined(message, places))
    if found != size:
        known = f"{size:,}" if size >= 0 else "an unknown number of"
        raise UnreadableValueError(
            f"was compressed by its producer and is not whole: it has {found:,} of {known} bytes, as Artemis sends it"
            " over AMQP"
        )


def _type_of(shape: str, facts: BodyFacts) -> BodyType:
    """Decide by the option, the annotation, or the shape and the content type (AMQP-JMS binding §3.3)."""
    if facts.choice != "auto":
        return BodyType(facts.choice)
    if facts.annotation is not None and 0 <= facts.annotation < len(BY_ANNOTATION):
        kind = BY_ANNOTATION[facts.annotation]
        if kind is not BodyType.OBJECT or shape not in _OBJECTS_OF_AMQP:
            return kind
    match shape:
        case "data" if facts.content_type == OBJECT_TYPE:
            return BodyType.OBJECT
        case "data" if facts.content_type is not None and is_text_type(facts.content_type):
            return BodyType.TEXT
        case "data" | "binary":
            return BodyType.BYTES
        case "nothing" if not facts.sections:
            return BodyType.MESSAGE
    return {_LIST: BodyType.STREAM, _MAP: BodyType.MAP}.get(shape, BodyType.TEXT)


def _text(message: bytes, places: list[int], shape: str) -> str | None:
    match shape:
        case "string":
            return string(message, places[0])
        case "scalar":
            return element_text(message, places[0])[1]
        case "nothing":
            return None
        case "data":
            return utf8(_joined(message, places))
    raise UnreadableValueError("is not that of a text")


def _bytes(message: bytes, places: list[int], shape: str, facts: BodyFacts) -> bytes:
    match shape:
        case "data" | "binary":
            return _joined(message, places)
        case "nothing":
            return b""
        case "string" if facts.choice == "bytes":
            return string(message, places[0]).encode()
    raise UnreadableValueError("is not that of bytes")


def _joined(message: bytes, places: list[int]) -> bytes:
    return b"".join(content(message, at) for at in places)


def _map(message: bytes, places: list[int], faults: list[str]) -> list[tuple[str, _TypedText]]:
    found: dict[str, _TypedText] = {}
    at_all = [at for place in places for at in _elements(message, place, MAPS)]
    if len(at_all) % 2:
        raise UnreadableValueError("is a map that has a key without a value")
    for key, value in zip(at_all[::2], at_all[1::2], strict=True):
        try:
            name = string(message, key)
        except UnreadableValueError as unreadable:
            faults.append(f"a key of the map {unreadable}")
            continue
        if name in found:
            faults.append("the map has a key twice")
            continue
        found[name] = _typed("a value of the map", message, value, faults)
    return list(found.items())


def _stream(message: bytes, places: list[int], faults: list[str]) -> list[_TypedText]:
    what = "an element of the stream"
    return [_typed(what, message, at, faults) for place in places for at in _elements(message, place, LISTS)]


def _typed(what: str, message: bytes, at: int, faults: list[str]) -> _TypedText:
    try:
        return element_text(message, at)
    except UnreadableValueError as unreadable:
        faults.append(f"{what} {unreadable}")
        return JMS_TYPES.get(message[at], ValueType.STRING).value, None


def _elements(message: bytes, place: int, codes: bytes) -> Iterator[int]:
    try:
        yield from elements(message, place, codes)
    except MalformedMessageError as malformed:
        raise UnreadableValueError(f"is malformed: {malformed}") from None
