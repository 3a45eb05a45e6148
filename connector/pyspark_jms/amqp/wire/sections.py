"""The sections of one encoded message (AMQP 1.0 §3.2): where each begins and ends, and what identifies the message.

Reads no more than it must: values are skipped by their sizes (§1.6). Does not know frames, links and columns.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final, NamedTuple
from uuid import UUID

from pyspark_jms.amqp.wire import constructors
from pyspark_jms.amqp.wire.constructors import FIXED_WIDTHS, SIZE_WIDTHS, codes_of, scalar
from pyspark_jms.jms.headers import HeaderField, PropertiesField

__all__ = [
    "APPLICATION_PROPERTIES",
    "DATA",
    "DELIVERY_ANNOTATIONS",
    "EMPTY_MESSAGE_ID",
    "ENCODED_IDS",
    "FINGERPRINT_BYTES",
    "FOOTER",
    "HEADER",
    "LISTS",
    "MAPS",
    "MESSAGE_ANNOTATIONS",
    "PROPERTIES",
    "SEQUENCE",
    "VALUE",
    "Buffer",
    "MalformedMessageError",
    "Section",
    "content",
    "count_of",
    "delivery_count",
    "digest",
    "elements",
    "fingerprint",
    "id_text",
    "sections",
    "stable_id",
    "time_ms",
    "value_end",
]

Buffer = bytes | bytearray | memoryview

HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES = range(0x70, 0x75)
DATA, SEQUENCE, VALUE, FOOTER = range(0x75, 0x79)
"""The codes of the descriptors of sections (§3.2)."""

_SYMBOLS = {
    b"amqp:header:list": HEADER,
    b"amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    b"amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    b"amqp:properties:list": PROPERTIES,
    b"amqp:application-properties:map": APPLICATION_PROPERTIES,
    b"amqp:data:binary": DATA,
    b"amqp:amqp-sequence:list": SEQUENCE,
    b"amqp:amqp-value:*": VALUE,
    b"amqp:footer:map": FOOTER,
}
_SINGLE = frozenset({VALUE, FOOTER})
_MAX_DEPTH = 8
FINGERPRINT_BYTES = 16
EMPTY_MESSAGE_ID: Final = "ID:AMQP_NO_PREFIX:"
"""JMSMessageID of an empty string, and the beginning of that of a string without ``ID:``."""

ENCODED_IDS: Final = tuple(f"ID:AMQP_{kind}:" for kind in ("UUID", "ULONG", "BINARY", "STRING", "NO_PREFIX"))
"""Beginnings of ids that are not strings, or other strings (AMQP-JMS binding §3.2.1.1)."""


_STEPS = [-1] * 256
"""Constructor → bytes of a value of one width; 0: a byte with the size follows; -1: see ``skip``."""
for _code, _width in FIXED_WIDTHS.items():
    _STEPS[_code] = 1 + _width
for _code, _width in SIZE_WIDTHS.items():
    _STEPS[_code] = 0 if _width == 1 else -1

LISTS, MAPS = codes_of("list"), codes_of("map")
"""The constructors of a list and of a map."""


class MalformedMessageError(ValueError):
    """The bytes are not one message of AMQP 1.0. The text quotes nothing of them."""


class Section(NamedTuple):
    code: int
    """The descriptor's code, 0x70 to 0x78."""
    value: int
    """The position of the value's constructor."""
    end: int


def sections(message: Buffer) -> Iterator[Section]:
    """The sections of a message in order; ``MalformedMessageError`` as soon as the bytes are none."""
    at, last = 0, 0
    while at < len(message):
        code, value = _descriptor(message, at)
        if code < last or (code == last and (code < DATA or code in _SINGLE)):
            raise MalformedMessageError("a section is in the wrong place")
        if DATA <= last < code <= VALUE:
            raise MalformedMessageError("it has two kinds of bodies")
        at, last = skip(message, value, len(message)), code
        yield Section(code, value, at)


def _descriptor(message: Buffer, at: int) -> tuple[int, int]:
    """The code of the section at a position, and the position of its value."""
    constructor = bytes(message[at : at + 2])
    if constructor == b"\x00\x53" and at + 2 < len(message) and HEADER <= message[at + 2] <= FOOTER:
        return message[at + 2], at + 3
    if constructor[:1] != b"\x00":
        raise MalformedMessageError("a section has no descriptor")
    end = skip(message, at + 1, len(message))
    if constructor == b"\x00\x80":
        code: int | None = int.from_bytes(message[at + 2 : end], "big")
    elif constructor in {b"\x00\xa3", b"\x00\xb3"}:
        code = _SYMBOLS.get(bytes(message[at + 2 + SIZE_WIDTHS[constructor[1]] : end]))
    else:
        code = None
    if code is None or not HEADER <= code <= FOOTER:
        raise MalformedMessageError("a section has an unknown descriptor")
    return code, end


def skip(message: Buffer, at: int, limit: int, depth: int = 0) -> int:
    """The end of the value whose constructor is at a position; ``MalformedMessageError`` if it is beyond ``limit``."""
    if at >= limit:
        raise MalformedMessageError("a value is cut off")
    code = message[at]
    if code == 0:
        if depth == _MAX_DEPTH:
            raise MalformedMessageError("its descriptors are nested too deeply")
        return skip(message, skip(message, at + 1, limit, depth + 1), limit, depth + 1)
    return value_end(code, message, at + 1, limit)


def value_end(code: int, message: Buffer, begin: int, limit: int) -> int:
    """The end of a value with the constructor ``code``, whose bytes follow; ``MalformedMessageError`` as ``skip``."""
    width = FIXED_WIDTHS.get(code)
    if width is None and code not in SIZE_WIDTHS:
        raise MalformedMessageError(f"0x{code:02x} is not a constructor")
    if width is None:
        width = SIZE_WIDTHS[code]
        width += int.from_bytes(message[begin : begin + width], "big")
    if begin + width > limit:
        raise MalformedMessageError("a value is cut off")
    return begin + width


def content(message: Buffer, at: int) -> bytes:
    """The bytes of the value at a position, without its constructor and size."""
    return bytes(message[at + 1 + SIZE_WIDTHS.get(message[at], 0) : skip(message, at, len(message))])


def count_of(message: Buffer, at: int) -> int:
    """The number of elements that the list or map at a position states: 0 for any other value, and where ``elements``
    raises because there are not as many bytes.
    """
    if message[at] not in LISTS + MAPS or message[at] not in SIZE_WIDTHS:
        return 0
    place, end, count = _bounds(message, at)
    return count if count <= end - place else 0


def _bounds(message: Buffer, at: int) -> tuple[int, int, int]:
    """The position of the first element of a list or map that is not empty, its end, and the number of elements."""
    end, width = skip(message, at, len(message)), SIZE_WIDTHS[message[at]]
    place = at + 1 + 2 * width
    return place, end, int.from_bytes(message[at + 1 + width : place], "big")


def elements(message: Buffer, at: int, codes: bytes) -> Iterator[int]:
    """The positions of the elements of a list or map at a position, which has one of the constructors ``codes``.

    Keys and values of a map take turns. ``MalformedMessageError`` if the elements do not end where the list does.
    """
    code = message[at]
    if code not in codes:
        raise MalformedMessageError("a section has a value of the wrong type")
    if code not in SIZE_WIDTHS:  # the empty list
        return
    place, end, count = _bounds(message, at)
    if place > end or count > end - place:
        raise MalformedMessageError("a list or map has the wrong number of elements")
    for _ in range(count):
        step = _STEPS[message[place]] if place < end else -1
        if step > 0:
            after = place + step
        elif step == 0 and place + 1 < end:
            after = place + 2 + message[place + 1]
        else:
            after = skip(message, place, end)
        if after > end:
            raise MalformedMessageError("a value is cut off")
        yield place
        place = after
    if place != end:
        raise MalformedMessageError("a list or map has the wrong number of elements")


# --- identity ---------------------------------------------------------------------------------------


def stable_id(message: Buffer) -> bytes | None:
    """The message-id as JMSMessageID, in UTF-8, or None without one, or if it is empty. Each delivery has the same."""
    at = _field(message, PROPERTIES, PropertiesField.MESSAGE_ID)
    text = None if at is None else id_text(message, at, of_message=True)
    return None if text is None or text == EMPTY_MESSAGE_ID else text.encode()


def fingerprint(message: Buffer, *, annotated: bool = True) -> bytes:
    """A digest of everything but the header section, which a broker changes at each delivery (16 bytes).

    ``annotated``: with the annotations, which some brokers change too.
    """
    view, begin = memoryview(message), 0
    first = DELIVERY_ANNOTATIONS if annotated else PROPERTIES
    try:
        for section in sections(view):
            if section.code >= first:
                break
            begin = section.end
    except MalformedMessageError:
        pass
    return digest(view[begin:])


def digest(data: Buffer) -> bytes:
    """The first ``FINGERPRINT_BYTES`` of SHA-256, for which processors have instructions: twice as fast as BLAKE2."""
    return sha256(data).digest()[:FINGERPRINT_BYTES]


def time_ms(message: Buffer, field: PropertiesField) -> int | None:
    """Milliseconds since the epoch; None if the message has no time in this field."""
    at = _field(message, PROPERTIES, field)
    if at is None or message[at] != constructors.TIMESTAMP:
        return None
    return int(scalar(message, at))


def delivery_count(message: Buffer) -> int:
    """The number of earlier deliveries that failed; 0 if the message has none, or it cannot be read."""
    at = _field(message, HEADER, HeaderField.DELIVERY_COUNT)
    if at is None or message[at] not in {constructors.SMALL_UINT, constructors.UINT}:
        return 0
    return int(scalar(message, at))


def _field(message: Buffer, code: int, number: int) -> int | None:
    """The position of a field of a section's list; None if there is none, or the message is malformed before it."""
    try:
        for section in sections(message):
            if section.code == code:
                found = (at for index, at in enumerate(elements(message, section.value, LISTS)) if index == number)
                return next(found, None)
            if section.code > code:
                return None
    except MalformedMessageError:
        pass
    return None


def id_text(message: Buffer, at: int, *, of_message: bool) -> str | None:
    r"""A message-id or correlation-id as JMS spells it (AMQP-JMS binding §3.2.1.1); None if it is not an id.

    >>> id_text(b"\x53\x07", 0, of_message=True)
    'ID:AMQP_ULONG:7'
    >>> id_text(b"\xa1\x01x", 0, of_message=True), id_text(b"\xa1\x01x", 0, of_message=False)
    ('ID:AMQP_NO_PREFIX:x', 'x')
    """
    value = content(message, at)
    match message[at]:
        case constructors.STR8 | constructors.STR32:
            text = _utf8(value)
            return None if text is None else _spelled(text, of_message=of_message)
        case constructors.ULONG | constructors.SMALL_ULONG | constructors.ULONG_0:
            return f"ID:AMQP_ULONG:{int.from_bytes(value, 'big')}"
        case constructors.UUID:
            return f"ID:AMQP_UUID:{UUID(bytes=value)}"
        case constructors.BIN8 | constructors.BIN32:
            return f"ID:AMQP_BINARY:{value.hex().upper()}"
    return None


def _spelled(text: str, *, of_message: bool) -> str:
    """A string as id: what begins like another type is escaped, and each JMSMessageID begins with ``ID:``."""
    if text.startswith(ENCODED_IDS):
        return f"ID:AMQP_STRING:{text}"
    return text if text.startswith("ID:") or not of_message else f"{EMPTY_MESSAGE_ID}{text}"


def _utf8(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
