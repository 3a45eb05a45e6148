"""Rows of messages that this sink sent over STOMP → the same rows with the types that their envelopes state.

Over AMQP a broker delivers the properties of an envelope (docs/typed-messages.md, "Envelope") as properties. Selectors
compare the message as the broker has it, so envelopes are opened after the selector. Rows from STOMP have none left,
because the decoder of STOMP has opened them. Does not know the bytes of a protocol.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.batches import merged
from pyspark_jms.columns.envelope import EnvelopeKind, UnreadableValueError, read_elements, read_types
from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.columns.strings import Ints, Mask
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER, BodyType
from pyspark_jms.jms.subscription import BodyChoice

__all__ = ["open_envelopes"]

_MARKERS = pa.array([BODY_MARKER, TYPES_MARKER])
_LENGTHS = pa.array(sorted({len(BODY_MARKER), len(TYPES_MARKER)}), pa.int32())
_BODIES = ("text", "bytes", "map", "stream")
_PLAIN = (BodyType.TEXT.value, BodyType.BYTES.value, BodyType.MESSAGE.value)
"""What the broker makes of the SEND frame of an envelope."""
_JSON = "json"
"""The key of a map's or a stream's text in a row, until all of them are read at once."""
_CHANGED = ("properties", "property_types", "body_type", "body_error", *_BODIES)


def open_envelopes(rows: pa.RecordBatch, choice: BodyChoice) -> pa.RecordBatch:
    """With the columns that the STOMP decoder reads from an envelope. A marker that cannot be read stays a property.

    Rows without all columns of the schema have no envelopes: ``decode`` gives all columns if there is one. ``choice``:
    option ``bodyType``; markers of bodies are not read if it names one type for all messages.
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
