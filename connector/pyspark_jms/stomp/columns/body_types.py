"""Headers → the body type of each frame, and the reasons not to read a body. Does not know the bytes of bodies."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow.compute as pc

from pyspark_jms.columns.strings import Ints, Mask
from pyspark_jms.columns.value_texts import BODY_TYPE_NAMES, integers
from pyspark_jms.jms.model import BODY_MARKER, OCTET_STREAM, BodyType
from pyspark_jms.stomp.columns.header_texts import HeaderTexts
from pyspark_jms.stomp.dialects.base import BodyRule, Dialect

__all__ = ["BodyTypes", "detect_body_types", "force_body_type", "lost_bodies"]

_MOST_STORED = (1 << 62) - 1
_TEXT, _BYTES = (BODY_TYPE_NAMES.index(kind.value).as_py() for kind in (BodyType.TEXT, BodyType.BYTES))
_MAP, _OBJECT = (BODY_TYPE_NAMES.index(kind.value).as_py() for kind in (BodyType.MAP, BodyType.OBJECT))
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
    """Which maps the broker has rendered as XML. None: no map is read."""

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
