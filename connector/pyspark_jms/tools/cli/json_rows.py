"""Rows of the schema ↔ JSON: one object for each message, with the names of the columns.

``bytes`` is base64, and a time is ISO 8601 with its offset. Properties and the elements of maps and streams may be
plain JSON values, which have the JMS types boolean, int or long, double and string, or ``{"type": …, "value": …}`` for
any other type. ``send --json-lines`` reads what ``peek --json`` prints.
"""

import base64
import binascii
import datetime as dt
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from pyspark_jms.columns.schema import ARROW_SCHEMA, SINK_ONLY
from pyspark_jms.errors import MessageFormatError
from pyspark_jms.jms.conversions import ValueType, render

__all__ = ["batches_of", "json_of", "read_lines", "row_of"]

_BATCH_ROWS = 1_000
_INT_BITS, _LONG_BITS = 31, 63
_TYPES = {field.name: field.type for field in ARROW_SCHEMA} | {
    "destination": pa.string(),
    **{name: pa.int64() for name in SINK_ONLY if name != "destination"},
}
_BY_LOWER_NAME = {name.lower(): name for name in _TYPES}


class _WrongValueError(ValueError):
    """The text continues ``its NAME``."""


# --- JSON → rows ---------------------------------------------------------------------------------


def read_lines(lines: Iterable[str], *, has_default: bool) -> Iterator[dict[str, Any]]:
    """Yield a row for each line that is not blank. ``has_default``: the rows go where the command line says."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _line(f"Line {number}", line, has_default=has_default)


def _line(label: str, line: str, *, has_default: bool) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise MessageFormatError(f"{label} is not JSON: {error}.", "Write one JSON object a line.") from None
    if not isinstance(value, dict):
        raise MessageFormatError(f"{label} is not a JSON object.", 'Write the message as {"text": "…"}.')
    if has_default and value.get("destination") is not None:
        raise MessageFormatError(
            f"{label} names a destination, and --queue or --topic is given.", "Remove one of the two."
        )
    if not has_default and value.get("destination") is None:
        raise MessageFormatError(
            f"{label} names no destination.",
            'Give --queue or --topic, or add "destination": "queue://NAME" to each line.',
        )
    return row_of(value, label)


def row_of(message: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Return the values of a row, by the names of its columns. ``label`` begins the sentence of an error."""
    row: dict[str, Any] = {}
    for name, value in message.items():
        column = _BY_LOWER_NAME.get(name.lower(), name)
        if value is None:
            continue
        try:
            row[column] = _READERS.get(column, _reader(_TYPES.get(column)))(value)
        except _WrongValueError as error:
            raise MessageFormatError(f"{label} cannot be sent: its {column} {error}.", _REMEDY) from None
    _add_property_types(row)
    return row


_REMEDY = "See `pyspark-jms send --help` and docs/schema.md for the values of each column."


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _WrongValueError("is not a text")
    return value


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value.bit_length() > _LONG_BITS:
        raise _WrongValueError("is not an integer of 64 bits")
    return value


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise _WrongValueError("is neither true nor false")
    return value


def _time(value: object) -> dt.datetime:
    try:
        found = dt.datetime.fromisoformat(_text(value))
    except ValueError:
        raise _WrongValueError("is not a time in ISO 8601") from None
    if found.tzinfo is None:
        raise _WrongValueError("has no offset from UTC, as in 2026-01-31T12:00:00+00:00")
    return found


def _base64(value: object) -> bytes:
    try:
        return base64.b64decode(_text(value), validate=True)
    except binascii.Error:
        raise _WrongValueError("is not base64") from None


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _WrongValueError("is not a JSON object")
    return value


def _typed(value: object) -> dict[str, str | None]:
    """Return ``{"type": …, "value": …}`` for a plain JSON value, or for one that has this form already."""
    match value:
        case {"type": str() as kind, **others} if others.keys() <= {"value"}:
            text = others.get("value")
            return {"type": kind, "value": None if text is None else _rendered(text)["value"]}
        case None:
            return {"type": str(ValueType.STRING), "value": None}
        case _:
            return _rendered(value)


_KINDS = ((bool, ValueType.BOOLEAN), (int, ValueType.INT), (float, ValueType.DOUBLE), (str, ValueType.STRING))


def _rendered(value: Any) -> dict[str, str | None]:
    kind = next((kind for of, kind in _KINDS if isinstance(value, of)), None)
    if kind is None:
        raise _WrongValueError("has a value that is neither a JSON scalar nor an object of type and value")
    if kind is ValueType.INT and isinstance(value, int) and value.bit_length() > _INT_BITS:
        kind = ValueType.LONG
        if value.bit_length() > _LONG_BITS:
            raise _WrongValueError("has an integer of more than 64 bits")
    return {"type": str(kind), "value": render(value, kind)}


def _map(value: object) -> list[tuple[str, dict[str, str | None]]]:
    return [(name, _typed(element)) for name, element in _object(value).items()]


def _stream(value: object) -> list[dict[str, str | None]]:
    if not isinstance(value, list):
        raise _WrongValueError("is not a JSON array")
    return [_typed(element) for element in value]


def _texts(value: object) -> list[tuple[str, str]]:
    return [(name, _text(each)) for name, each in _object(value).items()]


def _add_property_types(row: dict[str, Any]) -> None:
    """Add the types that the values of properties have in JSON, unless the row names them itself."""
    entries = row.get("properties")
    if entries is None:
        return
    row["properties"] = [(name, typed["value"]) for name, typed in entries]
    types = {name: typed["type"] for name, typed in entries if typed["type"] != ValueType.STRING}
    types |= dict(row.get("property_types", ()))
    if types:
        row["property_types"] = list(types.items())


_READERS: dict[str, Callable[[object], Any]] = {
    "bytes": _base64,
    "map": _map,
    "stream": _stream,
    "properties": _map,
    "property_types": _texts,
}


def _reader(kind: pa.DataType | None) -> Callable[[object], Any]:
    if kind is None or kind == pa.string():
        return _text if kind is not None else lambda value: value
    if pa.types.is_integer(kind):
        return _integer
    return _boolean if pa.types.is_boolean(kind) else _time


def batches_of(rows: Iterator[dict[str, Any]], *, has_default: bool) -> Iterator[pa.RecordBatch]:
    """Yield batches with the columns of their rows. An unknown column has no type: the sink names the nearest one."""
    while part := list(islice(rows, _BATCH_ROWS)):
        names = dict.fromkeys(name for row in part for name in row)
        if not has_default:
            names["destination"] = None
        fields = [pa.field(name, _TYPES.get(name, pa.null())) for name in names]
        yield pa.RecordBatch.from_arrays([_column(part, field) for field in fields], schema=pa.schema(fields))


def _column(rows: Sequence[Mapping[str, Any]], field: pa.Field) -> pa.Array:
    if pa.types.is_null(field.type):
        return pa.nulls(len(rows))
    try:
        return pa.array([row.get(field.name) for row in rows], field.type)
    except (pa.ArrowInvalid, OverflowError):
        raise MessageFormatError(f"A {field.name} is out of range.", _REMEDY) from None


# --- rows → JSON ---------------------------------------------------------------------------------


def json_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object of a row, without its nulls and without empty properties."""
    plain = {name: _plain(name, value) for name, value in row.items() if value is not None}
    return {name: value for name, value in plain.items() if value or name not in _PROPERTIES}


_PROPERTIES = ("properties", "property_types")
_MAPS = (*_PROPERTIES, "map")


def _plain(name: str, value: Any) -> object:
    if name in _MAPS:
        return dict(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, dt.datetime) else value
