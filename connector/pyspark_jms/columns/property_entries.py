"""Column ``properties`` → the properties of all rows, one after the other, with the checks of their names.

Does not know protocols.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.ragged import Int64s, Offsets, bytes_of, offsets_of, to_binary
from pyspark_jms.columns.rows import Entries, Rows, compact
from pyspark_jms.columns.typed_values import misfits
from pyspark_jms.jms.model import ValueType
from pyspark_jms.jms.rules import property_name_problem

__all__ = ["NameRules", "Names", "Properties", "check_names", "distinct_names", "properties_of", "repeated_width"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRules:
    """What a protocol and a broker add to the rules of JMS for names."""

    left_out: Callable[[str], bool]
    """Whether the provider sets the property. It is not sent then, so that a row can be written as it was read."""

    problem: Callable[[str], str | None]
    """Why a message to this broker cannot have a property of this name, as a clause that continues ``its name``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of all properties, so that each distinct name is checked once and not once a row."""

    distinct: list[bytes]
    each_row: bool
    """Whether every row has all of them, in this order."""
    codes: Callable[[], Int64s]
    """The index in ``distinct`` of each property's name."""


def distinct_names(properties: Properties) -> Names:
    width = repeated_width(properties.entries.bounds, properties.names)
    if width:
        rows = properties.entries.rows.count
        distinct = properties.names[:width].to_pylist()
        return Names(distinct=distinct, each_row=True, codes=lambda: np.tile(np.arange(width), rows))
    encoded = properties.names.dictionary_encode()
    return Names(distinct=encoded.dictionary.to_pylist(), each_row=False, codes=encoded.indices.to_numpy)


def repeated_width(bounds: Offsets, texts: pa.Array) -> int:
    """The number of entries of each row if all rows have the first row's texts, as one producer's do; else 0.

    Row i has the entries of ``texts``, a binary array without nulls, from ``bounds[i]`` to ``bounds[i + 1]``.
    """
    width = int(bounds[1])
    if not width or (np.diff(bounds) != width).any():
        return 0
    lengths, data = np.diff(offsets_of(texts)), bytes_of(texts)
    if (lengths[width:] != lengths[:-width]).any():
        return 0
    row_bytes = int(lengths[:width].sum())
    return width if (data[row_bytes:] == data[: len(data) - row_bytes]).all() else 0


def check_names(properties: Properties, names: Names, rules: NameRules, columns: Collection[str] = ()) -> None:
    """Refuse names that JMS or the broker reserve, and a group sequence that is not an int.

    ``columns``: names of properties that come from columns of their own.
    """
    judged = ((code, _problem(name, rules, columns)) for code, name in enumerate(names.distinct))
    problems = {code: problem for code, problem in judged if problem}
    if problems:
        codes = names.codes()
        remedy = "Rename it, or use the column with that meaning."
        properties.entries.refuse_any(np.isin(codes, list(problems)), lambda index: problems[int(codes[index])], remedy)
    if _GROUP_SEQUENCE in names.distinct:
        _check_group_sequence(properties, np.flatnonzero(names.codes() == names.distinct.index(_GROUP_SEQUENCE)))


def _problem(data: bytes, rules: NameRules, columns: Collection[str]) -> str | None:
    try:
        name = data.decode()
    except UnicodeDecodeError:
        return "its name is not UTF-8"
    if rules.left_out(name):
        return None
    if name in columns:
        return "it is a column of propertyColumns too"
    problem = rules.problem(name) or property_name_problem(name)
    return problem and f"its name {problem}"


def _check_group_sequence(properties: Properties, at: Int64s) -> None:
    """JMS 3.1 §3.5.9: JMSXGroupSeq is an int, and brokers read it as an int whatever type the row gives."""
    wrong = np.zeros(len(properties.names), np.bool_)
    texts = properties.values.take(pa.array(at)).view(pa.string())
    wrong[at] = misfits(pa.repeat(pa.scalar(ValueType.INT.value), len(at)), texts)
    properties.entries.refuse_any(wrong, "its value is not an int", "JMS 3.1 §3.5.9: use a whole number.")
