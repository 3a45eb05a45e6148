"""Column ``property_types`` → the JMS type of each property of a row, checked against the properties' values.

Does not know protocols.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.amqp_types import jms_types
from pyspark_jms.columns.property_entries import Properties
from pyspark_jms.columns.ragged import Int64s, Mask, bytes_of, mask_of, offsets_of, to_binary
from pyspark_jms.columns.rows import Entries, Rows, compact
from pyspark_jms.columns.typed_values import misfits
from pyspark_jms.jms.model import ValueType
from pyspark_jms.jms.rules import PROPERTY_TYPES, property_value_problem
from pyspark_jms.sentences import with_article

__all__ = ["StatedTypes", "places_of", "stated_types"]

_TYPES = tuple(kind.value for kind in ValueType if kind in PROPERTY_TYPES)
_KNOWN = pa.array([kind.encode() for kind in _TYPES], pa.binary())
_REMEDY = f"The type of a property is one of {', '.join(_TYPES)}."


@dataclass(frozen=True, slots=True)
class StatedTypes:
    """The types of all rows, one after the other, as binary; none is null."""

    entries: Entries
    names: pa.Array
    types: pa.Array

    def only(self, mask: Mask) -> "StatedTypes":
        entries, kept = self.entries.only(mask), pa.array(mask)
        return StatedTypes(entries, self.names.filter(kept), self.types.filter(kept))


def stated_types(rows: Rows) -> StatedTypes | None:
    maps = rows.column("property_types")
    if maps is None:
        return None
    maps = compact(maps)
    bounds = offsets_of(maps)
    start, length = int(bounds[0]), int(bounds[-1] - bounds[0])
    names, types = (to_binary(child.slice(start, length)) for child in (maps.keys, maps.items))
    stated = StatedTypes(
        Entries(rows, bounds - start, "a type for the property", names), names, jms_types(types, of_elements=False)
    )
    if types.null_count:
        stated = stated.only(mask_of(types.is_valid()))
    return stated if len(stated.names) else None


def places_of(stated: StatedTypes, properties: Properties | None, columns: Mapping[str, ValueType]) -> pa.Array:
    """The position of each type's property; null for a type of a typed column.

    Refuses an unknown type, a type without a property, and a value that is not valid for its type. ``columns``: the
    type of each property that comes from a column of its own.
    """
    unknown = ~mask_of(pc.is_in(stated.types, value_set=_KNOWN))
    stated.entries.refuse_any(unknown, "JMS has no such type of properties", _REMEDY)
    of_columns = _of_columns(stated, columns)
    places = _places(stated, properties)
    missing = (places < 0) & ~of_columns
    stated.entries.refuse_any(missing, "the row has no such property", "Leave it out, or add the property.")
    found = pa.array(places, mask=places < 0)
    if properties is not None:
        _check_values(stated, properties.values.take(found))
    return found


def _of_columns(stated: StatedTypes, columns: Mapping[str, ValueType]) -> Mask:
    """Which entries are about typed columns. Their types must be those of the columns."""
    found = np.zeros(len(stated.names), np.bool_)
    for name, kind in columns.items():
        own = mask_of(pc.equal(stated.names, pa.scalar(name.encode(), pa.binary())))
        other = own & ~mask_of(pc.equal(stated.types, pa.scalar(kind.encode(), pa.binary())))
        stated.entries.refuse_any(other, f"the column of that name is {with_article(kind)}", "Leave it out.")
        found |= own
    return found


def _places(stated: StatedTypes, properties: Properties | None) -> Int64s:
    """The position of each type's property; -1 if the row has no such property."""
    if properties is None:
        return np.full(len(stated.names), -1)
    if _same(stated.entries.bounds, properties.entries.bounds) and _same_texts(stated.names, properties.names):
        return np.arange(len(stated.names))
    encoded = pa.concat_arrays([properties.names, stated.names]).dictionary_encode()
    codes, kinds = encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
    there = codes[: len(properties.names)] + kinds * properties.entries.owners_of_all()
    wanted = codes[len(properties.names) :] + kinds * stated.entries.owners_of_all()
    order = np.argsort(there, kind="stable")
    at = np.minimum(np.searchsorted(there[order], wanted), len(there) - 1)
    return np.where(there[order][at] == wanted, order[at], -1)


def _same_texts(one: pa.Array, other: pa.Array) -> bool:
    lengths = _same(np.diff(offsets_of(one)), np.diff(offsets_of(other)))
    return lengths and _same(bytes_of(one), bytes_of(other))


def _same(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return bool(np.array_equal(one, other))


def _check_values(stated: StatedTypes, values: pa.Array) -> None:
    def fact(index: int) -> str:
        problem = property_value_problem(stated.types[index].as_py().decode(), values[index].as_py().decode())
        return f"its value {problem or 'is not of that type'}"

    wrong = misfits(stated.types.view(pa.string()), values.view(pa.string()))
    replace(stated.entries, kind="a property").refuse_any(wrong, fact, "Correct the value or its type.")
