"""The properties of rows → header lines of SEND, and the line that states their types.

Properties come from column ``properties`` and from the columns of option ``propertyColumns``. Names that JMS or the
dialect reserve are refused.
"""

from collections.abc import Collection, Mapping
from dataclasses import astuple
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.elements import json_text
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.sink_properties import (
    NameRules,
    Properties,
    StatedTypes,
    TypedColumn,
    check_names,
    distinct_names,
    places_of,
    stated_types,
)
from pyspark_jms.columns.strings import Piece, join_rows, mask_of, repeated, slices_of
from pyspark_jms.errors import SchemaError
from pyspark_jms.jms.model import TYPES_MARKER, ValueType
from pyspark_jms.jms.rules import is_left_out
from pyspark_jms.stomp.columns.encode_headers import fixed_line, header_line
from pyspark_jms.stomp.columns.escapes import escape_column
from pyspark_jms.stomp.dialects.base import Dialect, SendHeaders
from pyspark_jms.stomp.wire.frame import escape

__all__ = [
    "column_lines",
    "left_out",
    "name_problem",
    "property_lines",
    "types_line",
]

_STOMP_HEADERS = frozenset({"destination", "transaction", "receipt", "content-length", "content-type"})
"""STOMP 1.2 "SEND" and "Standard Headers": with every broker a row must not use these names."""


def property_lines(properties: Properties, dialect: Dialect, columns: Collection[str] = ()) -> Piece:
    """A line for each property whose value is not null. JMS 3.1 §3.5.4: a null property reads as an absent one.

    ``columns``: names of properties that come from columns of their own.
    """
    entries = properties.entries
    names = _name_parts(properties, dialect, columns)
    values = escape_column(
        properties.values,
        lambda index: entries.refuse(index, "its value is not UTF-8", "Encode it, in base64 for example."),
    )
    return slices_of(join_rows([names, values]), entries.bounds)


def _name_parts(properties: Properties, dialect: Dialect, columns: Collection[str]) -> pa.Array:
    """LF, name and colon of each property's line; null for a property that the provider sets."""
    names = distinct_names(properties)
    rules = NameRules(left_out=partial(left_out, dialect=dialect), problem=partial(name_problem, dialect=dialect))
    check_names(properties, names, rules, columns)
    parts = pa.array([_name_part(name.decode(), dialect) for name in names.distinct], pa.binary())
    if names.each_row and not parts.null_count:
        return repeated(parts, properties.entries.rows.count)
    return parts.take(pa.array(names.codes()))


def _name_part(name: str, dialect: Dialect) -> bytes | None:
    if left_out(name, dialect):
        return None
    return fixed_line(dialect.send_property_names.get(name, name), "")


# --- what is refused ---------------------------------------------------------------------------------


def left_out(name: str, dialect: Dialect) -> bool:
    """Whether the provider sets the property. It is not sent then, so that a row can be written as it was read."""
    return is_left_out(name, dialect.set_by_broker)


def name_problem(name: str, dialect: Dialect) -> str | None:
    """The reason why a SEND to this broker cannot have a property of this name; None if it can."""
    if name in _reserved(dialect.reserved_properties, dialect.send_headers):
        return "is the name of a header"
    if name.startswith(dialect.reserved_prefixes) and name not in dialect.set_by_client:
        return f"has a prefix that {dialect.name} reserves"
    return None


@cache
def _reserved(reserved: frozenset[str], headers: SendHeaders) -> frozenset[str]:
    return reserved | {name for name in astuple(headers) if name} | _STOMP_HEADERS


# --- option propertyColumns -------------------------------------------------------------------------


def column_lines(rows: Rows, columns: Mapping[str, TypedColumn], dialect: Dialect) -> list[Piece]:
    """A line for each value that is not null, as pieces of the rows' frames."""
    lines: list[Piece] = []
    for name, column in columns.items():
        _check_name(name, dialect)
        values = _escaped(rows, name, column.texts)
        lines += header_line(dialect.send_property_names.get(name, name), values)
    return lines


def _check_name(name: str, dialect: Dialect) -> None:
    problem = "is a property that the broker sets" if left_out(name, dialect) else name_problem(name, dialect)
    if problem:
        raise SchemaError(f"The name of column {name} of propertyColumns {problem}.", "Rename it.")


def _escaped(rows: Rows, name: str, texts: pa.Array) -> pa.Array:
    fact = f"has a column {name} that is not UTF-8"
    return escape_column(texts, lambda index: rows.refuse(index, fact, "Encode it, in base64 for example."))


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


# --- of the column -------------------------------------------------------------------------------------


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
        [left_out(name.decode("utf-8", "replace"), dialect) for name in names.dictionary.to_pylist()], np.bool_
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
