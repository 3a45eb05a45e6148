"""The columns of headers and properties → the header lines of each row in its SEND.

The order is: destination and its type, the lines that the caller adds for the body, all others, and then the
properties. By STOMP 1.2 "Repeated Header Entries" the first of two headers counts, so no property overrides a header.
Properties come from column ``properties`` and from the columns of option ``propertyColumns``. Names that JMS or the
dialect reserve are refused.
"""

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.arrays import (
    Int64s,
    Mask,
    Piece,
    bytes_of,
    is_ascii_text,
    join_rows,
    mask_of,
    offsets_of,
    repeated,
    slices_of,
    to_binary,
)
from pyspark_jms.columns.elements import json_text
from pyspark_jms.columns.rows import (
    PRIORITIES,
    Rows,
    delivery_of,
    distinct_destinations,
    expiration_of,
    first_given,
    from_now,
    modes_and_priorities,
)
from pyspark_jms.columns.sink_properties import (
    Properties,
    StatedTypes,
    TypedColumn,
    check_column_name,
    check_names,
    distinct_names,
    places_of,
    properties_of,
    stated_types,
    typed_columns,
)
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.headers import HEADERS, HeaderType
from pyspark_jms.jms.model import TYPES_MARKER, DeliveryMode, Destination
from pyspark_jms.stomp.columns.escapes import escape_column
from pyspark_jms.stomp.dialects.base import Dialect
from pyspark_jms.stomp.wire.frame import escape

__all__ = [
    "check_stable",
    "column_lines",
    "destination_lines",
    "fixed_line",
    "header_line",
    "header_lines",
    "property_lines",
    "types_line",
]

# --- one header -------------------------------------------------------------------------------------

_NO_LINE = pa.scalar(b"", pa.binary())


def fixed_line(name: str, value: str) -> bytes:
    """The line that is the same in every frame. A line begins with its LF and has none at its end."""
    return f"\n{escape(name)}:{escape(value)}".encode()


def header_line(name: str, values: pa.Array) -> list[Piece]:
    """A line for each entry of a binary array, whose values are escaped already; no line for a null."""
    # The LF stands before the name and not after the value: so a line is two pieces, and the join costs by the piece.
    pieces: list[Piece] = [fixed_line(name, ""), values]
    return [join_rows(pieces).fill_null(_NO_LINE)] if values.null_count else pieces


# --- destination ------------------------------------------------------------------------------------


def destination_lines(rows: Rows, dialect: Dialect, default: Destination | None) -> Piece:
    """The header ``destination`` and those that the dialect adds. Each distinct destination is checked once."""
    made = distinct_destinations(
        rows, default, lambda destination, by_row: _send_lines(destination, dialect, by_row=by_row)
    )
    return made.distinct[0] if made.indices is None else pa.array(made.distinct, pa.binary()).take(made.indices)


def _send_lines(destination: Destination, dialect: Dialect, *, by_row: bool = False) -> bytes:
    address = dialect.addresses.header_value(destination, sending=True, by_row=by_row)
    headers = {"destination": address} | dialect.send_destination_headers[destination.kind]
    return b"".join(fixed_line(name, value) for name, value in headers.items())


# --- all other headers ------------------------------------------------------------------------------

_TEXTS = [header for header in HEADERS if header.sent and header.type.ddl == "string"]


def header_lines(rows: Rows, dialect: Dialect, transaction: str | None, now_ms: int) -> list[Piece]:
    """All headers of SEND except the destination, the properties, and those of the body."""
    names = dialect.send_headers
    pieces: list[Piece] = [_mode_and_priority(rows, dialect)]
    if transaction is not None:
        pieces.append(fixed_line("transaction", transaction))
    for header in _TEXTS:
        values = rows.text(header.name)
        if values is not None:
            values = _reply_to(values, dialect) if header.type is HeaderType.ADDRESS else values
            pieces += _line(rows, header.name, names.get(header.name), values)
    pieces += _expiration_lines(rows, dialect, now_ms)
    if (timestamp := names.get("JMSTimestamp")) is not None:
        pieces.append(fixed_line(timestamp, str(now_ms // dialect.timestamp_unit_ms)))
    pieces += _delivery_lines(rows, dialect, now_ms)
    return pieces


_NO_PRIORITY = 3 * PRIORITIES
"""Plus the mode, a row whose null is sent as no priority."""


def _mode_and_priority(rows: Rows, dialect: Dialect) -> Piece:
    """``persistent`` is always sent: without it Artemis assumes NON_PERSISTENT, and JMS the opposite."""
    codes = modes_and_priorities(rows)
    if dialect.sends_null_priority:
        found = rows.integers("JMSPriority")
        codes = np.where(False if found is None else found[1], codes, _NO_PRIORITY + codes // PRIORITIES)
    if (codes == codes[0]).all():
        return _mode_and_priority_line(int(codes[0]), dialect)
    table = [_mode_and_priority_line(code, dialect) for code in range(_NO_PRIORITY + 3)]
    return pa.array(table, pa.binary()).take(pa.array(codes))


def _mode_and_priority_line(code: int, dialect: Dialect) -> bytes:
    mode, priority = divmod(code, PRIORITIES) if code < _NO_PRIORITY else (code - _NO_PRIORITY, None)
    names = dialect.send_headers
    if mode == DeliveryMode.PERSISTENT:
        headers = {names["JMSDeliveryMode"]: "true"}
    else:
        headers = {names["JMSDeliveryMode"]: "false", **dialect.non_persistent_headers}
    if (name := names.get("JMSPriority")) and priority is not None:
        headers[name] = str(priority)
    return b"".join(fixed_line(name, value) for name, value in headers.items())


def _line(rows: Rows, column: str, name: str | None, values: pa.Array) -> list[Piece]:
    if name is None:
        _unsupported(rows, column, mask_of(values.is_valid()))
        return []
    rows.require_utf8(values, f"a {column}")
    return header_line(name, escape_column(values))


def _reply_to(values: pa.Array, dialect: Dialect) -> pa.Array:
    prefixes: dict[str, str] = {}
    for wire, jms in dialect.reply_to_prefixes.items():
        prefixes.setdefault(jms, wire)
    for jms, wire in prefixes.items():
        if jms != wire:
            values = _with_prefix(values, jms.encode(), wire.encode())
    return values


def _with_prefix(values: pa.Array, old: bytes, new: bytes) -> pa.Array:
    return pc.if_else(pc.starts_with(values, old), pc.replace_substring(values, old, new, max_replacements=1), values)


# --- times ------------------------------------------------------------------------------------------


def _expiration_lines(rows: Rows, dialect: Dialect, now_ms: int) -> list[Piece]:
    names, instants = dialect.send_headers, expiration_of(rows, now_ms)
    if "time_to_live" not in names:
        return _number_line(rows, "JMSExpiration", names.get("JMSExpiration"), instants)
    lives = np.where(instants > 0, np.minimum(instants - now_ms, dialect.max_time_to_live_ms), 0)
    return _number_line(rows, "JMSExpiration", names["time_to_live"], lives)


def _delivery_lines(rows: Rows, dialect: Dialect, now_ms: int) -> list[Piece]:
    """``delivery_delay``, else ``JMSDeliveryTime``, in the header that the broker has.

    A delay is sent as a delay if the broker has a header for delays, so that only the broker's clock matters.
    """
    delay, time = map(dialect.send_headers.get, ("delivery_delay", "JMSDeliveryTime"))
    delays, times = delivery_of(rows)
    if delay is None and time is None:
        times = np.where(times > now_ms, times, 0)  # a time in the past needs no header
    elif delay is None:
        times, delays = first_given(times, from_now(now_ms, delays)), np.zeros(1, np.int64)
    elif time is None:
        delays = first_given(delays, np.where(times > now_ms, times - now_ms, 0))
        times = np.zeros(1, np.int64)
    delay_line = _number_line(rows, "delivery_delay", delay, delays)
    return delay_line + _number_line(rows, "JMSDeliveryTime", time, times)


def _number_line(rows: Rows, column: str, name: str | None, values: Int64s) -> list[Piece]:
    """A line for each value that is not 0."""
    given = values != 0
    if not given.any():
        return []
    if name is None:
        _unsupported(rows, column, given)
        return []
    if (values == values[0]).all():
        return [fixed_line(name, str(values[0]))]
    return header_line(name, pa.array(values, mask=~given).cast(pa.string()).view(pa.binary()))


def _unsupported(rows: Rows, column: str, given: Mask) -> None:
    raise UnsupportedError(
        f"{rows.label(int(given.argmax()))} has a {column}, for which this broker's STOMP has no header.",
        f"Leave {column} null, or send through another broker.",
    )


# --- characters that a broker changes ---------------------------------------------------------------

# ActiveMQ Classic stores headers in Java's modified UTF-8 and reads them as UTF-8: a character outside the Basic
# Multilingual Plane, or U+0000, becomes two U+FFFD once the message was on disk. Bodies do not change.

_FOUR_BYTES = 0xF0
"""The first byte in UTF-8 of the characters outside the Basic Multilingual Plane has at least this value."""

_WHAT = "a character outside the Basic Multilingual Plane, or U+0000, which this broker changes when it stores them"
_REMEDY = "Move it into the body, or encode it."


def check_stable(rows: Rows) -> None:
    """Refuse rows with text in a header or a property that the broker would change."""
    for name in (header.name for header in _TEXTS):
        texts = rows.text(name)
        if texts is not None:
            rows.refuse_any(_unstable(texts), f"has in {name} {_WHAT}", _REMEDY)
    for name, column in typed_columns(rows).items():
        rows.refuse_any(_unstable(column.texts), f"has in property {name!r} {_WHAT}", _REMEDY)
    properties = properties_of(rows)
    if properties is not None:
        for texts, place in ((properties.names, "its name"), (properties.values, "its value")):
            properties.entries.refuse_any(_unstable(texts), f"{place} has {_WHAT}", _REMEDY)


def _unstable(texts: pa.Array) -> Mask:
    texts = to_binary(texts)
    nothing: Mask = np.zeros(len(texts), np.bool_)
    if is_ascii_text(texts):
        return nothing
    data, offsets = bytes_of(texts), offsets_of(texts)
    wrong = np.flatnonzero((data >= _FOUR_BYTES) | (data == 0))
    nothing[np.searchsorted(offsets - offsets[0], wrong, side="right") - 1] = True
    found: Mask = nothing & np.asarray(texts.is_valid())
    return found


# --- properties -------------------------------------------------------------------------------------


def property_lines(properties: Properties, dialect: Dialect, columns: Collection[str] = ()) -> Piece:
    """A line for each property whose value is not null. JMS 3.1 §3.5.4: a null property reads as an absent one.

    ``columns``: names of properties that come from columns of their own.
    """
    entries = properties.entries
    names = _name_parts(properties, dialect, columns)
    values = escape_column(properties.values)
    return slices_of(join_rows([names, values]), entries.bounds)


def _name_parts(properties: Properties, dialect: Dialect, columns: Collection[str]) -> pa.Array:
    """LF, name and colon of each property's line; null for a property that the provider sets."""
    names = distinct_names(properties)
    check_names(properties, names, dialect, columns)
    lines = [
        None if dialect.left_out(name) else fixed_line(dialect.send_property_names.get(name, name), "")
        for name in map(bytes.decode, names.distinct)
    ]
    parts = pa.array(lines, pa.binary())
    if names.each_row and not parts.null_count:
        return repeated(parts, properties.entries.rows.count)
    return parts.take(pa.array(names.codes()))


# --- option propertyColumns -------------------------------------------------------------------------


def column_lines(rows: Rows, columns: Mapping[str, TypedColumn], dialect: Dialect) -> list[Piece]:
    """A line for each value that is not null, as pieces of the rows' frames."""
    lines: list[Piece] = []
    for name, column in columns.items():
        check_column_name(name, dialect)
        rows.require_utf8(column.texts, f"a column {name}")
        lines += header_line(dialect.send_property_names.get(name, name), escape_column(column.texts))
    return lines


# --- the header line spark_jms_types ----------------------------------------------------------------

# It has a JSON object without blanks: property name → JMS type, in the row's order (docs/typed-messages.md, Envelope).

_EMPTY = pa.scalar(b"", pa.binary())


def types_line(
    rows: Rows, properties: Properties | None, columns: Mapping[str, TypedColumn], dialect: Dialect
) -> list[Piece]:
    """A line for each row with the type of at least one property; nothing for the others."""
    stated = stated_types(rows)
    parts = [] if stated is None else [_stated_pairs(stated, properties, columns, dialect)]
    parts += [column.where_given(_pair(name, column.kind)) for name, column in columns.items()]
    arrays = [piece for piece in parts if isinstance(piece, pa.Array)]
    if not parts:
        return []
    begin, end = fixed_line(TYPES_MARKER, "") + b"{", b"}"
    if not arrays:
        return [begin + b"".join(parts)[1:] + end]
    pairs = join_rows(parts)
    line = join_rows([begin, pc.replace_substring(pairs, b",", b"", max_replacements=1), end])
    untyped = pc.equal(pairs, _EMPTY)
    return [pc.if_else(untyped, _EMPTY, line) if pc.any(untyped).as_py() else line]


def _pair(name: str, kind: str) -> bytes:
    """A comma, the name and the type, escaped for a header."""
    return escape(f",{json_text(name)}:{json_text(kind)}").encode()


# --- types of column ``properties`` -----------------------------------------------------------------


def _stated_pairs(
    stated: StatedTypes, properties: Properties | None, columns: Mapping[str, TypedColumn], dialect: Dialect
) -> pa.Array:
    """The pairs of each row's ``properties``, one after the other."""
    places = places_of(stated, properties, {name: column.kind for name, column in columns.items()})
    if properties is None:
        return pa.repeat(_EMPTY, stated.entries.rows.count)
    given = mask_of(properties.values.take(places).is_valid())
    names = stated.names.dictionary_encode()
    gone = np.array(
        [dialect.left_out(name.decode("utf-8", "replace")) for name in names.dictionary.to_pylist()], np.bool_
    )
    return _pairs(stated.only(given & ~gone[names.indices.to_numpy()]))


def _pairs(stated: StatedTypes) -> pa.Array:
    names, types = stated.names.dictionary_encode(), stated.types.dictionary_encode()
    keys = names.indices.to_numpy().astype(np.int64) * len(ValueType) + types.indices.to_numpy()
    encoded = pa.array(keys).dictionary_encode()
    known_names, known_types = (texts.dictionary.to_pylist() for texts in (names, types))
    pairs = [
        _pair(known_names[key // len(ValueType)].decode(), known_types[key % len(ValueType)].decode())
        for key in encoded.dictionary.to_pylist()
    ]
    lists = pa.ListArray.from_arrays(
        pa.array(stated.entries.bounds, pa.int32()), pa.array(pairs, pa.binary()).take(encoded.indices)
    )
    return pc.binary_join(lists, _EMPTY)
