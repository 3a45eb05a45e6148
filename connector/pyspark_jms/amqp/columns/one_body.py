"""The body sections of one message → the columns of its body."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark_jms.amqp.columns.one_value import AMQP_NAMES, JMS_TYPES, binary, element_text, string
from pyspark_jms.amqp.wire.constructors import NULL
from pyspark_jms.amqp.wire.sections import DATA, LISTS, MAPS, SEQUENCE, MalformedMessageError, elements
from pyspark_jms.columns.envelope import UnreadableValueError
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.model import BodyType
from pyspark_jms.jms.subscription import BodyChoice

__all__ = ["BY_ANNOTATION", "NO_BODY_TYPE", "OBJECT_TYPE", "TEXT_TYPE", "BodyFacts", "is_text_type", "read_body"]

BY_ANNOTATION = (BodyType.MESSAGE, BodyType.OBJECT, BodyType.MAP, BodyType.BYTES, BodyType.STREAM, BodyType.TEXT)
"""The body type by the value of ``x-opt-jms-msg-type``."""

OBJECT_TYPE = "application/x-java-serialized-object"
NO_BODY_TYPE = "application/x-jms-message"
"""Of a message without a body. Artemis and Classic make a BytesMessage of one without a content type, and a plain
Message of one whose type they do not know.
"""

TEXT_TYPE = re.compile(
    r"(text/[^;\s]+|application/([^;\s]+\+)?(xml|json)|application/(xml-dtd|javascript|ecmascript))\s*(;.*)?",
    re.IGNORECASE | re.DOTALL,
)
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)
_STRINGS, _BINARIES = b"\xa1\xb1", b"\xa0\xb0"
_LIST, _MAP, _NOTHING, _SCALAR = "list", "map", "nothing", "scalar"
_NOT_SCALAR = frozenset({"array", "described type"})
_OBJECTS_OF_AMQP = frozenset({"string", _SCALAR, _LIST, _MAP})
"""Qpid JMS can send an object as a value of AMQP instead of serialised bytes: the row has that value."""

_SHAPES = {
    code: shape
    for codes, shape in (
        (_STRINGS, "string"),
        (_BINARIES, "binary"),
        (LISTS, _LIST),
        (MAPS, _MAP),
        (bytes([NULL]), _NOTHING),
    )
    for code in codes
}

TypedText: TypeAlias = tuple[str, str | None]
"""The type and the value of an element, of which Arrow makes a struct."""


@dataclass(frozen=True, slots=True)
class BodyFacts:
    """What decides on the type of a body."""

    sections: list[tuple[int, int]]
    """The code of each section, and the position of its value."""
    annotation: int | None
    content_type: str | None
    choice: BodyChoice
    size_before_compression: int | None = None
    """None: the producer did not compress the body. -1: it did, and the size is not known."""


def is_text_type(content_type: str) -> bool:
    """Whether a body of bytes with this content type is text that can be read as UTF-8."""
    charset = _CHARSET.search(content_type)
    known = charset is None or charset[1].lower() in {"utf-8", "utf8", "us-ascii"}
    return known and TEXT_TYPE.fullmatch(content_type) is not None


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
        allowed, shape = (_BINARIES, "data") if section == DATA else (LISTS, _LIST)
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
    """By the option, else by the annotation, else by the shape and the content type (AMQP-JMS binding §3.3)."""
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
            try:
                return _joined(message, places).decode()
            except UnicodeDecodeError:
                raise UnreadableValueError("is not valid UTF-8") from None
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
    return b"".join(filter(None, (binary(message, at) for at in places)))


def _map(message: bytes, places: list[int], faults: list[str]) -> list[tuple[str, TypedText]]:
    found: dict[str, TypedText] = {}
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


def _stream(message: bytes, places: list[int], faults: list[str]) -> list[TypedText]:
    what = "an element of the stream"
    return [_typed(what, message, at, faults) for place in places for at in _elements(message, place, LISTS)]


def _typed(what: str, message: bytes, at: int, faults: list[str]) -> TypedText:
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
