"""Staged blocks and tokens ↔ AMQP messages whose body is data: nothing of what they carry acts on the broker.

The messages are durable and expire in the year 9999, so that an ``expiry-delay`` of the address does not apply to
them (Artemis). They have no time to live and no priority.
"""

import struct
from functools import lru_cache
from typing import Any

from pyspark_jms.amqp.dialects.send_rules import DUPLICATE_ID_PROPERTY
from pyspark_jms.amqp.wire.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    FOOTER,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    MalformedMessageError,
)
from pyspark_jms.amqp.wire.values import Described, Symbol, TypedValue, encode, section_values
from pyspark_jms.blocks.block import StagedRange
from pyspark_jms.blocks.staged import Packed, unpack
from pyspark_jms.errors import DataLossError
from pyspark_jms.jms.headers import PropertiesField

__all__ = [
    "FIRST_TOKEN",
    "HEAD_BYTES",
    "TOKENS",
    "block_message",
    "body_of",
    "seen_block",
    "stream_of",
    "token_message",
]

_STREAM, _SEQUENCE, _COUNT = Symbol("x-opt-jms-stream"), Symbol("x-opt-jms-seq"), Symbol("x-opt-jms-count")
_KIND, _TOKEN = "kind", "token"
FIRST_TOKEN = "pyspark-jms.first"  # noqa: S105 - no secret
"""The duplicate id of every first token."""
TOKENS = f"{_KIND} = '{_TOKEN}'"
"""The selector of marked tokens."""
_NEVER_MS = 253_402_300_799_000
_DATA_OF_SIZE, _WORD = bytes((0x00, 0x53, DATA, 0xB0)), struct.Struct(">I")
"""A section of data as vbin32 (§1.6.19), up to its size."""
_HEADER = encode(Described(HEADER, [True]))
"""Durable."""

HEAD_BYTES = 4_096
"""The beginning of a block, with what it states of itself, whatever the broker adds."""


def token_message(body: bytes, *, marked: bool = False, duplicate_id: str | None = None) -> bytes:
    """``marked``: ``TOKENS`` selects it. The broker drops it if the address has had a message with ``duplicate_id``."""
    properties = {_KIND: _TOKEN} if marked else {}
    if duplicate_id is not None:
        properties[DUPLICATE_ID_PROPERTY] = duplicate_id
    shown = encode(Described(APPLICATION_PROPERTIES, properties)) if properties else b""
    return _HEADER + _properties(None) + shown + encode(Described(DATA, body))


def block_message(packed: Packed, *, stream: str, first: int, count: int, now_ms: int) -> Packed:
    """Make the message of a block, in two pieces as ``packed`` has them."""
    head, data = packed
    annotations = {_STREAM: stream, _SEQUENCE: TypedValue("long", first), _COUNT: TypedValue("int", count)}
    begin = _HEADER + encode(Described(MESSAGE_ANNOTATIONS, annotations)) + _properties(now_ms)
    return begin + _DATA_OF_SIZE + _WORD.pack(len(head) + len(data)) + head, data


@lru_cache(maxsize=1)
def _properties(now_ms: int | None) -> bytes:
    properties: list[Any] = [None] * PropertiesField.ABSOLUTE_EXPIRY_TIME + [TypedValue("timestamp", _NEVER_MS)]
    if now_ms is not None:
        properties.append(TypedValue("timestamp", now_ms))
    return encode(Described(PROPERTIES, properties))


def body_of(message: bytes) -> bytes:
    """The data of a message; empty for one that is no token."""
    data = _sections(message).get(DATA)
    return data if isinstance(data, bytes) else b""


def stream_of(message: bytes) -> str | None:
    """Return the stream that a block states, or None if the message is no block."""
    annotations = _sections(message, through=MESSAGE_ANNOTATIONS).get(MESSAGE_ANNOTATIONS)
    stream = annotations.get(_STREAM) if isinstance(annotations, dict) else None
    return stream if isinstance(stream, str) else None


def _numbers(found: dict[int, Any]) -> tuple[str, int, int]:
    annotations = found.get(MESSAGE_ANNOTATIONS)
    try:
        stream, first, count = (annotations[name] for name in (_STREAM, _SEQUENCE, _COUNT))  # type: ignore[index]
        return str(stream), int(first), int(first) + int(count)
    except (KeyError, TypeError, ValueError):
        raise _foreign() from None


def seen_block(message: bytes) -> StagedRange:
    found = _sections(message)
    stream, first, end = _numbers(found)
    data = found.get(DATA)
    if not isinstance(data, bytes):
        raise _foreign()
    try:
        block = unpack(data)
    except ValueError as error:
        raise _foreign(str(error)) from None
    if len(block) != end - first:
        raise _foreign("it has another number of messages than it states")
    return StagedRange(stream, first, end, block)


def _sections(message: bytes, through: int = FOOTER) -> dict[int, Any]:
    """The sections up to one; what follows is not read, and may be cut off."""
    try:
        return section_values(message, through)
    except MalformedMessageError:
        return {}


def _foreign(why: str = "its annotations are not those of a staged block") -> DataLossError:
    return DataLossError(
        f"The staging queue has a message that is not a staged block of this connector: {why}.",
        "Something else sends to this queue, or changed its messages. Look at it with pyspark-jms staging show.",
    )
