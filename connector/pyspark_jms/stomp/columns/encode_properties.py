"""Column ``properties`` → header lines of each row. Refuses names that JMS or the dialect reserve."""

from collections.abc import Callable, Collection
from dataclasses import astuple, dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.ragged import (
    Int64s,
    Piece,
    bytes_of,
    join_rows,
    offsets_of,
    repeated,
    slices_of,
    to_binary,
)
from pyspark_jms.columns.rows import Entries, Rows, compact
from pyspark_jms.columns.typed_values import misfits
from pyspark_jms.jms.model import ValueType
from pyspark_jms.jms.rules import SET_BY_PROVIDER, property_name_problem
from pyspark_jms.stomp.columns.escapes import escape_column
from pyspark_jms.stomp.columns.header_line import fixed_line
from pyspark_jms.stomp.dialects.base import Dialect, SendHeaders

__all__ = ["Properties", "left_out", "name_problem", "properties_of", "property_lines"]

_STOMP_HEADERS = frozenset({"destination", "transaction", "receipt", "content-length", "content-type"})
"""STOMP 1.2 "SEND" and "Standard Headers": with every broker a row must not use these names."""

_GROUP_SEQUENCE = b"JMSXGroupSeq"


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of all rows, one after the other; names and values as binary."""

    entries: Entries
    names: pa.Array
    values: pa.Array


def properties_of(rows: Rows) -> Properties | None:
    maps = rows.column("properties")
    if maps is None:
        return None
    maps = compact(maps)
    bounds = offsets_of(maps)
    start, length = int(bounds[0]), int(bounds[-1] - bounds[0])
    names, values = (to_binary(child.slice(start, length)) for child in (maps.keys, maps.items))
    return Properties(Entries(rows, bounds - start, "a property", names), names, values) if length else None


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
    rows = properties.entries.rows.count
    names = _distinct_names(properties)
    _check_names(properties.entries, names, dialect, columns)
    if _GROUP_SEQUENCE in names.distinct:
        _check_group_sequence(properties, np.flatnonzero(names.codes() == names.distinct.index(_GROUP_SEQUENCE)))
    parts = pa.array([_name_part(name.decode(), dialect) for name in names.distinct], pa.binary())
    if names.each_row and not parts.null_count:
        return repeated(parts, rows)
    return parts.take(pa.array(names.codes()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """The names of all properties, so that each distinct name is checked once and not once a row."""

    distinct: list[bytes]
    each_row: bool
    """Whether every row has all of them, in this order."""
    codes: Callable[[], Int64s]
    """The index in ``distinct`` of each property's name."""


def _distinct_names(properties: Properties) -> _Names:
    width = _width(properties.entries, properties.names)
    if width:
        rows = properties.entries.rows.count
        distinct = properties.names[:width].to_pylist()
        return _Names(distinct=distinct, each_row=True, codes=lambda: np.tile(np.arange(width), rows))
    encoded = properties.names.dictionary_encode()
    return _Names(distinct=encoded.dictionary.to_pylist(), each_row=False, codes=encoded.indices.to_numpy)


def _width(entries: Entries, names: pa.Array) -> int:
    """The number of properties of each row if all rows have the first row's names, as one producer's do; else 0."""
    bounds = entries.bounds
    width = int(bounds[1])
    if not width or (np.diff(bounds) != width).any():
        return 0
    lengths, data = np.diff(offsets_of(names)), bytes_of(names)
    if (lengths[width:] != lengths[:-width]).any():
        return 0
    row_bytes = int(lengths[:width].sum())
    return width if (data[row_bytes:] == data[: len(data) - row_bytes]).all() else 0


def _name_part(name: str, dialect: Dialect) -> bytes | None:
    if name in left_out(dialect):
        return None
    return fixed_line(dialect.send_property_names.get(name, name), "")


# --- what is refused ---------------------------------------------------------------------------------


def _check_names(entries: Entries, names: _Names, dialect: Dialect, columns: Collection[str]) -> None:
    judged = ((code, _problem(name, dialect, columns)) for code, name in enumerate(names.distinct))
    problems = {code: problem for code, problem in judged if problem}
    if problems:
        codes = names.codes()
        remedy = "Rename it, or use the column with that meaning."
        entries.refuse_any(np.isin(codes, list(problems)), lambda index: problems[int(codes[index])], remedy)


def _problem(data: bytes, dialect: Dialect, columns: Collection[str]) -> str | None:
    try:
        name = data.decode()
    except UnicodeDecodeError:
        return "its name is not UTF-8"
    if name in left_out(dialect):
        return None
    if name in columns:
        return "it is a column of propertyColumns too"
    problem = name_problem(name, dialect) or property_name_problem(name)
    return problem and f"its name {problem}"


def left_out(dialect: Dialect) -> frozenset[str]:
    """Properties that the provider sets. They are not sent, so that a row can be written as it was read."""
    return _set_by_provider(dialect.set_by_broker)


@cache
def _set_by_provider(set_by_broker: frozenset[str]) -> frozenset[str]:
    return SET_BY_PROVIDER | set_by_broker


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


def _check_group_sequence(properties: Properties, at: Int64s) -> None:
    """JMS 3.1 §3.5.9: JMSXGroupSeq is an int, and brokers read it as an int whatever type the row gives."""
    wrong = np.zeros(len(properties.names), np.bool_)
    texts = properties.values.take(pa.array(at)).view(pa.string())
    wrong[at] = misfits(pa.repeat(pa.scalar(ValueType.INT.value), len(at)), texts)
    properties.entries.refuse_any(wrong, "its value is not an int", "JMS 3.1 §3.5.9: use a whole number.")
