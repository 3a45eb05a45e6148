"""Column ``map`` or ``stream`` → the elements of all rows, one after the other, checked by the rules of JMS.

Does not know protocols.
"""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.amqp_types import jms_types
from pyspark_jms.columns.first import is_first
from pyspark_jms.columns.ragged import Mask, first_not_utf8, mask_of, offsets_of, to_binary
from pyspark_jms.columns.rows import Entries, Rows, compact
from pyspark_jms.columns.typed_values import misfits
from pyspark_jms.jms.model import ValueType
from pyspark_jms.jms.rules import element_name_problem, element_value_problem

__all__ = ["Elements", "check_names", "check_values", "elements_of"]

_EMPTY = pa.scalar(b"", pa.binary())
_STRING = pa.scalar(ValueType.STRING.value, pa.string())


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of all rows, one after the other; types and values as strings. No type is null."""

    entries: Entries
    types: pa.Array
    values: pa.Array


def elements_of(rows: Rows, column: Literal["map", "stream"]) -> Elements | None:
    """None when no row has one. ``check_names`` and ``check_values`` are still to be called."""
    lists = rows.column(column)
    if lists is None:
        return None
    lists = compact(lists)
    bounds = offsets_of(lists)
    start, length = int(bounds[0]), int(bounds[-1] - bounds[0])
    is_map = pa.types.is_map(lists.type)
    structs = (lists.items if is_map else lists.values).slice(start, length)
    # flatten: a null element has neither type nor value, whatever bytes are under the null
    parts = {field.name: _text(part) for field, part in zip(structs.type, structs.flatten(), strict=True)}
    names = to_binary(lists.keys.slice(start, length)) if is_map else None
    entries = Entries(rows, bounds - start, "a map item" if is_map else "a stream element", names)
    return _typed(entries, parts["type"], parts["value"])


def _text(array: pa.Array) -> pa.Array:
    return to_binary(array).view(pa.string())


def _typed(entries: Entries, types: pa.Array, values: pa.Array) -> Elements:
    """Elements with a type for each null value: JMS gives a null no type, and it is sent as a string."""
    if types.null_count:
        typeless = mask_of(types.is_null())
        remedy = f"Set its type to one of {', '.join(ValueType)}."
        entries.refuse_any(typeless & mask_of(values.is_valid()), "it has a value but no type", remedy)
        types = types.fill_null(_STRING)
    return Elements(entries, jms_types(types, of_elements=True), values)


def check_names(entries: Entries, names: pa.Array) -> None:
    """Refuse an empty name, a name that a row has twice, and one that is not UTF-8."""
    nameless = mask_of(pc.equal(names, _EMPTY))  # Arrow's maps have no null key
    entries.refuse_any(nameless, f"its name {element_name_problem('')}", "Set its name.")
    encoded = names.dictionary_encode()
    first = is_first(entries.owners_of_all(), encoded.indices.to_numpy(), entries.rows.count, len(encoded.dictionary))
    entries.refuse_any(~first, "an earlier item has the same name", "Use each name once.")
    wrong = first_not_utf8(names)
    if wrong is not None:
        entries.refuse(wrong, "its name is not UTF-8", "Rename it.")


def check_values(elements: Elements) -> None:
    """Refuse a value that is not UTF-8, or that is not valid for its type."""
    odd = first_not_utf8(elements.values.view(pa.binary()))
    if odd is not None:
        elements.entries.refuse(odd, "its value is not UTF-8", "Encode it, in base64 for example.")

    def fact(index: int) -> str:
        kind = elements.types.view(pa.binary())[index].as_py().decode(errors="replace")
        value = elements.values[index].as_py()
        return f"its value {element_value_problem(kind, value) or 'is not of its type'}"

    wrong: Mask = misfits(elements.types, elements.values)
    remedy = f"Correct the value or its type, one of {', '.join(ValueType)}."
    elements.entries.refuse_any(wrong, fact, remedy)
