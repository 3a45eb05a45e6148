"""One encoded message → one row, every byte checked: the reader of what the vectorised decoder does not take.

A message that is not AMQP 1.0, or holds what JMS does not have, becomes a row with ``body_error`` and its bytes. What
can be read is in the row's other columns: a faulty property does not hide the body.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from pyspark_jms.amqp.columns.fields import KINDS, destination_of, reply_to_of
from pyspark_jms.amqp.columns.one_body import BodyFacts, read_body
from pyspark_jms.amqp.columns.one_value import (
    BOOLEANS,
    STRINGS,
    SYMBOLS,
    binary,
    content,
    number,
    property_text,
    string,
    symbol,
)
from pyspark_jms.amqp.dialects.base import COMPRESSED_PROPERTY, SIZE_PROPERTY, Dialect
from pyspark_jms.amqp.wire import constructors
from pyspark_jms.amqp.wire.constructors import NULL
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
    VALUE,
    Buffer,
    MalformedMessageError,
    count_of,
    elements,
    fingerprint,
    id_text,
    sections,
    stable_id,
)
from pyspark_jms.columns.envelope import UnreadableValueError
from pyspark_jms.columns.read_columns import WantedColumns
from pyspark_jms.columns.schema import ARROW_SCHEMA, FIRST_MS, LAST_MS
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.model import DEFAULT_PRIORITY, DeliveryMode, Destination
from pyspark_jms.jms.rules import shown_name
from pyspark_jms.jms.subscription import MAX_ELEMENTS, BodyChoice, too_many
from pyspark_jms.sentences import joined_faults

__all__ = ["BlockContext", "delivery_id", "read_message"]

_HEADER_FIELDS, _PROPERTIES_FIELDS = 5, 13
_UBYTE, _BYTE, _TIMESTAMP = (bytes((code,)) for code in (constructors.UBYTE, constructors.BYTE, constructors.TIMESTAMP))
_UINTS = bytes((constructors.UINT, constructors.SMALL_UINT, constructors.UINT_0))
_LONGS = bytes((constructors.LONG, constructors.SMALL_LONG))
_TIMES = _LONGS + _TIMESTAMP
_MAX_INT = (1 << 31) - 1
_MAP_SECTIONS = dict.fromkeys((DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, FOOTER), "annotations") | {
    APPLICATION_PROPERTIES: "properties"
}
_GROUP_ID, _GROUP_SEQUENCE, _USER_ID, _COUNT = "JMSXGroupID", "JMSXGroupSeq", "JMSXUserID", "JMSXDeliveryCount"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockContext:
    """What is the same for all messages of a block."""

    dialect: Dialect
    source: Destination
    body_type: BodyChoice
    wanted: WantedColumns | None = None
    """The columns to decode. None: all."""

    @property
    def schema(self) -> pa.Schema:
        return ARROW_SCHEMA if self.wanted is None else self.wanted.schema


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
        row.columns["JMSDestination"] = str(context.source)
        id_ = (stable_id(message) or b"").decode()  # it may stand before what is malformed
    else:
        _read_header(message, parts, row)
        _read_properties(message, parts, row, context)
        _read_application_properties(message, parts, row, context.dialect)
        row.faults += parts.faults
        if not parts.faults:
            _read_body(message, parts, row, context)
        types = [(name, kind) for name, (kind, _) in row.properties.items()]
        row.columns |= {
            "properties": [(name, text) for name, (_, text) in row.properties.items()],
            "property_types": types,
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
    return f"{context.source.name}/{id_}"


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
            parts.header.update(_fields(message, value, _HEADER_FIELDS))
        elif code == MESSAGE_ANNOTATIONS:
            parts.annotations.update(_annotations(message, value))
        elif code == PROPERTIES:
            parts.properties.update(_fields(message, value, _PROPERTIES_FIELDS))
        elif code == APPLICATION_PROPERTIES:
            parts.application_properties.extend(_pairs(message, value))
        else:
            _pairs(message, value)
    if in_body > MAX_ELEMENTS:
        parts.faults.append(f"the body has {too_many('elements')}")
    return parts


def _fields(message: bytes, at: int, most: int) -> dict[int, int]:
    """The fields of a list that are not null."""
    found = list(elements(message, at, LISTS))
    if len(found) > most:
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
    def of(index: int, name: str, codes: bytes, kind: str, absent: int) -> int:
        at = parts.header.get(index)
        found = None if at is None else number(message, at, codes)
        if at is not None and found is None:
            row.faults.append(f"{name} is not a {kind}")
        return absent if found is None else found

    durable = of(0, "durable", BOOLEANS, "boolean", 0)
    earlier = of(4, "delivery-count", _UINTS, "uint", 0)
    row.time_to_live = of(2, "ttl", _UINTS, "uint", 0)
    row.columns |= {
        "JMSDeliveryMode": int(DeliveryMode.PERSISTENT if durable else DeliveryMode.NON_PERSISTENT),
        "JMSPriority": of(1, "priority", _UBYTE, "ubyte", DEFAULT_PRIORITY),
        "JMSRedelivered": earlier > 0,
    }
    row.properties[_COUNT] = (ValueType.INT, str(min(earlier + 1, _MAX_INT)))


def _read_properties(message: bytes, parts: _Parts, row: _Row, context: BlockContext) -> None:
    def of(index: int, name: str, read: Callable[[bytes, int], Any]) -> Any:
        at = parts.properties.get(index)
        return None if at is None else row.read(name, read, message, at)

    dialect = context.dialect
    to, reply_to = of(2, "to", string), of(4, "reply-to", string)
    expiry, created = of(8, "absolute-expiry-time", _time), of(9, "creation-time", _time)
    if not expiry and created and row.time_to_live:
        expiry = created + row.time_to_live
    row.columns |= {
        "JMSMessageID": of(0, "message-id", partial(_id, of_message=True)),
        "JMSDestination": destination_of(to, _kind(message, parts, b"x-opt-jms-dest"), context.source, dialect),
        "JMSType": of(3, "subject", string),
        "JMSReplyTo": reply_to_of(reply_to, _kind(message, parts, b"x-opt-jms-reply-to"), dialect),
        "JMSCorrelationID": of(5, "correlation-id", partial(_id, of_message=False)),
        "content_type": of(6, "content-type", symbol),
        "JMSExpiration": _micros(expiry),
        "JMSTimestamp": _micros(created),
        "JMSDeliveryTime": _micros(_annotation(message, parts, b"x-opt-delivery-time", _TIMES)),
    }
    given = {
        _GROUP_ID: (ValueType.STRING, of(10, "group-id", string)),
        _GROUP_SEQUENCE: (ValueType.INT, of(11, "group-sequence", _sequence)),
        _USER_ID: (ValueType.STRING, of(1, "user-id", _user)),
    }
    row.properties |= {name: pair for name, pair in given.items() if pair[1] is not None}


def _id(message: bytes, at: int, *, of_message: bool) -> str:
    text = id_text(message, at, of_message=of_message)
    if text is None:
        if message[at] in STRINGS:
            raise UnreadableValueError("is not valid UTF-8")
        raise UnreadableValueError("is not a string, ulong, uuid or binary")
    return text


def _user(message: bytes, at: int) -> str:
    data = binary(message, at)
    if data is None:
        raise UnreadableValueError("is not binary")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UnreadableValueError("is not valid UTF-8") from None


def _sequence(message: bytes, at: int) -> str:
    """A uint as the int of JMS with the same bits (AMQP-JMS binding §3.2.2.2)."""
    found = number(message, at, _UINTS)
    if found is None:
        raise UnreadableValueError("is not a uint")
    return str(found - (1 << 32) if found > _MAX_INT else found)


def _time(message: bytes, at: int) -> int:
    found = number(message, at, _TIMESTAMP)
    if found is None:
        raise UnreadableValueError("is not a timestamp")
    return found


def _micros(milliseconds: int | None) -> int | None:
    """Microseconds; None for 0, as JMS has it for an absent time, and outside of the years 1 to 9999."""
    return milliseconds * 1000 if milliseconds and FIRST_MS <= milliseconds <= LAST_MS else None


def _annotation(message: bytes, parts: _Parts, name: bytes, codes: bytes) -> int | None:
    at = parts.annotations.get(name)
    return None if at is None else number(message, at, codes)


def _kind(message: bytes, parts: _Parts, name: bytes) -> int | None:
    kind = _annotation(message, parts, name, _BYTE)
    return kind if kind is not None and 0 <= kind < len(KINDS) else None


# --- application properties and body ---------------------------------------------------------------


def _read_application_properties(message: bytes, parts: _Parts, row: _Row, dialect: Dialect) -> None:
    own = row.properties.copy()
    row.properties.clear()
    stomp_headers = dialect.ignored_stomp_headers if 0 not in parts.properties else ()
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


def _read_body(message: bytes, parts: _Parts, row: _Row, context: BlockContext) -> None:
    kind = _annotation(message, parts, b"x-opt-jms-msg-type", _BYTE)
    size = _size_before_compression(message, parts)
    facts = BodyFacts(parts.bodies, kind, row.columns["content_type"], context.body_type, size)
    try:
        row.columns |= read_body(message, facts, row.faults)
    except UnreadableValueError as unreadable:
        row.faults.append(f"the body {unreadable}")


def _size_before_compression(message: bytes, parts: _Parts) -> int | None:
    """The bytes that the body had before its producer compressed it; None if it did not, -1 if that is not known."""
    found = {content(message, key): value for key, value in parts.application_properties if message[key] in STRINGS}
    compressed = found.get(COMPRESSED_PROPERTY.encode())
    if compressed is None or not number(message, compressed, BOOLEANS):
        return None
    at = found.get(SIZE_PROPERTY.encode())
    size = None if at is None else number(message, at, _LONGS)
    return -1 if size is None else size
