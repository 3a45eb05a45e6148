"""Consecutive rows to be encoded: access to their columns, and errors that name a row by its number in the task.

Does not know headers, bodies and protocols.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, NotRequired, TypedDict

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.strings import Int64s, Mask, Offsets, mask_of, offsets_of, to_binary
from pyspark_jms.errors import JMSError, MessageFormatError
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.rules import shown_name

__all__ = ["EncodeOptions", "Entries", "Rows", "WrongRows", "compact"]


class WrongRows(Exception):  # noqa: N818  not an error itself: the cause of one
    """The cause of an error about rows: the numbers of all rows with the fault. The error names the first of them."""

    def __init__(self, numbers: Int64s) -> None:
        super().__init__()
        self.numbers = numbers


class EncodeOptions(TypedDict):
    """How rows become messages."""

    destination: Destination | None
    """That of rows without one."""
    property_columns: Sequence[str]
    """The columns that become typed properties."""
    now_ms: int
    """A time to live counts from it."""
    first_row: NotRequired[int]
    """The number of the first row in the task: errors name it."""
    numbers: NotRequired[Int64s | None]
    """The number of each row in the task, if they are not consecutive from ``first_row``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Consecutive rows: their columns, named as by ``sink_columns``, and their numbers in the task for errors."""

    columns: Mapping[str, pa.Array]
    first: int
    count: int
    numbers: Int64s | None = None
    """The number of each row in the task. None: they are consecutive from ``first``."""

    def text(self, name: str) -> pa.Array | None:
        """A string or binary column with 32-bit offsets, as binary; None when absent or all null."""
        array = self.column(name)
        return None if array is None else to_binary(array)

    def integers(self, name: str) -> tuple[Int64s, Mask] | None:
        """The values, 0 for a null, and which are not null. A timestamp is given in milliseconds since the epoch."""
        array = self.column(name)
        if array is None:
            return None
        given = mask_of(array.is_valid())
        unit = array.type.unit if pa.types.is_timestamp(array.type) else None
        values = array.view(pa.int64()) if unit else array.cast(pa.int64())
        return _milliseconds(values.fill_null(0).to_numpy(), unit), given

    def given(self, name: str) -> Mask | None:
        """Which values of a column of any type are not null; None when all are null."""
        array = self.column(name)
        return None if array is None else mask_of(array.is_valid())

    def column(self, name: str) -> pa.Array | None:
        """A column of any type; None when absent or all null."""
        array = self.columns.get(name)
        return None if array is None or array.null_count == len(array) else array

    # --- parts ---------------------------------------------------------------------------------

    def only(self, mask: Mask) -> "Rows":
        """Some of the rows. They keep their numbers in errors."""
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
        """Refuse this one row. Use ``refuse_any`` where one check finds all rows with the fault."""
        wrong = np.zeros(self.count, np.bool_)
        wrong[index] = True
        self.fail(wrong, MessageFormatError(f"{self.label(index)} {fact}.", remedy))

    def refuse_any(self, wrong: Mask, fact: str, remedy: str) -> None:
        """Refuse all rows for which ``wrong`` is true, if any; the error names the first one."""
        if wrong.any():
            self.fail(wrong, MessageFormatError(f"{self.label(int(wrong.argmax()))} {fact}.", remedy))

    def fail(self, wrong: Mask, error: JMSError) -> NoReturn:
        """Raise an error about exactly these rows."""
        raise error from WrongRows(self._numbers()[np.broadcast_to(wrong, self.count)])


@dataclass(frozen=True, slots=True)
class Entries:
    """Properties, map items or stream elements: those of all rows, one after the other.

    Row i has the entries from ``bounds[i]`` to ``bounds[i + 1]``.
    """

    rows: Rows
    bounds: Offsets
    kind: str
    """The name of an entry in errors, with its article: ``a property``, ``a map item``."""
    names: pa.Array | None
    """Binary. None: an entry has no name. Errors have its position in the row then, or if its name is unusual."""

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
        """Refuse the rows of all entries for which ``wrong`` is true, if any; the error names the first one."""
        at = np.flatnonzero(wrong)
        if not len(at):
            return
        wrong_rows = np.zeros(self.rows.count, np.bool_)
        wrong_rows[self.owners(at)] = True
        problem = fact if isinstance(fact, str) else fact(int(at[0]))
        self.rows.refuse_any(wrong_rows, f"has {self._label(int(at[0]))}: {problem}", remedy)

    def _label(self, index: int) -> str:
        place = int(index - self.bounds[self.owners(np.array([index]))[0]])
        if self.names is None:
            return f"{self.kind} {place}"
        return f"{self.kind} {shown_name(self.names[index].as_py().decode(errors='replace'), place + 1)}"


def compact(lists: pa.Array) -> pa.Array:
    """A map or list array without entries under a null, which must be neither checked nor sent."""
    if lists.null_count and np.diff(offsets_of(lists))[mask_of(lists.is_null())].any():
        return lists.take(pa.array(np.arange(len(lists))))  # a copy has no such entries
    return lists


_PER_MILLISECOND = {"us": 1_000, "ns": 1_000_000}
_MOST_SECONDS = np.iinfo(np.int64).max // 1_000


def _milliseconds(values: Int64s, unit: str | None) -> Int64s:
    if unit == "s":
        return np.clip(values, -_MOST_SECONDS, _MOST_SECONDS) * 1_000
    return values // _PER_MILLISECOND.get(unit or "", 1)
