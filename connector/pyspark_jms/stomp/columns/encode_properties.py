"""Column ``properties`` → header lines of each row. Refuses names that JMS or the dialect reserve."""

from collections.abc import Collection
from dataclasses import astuple
from functools import cache, partial

import pyarrow as pa

from pyspark_jms.columns.sink_properties import NameRules, Properties, check_names, distinct_names
from pyspark_jms.columns.strings import Piece, join_rows, repeated, slices_of
from pyspark_jms.jms.rules import is_left_out
from pyspark_jms.stomp.columns.escapes import escape_column
from pyspark_jms.stomp.columns.header_line import fixed_line
from pyspark_jms.stomp.dialects.base import Dialect, SendHeaders

__all__ = ["left_out", "name_problem", "property_lines"]

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
