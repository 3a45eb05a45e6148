"""Frames and their body types → the columns of bodies. Does not know headers and dialects."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.envelope import Elements, EnvelopeKind, read_elements
from pyspark_jms.columns.schema import COLUMNS
from pyspark_jms.columns.strings import Ints, Mask, is_utf8, not_utf8, strings_at
from pyspark_jms.columns.value_texts import BODY_TYPE_NAMES
from pyspark_jms.jms.model import BodyType
from pyspark_jms.jms.subscription import MAX_ELEMENTS
from pyspark_jms.stomp.columns.frames import FrameBounds
from pyspark_jms.stomp.columns.lines import Fault
from pyspark_jms.stomp.columns.map_xml import read_xml

__all__ = ["Bodies", "read_bodies"]

_TEXT, _BYTES, _MAP, _STREAM, _OBJECT, _MESSAGE = range(len(BODY_TYPE_NAMES))
_AFTER_HEADERS = 1 << 62


@dataclass(frozen=True, slots=True)
class Bodies:
    """The columns of bodies, and the bodies that could not be read."""

    columns: dict[str, pa.Array]
    """``body_type``, ``text``, ``bytes``; ``map`` and ``stream`` only if some frame has one."""
    faults: list[Fault]


def read_bodies(
    frames: FrameBounds,
    codes: Ints,
    unread: dict[int, str],
    transformed: Mask | None = None,
    max_elements: int = MAX_ELEMENTS,
    *,
    wanted: Collection[str] = COLUMNS,
) -> Bodies:
    """Each body in the column of its type; or raw in ``bytes``, with the reason among the faults.

    ``unread``: by row, the reason not to read a body; ``transformed``: which maps the broker has rendered as XML. The
    bytes of an object are never deserialised. ``wanted``: the columns; ``bytes`` wants all of them.
    """
    bodies = _BodyBytes(frames)
    reasons = dict(unread)
    is_text = codes == _TEXT
    is_text[list(unread)] = False
    text = bodies.strings_where(is_text)
    if not is_utf8(text):
        wrong = not_utf8(text)
        reasons |= dict.fromkeys(np.flatnonzero(wrong).tolist(), "text is not valid UTF-8")
        text = bodies.strings_where(is_text & ~wrong)
    columns = {"body_type": BODY_TYPE_NAMES.take(pa.array(codes)), "text": text}
    if ("bytes" in wanted or "map" in wanted or "stream" in wanted) and (codes > _BYTES).any():
        columns |= _typed(bodies, codes, transformed, reasons, max_elements)
    if "bytes" not in wanted:
        return Bodies(columns, [])
    raw = (codes == _BYTES) | (codes == _OBJECT)
    raw[list(reasons)] = True
    columns["bytes"] = bodies.strings_where(raw).view(pa.binary()) if raw.any() else pa.nulls(len(raw), pa.binary())
    return Bodies(columns, [Fault(row, _AFTER_HEADERS, reason) for row, reason in reasons.items()])


class _BodyBytes:
    """The bytes of every body."""

    def __init__(self, frames: FrameBounds) -> None:
        self._raw = frames.raw
        self._starts, self._ends = frames.body_starts, frames.body_ends

    def strings_where(self, keep: Mask) -> pa.Array:
        return strings_at(self._raw, self._starts, self._ends, keep)

    def only(self, rows: Ints) -> pa.Array:
        return strings_at(self._raw, self._starts[rows], self._ends[rows]).view(pa.binary())

    def given(self) -> Mask:
        given: Mask = self._starts < self._ends
        return given


def _typed(
    bodies: _BodyBytes, codes: Ints, transformed: Mask | None, reasons: dict[int, str], max_elements: int
) -> dict[str, pa.Array]:
    """``map`` and ``stream``. Adds to ``reasons`` why a body could not be read."""
    columns: dict[str, pa.Array] = {}
    unread = np.zeros(len(codes), np.bool_)
    unread[list(reasons)] = True
    in_xml = np.zeros(len(codes), np.bool_) if transformed is None else transformed & (codes == _MAP)
    places: tuple[tuple[EnvelopeKind, Mask, Callable[[EnvelopeKind, pa.Array, int], Elements]], ...] = (
        (BodyType.MAP, (codes == _MAP) & ~in_xml, read_elements),
        (BodyType.MAP, in_xml, read_xml),
        (BodyType.STREAM, codes == _STREAM, read_elements),
    )
    for kind, mask, read in places:
        rows = np.flatnonzero(mask & ~unread)
        if len(rows):
            elements = read(kind, bodies.only(rows), max_elements)
            reasons |= {int(rows[index]): reason for index, reason in elements.reasons.items()}
            column = _spread(elements.column, rows, len(codes))
            columns[kind.value] = pc.coalesce(columns[kind.value], column) if kind.value in columns else column
    unexpected = np.flatnonzero((codes == _MESSAGE) & bodies.given() & ~unread)
    reasons |= dict.fromkeys(unexpected.tolist(), "a message without a body has one")
    return columns


def _spread(column: pa.Array, rows: Ints, count: int) -> pa.Array:
    if len(rows) == count:
        return column
    places = np.full(count, -1)
    places[rows] = np.arange(len(rows))
    return column.take(pa.array(places, mask=places < 0))
