"""A run of rows to be encoded: its columns one by one in, and out of a fault the error that names its row.

Knows where a row stands in its task and how Arrow holds columns; knows no header, no body and no frame.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.ragged import Int64s, Mask, Offsets, mask_of, offsets_of, to_binary
from pyspark_jms.errors import JMSError, MessageFormatError

__all__ = ["Entries", "Rows", "WrongRows", "compact"]

_SHOWN_NAME = 60
"""Characters of a name that an error shows; a name may be a whole payload by mistake."""


class WrongRows(Exception):  # noqa: N818  no error of its own: the cause of one
    """The cause of an error about rows: the numbers of all that have its fault, where the error names the first."""

    def __init__(self, numbers: Int64s) -> None:
        super().__init__()
        self.numbers = numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A run of rows: its columns as ``sink_columns`` names them, and its place in the task for error messages."""

    columns: Mapping[str, pa.Array]
    first: int
    count: int
    numbers: Int64s | None = None
    """Each row's place in the task; None when they follow each other from ``first`` on."""

    def text(self, name: str) -> pa.Array | None:
        """A string or binary column with 32-bit offsets, as binary; None when absent or all null."""
        array = self.column(name)
        return None if array is None else to_binary(array)

    def integers(self, name: str) -> tuple[Int64s, Mask] | None:
        """Values (0 where null) and where they are given; a timestamp in milliseconds since the epoch."""
        array = self.column(name)
        if array is None:
            return None
        given = mask_of(array.is_valid())
        unit = array.type.unit if pa.types.is_timestamp(array.type) else None
        values = array.view(pa.int64()) if unit else array.cast(pa.int64())
        return _milliseconds(values.fill_null(0).to_numpy(), unit), given

    def given(self, name: str) -> Mask | None:
        """Where a column of any type is not null; None when that is nowhere."""
        array = self.column(name)
        return None if array is None else mask_of(array.is_valid())

    def column(self, name: str) -> pa.Array | None:
        """A column of any type; None when absent or all null."""
        array = self.columns.get(name)
        return None if array is None or array.null_count == len(array) else array

    # --- parts ---------------------------------------------------------------------------------

    def only(self, mask: Mask) -> "Rows":
        """Some of the rows, which keep their names in errors."""
        if mask.all():
            return self
        kept = pa.array(mask)
        columns = {name: array.filter(kept) for name, array in self.columns.items()}
        return Rows(columns=columns, first=self.first, count=int(mask.sum()), numbers=self._numbers()[mask])

    def _numbers(self) -> Int64s:
        return np.arange(self.first, self.first + self.count) if self.numbers is None else self.numbers

    # --- errors --------------------------------------------------------------------------------

    def label(self, index: int) -> str:
        return f"Row {self.first + index if self.numbers is None else self.numbers[index]} of the task"

    def refuse(self, index: int, fact: str, remedy: str) -> NoReturn:
        """Refuse this row alone; where one look finds all rows with a fault, ``refuse_any`` is for it."""
        wrong = np.zeros(self.count, np.bool_)
        wrong[index] = True
        self.fail(wrong, MessageFormatError(f"{self.label(index)} {fact}.", remedy))

    def refuse_any(self, wrong: Mask, fact: str, remedy: str) -> None:
        """Refuse all rows for which ``wrong`` holds, if there are any; the error names the first."""
        if wrong.any():
            self.fail(wrong, MessageFormatError(f"{self.label(int(wrong.argmax()))} {fact}.", remedy))

    def fail(self, wrong: Mask, error: JMSError) -> NoReturn:
        """Raise an error that is about these rows and no other."""
        raise error from WrongRows(self._numbers()[np.broadcast_to(wrong, self.count)])


@dataclass(frozen=True, slots=True)
class Entries:
    """What a row may have many of, those of all rows one after the other.

    Row i has those from ``bounds[i]`` to ``bounds[i + 1]``.
    """

    rows: Rows
    bounds: Offsets
    kind: str
    """What an entry is called in errors: a property, an item of the map."""
    names: pa.Array | None
    """Binary; None for entries that are known by their place in the row."""

    def __len__(self) -> int:
        return int(self.bounds[-1])

    def only(self, mask: Mask) -> "Entries":
        """Some of the entries."""
        before = np.concatenate([[0], np.cumsum(mask)])
        names = None if self.names is None else self.names.filter(pa.array(mask))
        return replace(self, bounds=before[self.bounds], names=names)

    def owners_of_all(self) -> Int64s:
        return np.repeat(np.arange(self.rows.count), np.diff(self.bounds))

    def owners(self, entries: Int64s) -> Int64s:
        """The row of each entry."""
        found: Int64s = np.searchsorted(self.bounds, entries, side="right") - 1
        return found

    def refuse(self, index: int, fact: str, remedy: str) -> NoReturn:
        """Refuse the row of this entry."""
        self.rows.refuse(int(self.owners(np.array([index]))[0]), f"has {self._label(index)}: {fact}", remedy)

    def refuse_any(self, wrong: Mask, fact: str | Callable[[int], str], remedy: str) -> None:
        """Refuse the rows of all entries for which ``wrong`` holds; the error names the first."""
        at = np.flatnonzero(wrong)
        if not len(at):
            return
        wrong_rows = np.zeros(self.rows.count, np.bool_)
        wrong_rows[self.owners(at)] = True
        said = fact if isinstance(fact, str) else fact(int(at[0]))
        self.rows.refuse_any(wrong_rows, f"has {self._label(int(at[0]))}: {said}", remedy)

    def _label(self, index: int) -> str:
        if self.names is None:
            return f"{self.kind} {index - self.bounds[self.owners(np.array([index]))[0]]}"
        name = self.names[index].as_py().decode(errors="replace")
        return f"{self.kind} {name if len(name) <= _SHOWN_NAME else f'{name[:_SHOWN_NAME]}…'!r}"


def compact(lists: pa.Array) -> pa.Array:
    """A map or list array without entries that are hidden under a null: no frame may carry them, no check see them."""
    if lists.null_count and np.diff(offsets_of(lists))[mask_of(lists.is_null())].any():
        return lists.take(pa.array(np.arange(len(lists))))  # a copy has none
    return lists


_PER_MILLISECOND = {"us": 1_000, "ns": 1_000_000}
_MOST_SECONDS = np.iinfo(np.int64).max // 1_000


def _milliseconds(values: Int64s, unit: str | None) -> Int64s:
    if unit == "s":
        return np.clip(values, -_MOST_SECONDS, _MOST_SECONDS) * 1_000
    return values // _PER_MILLISECOND.get(unit or "", 1)
