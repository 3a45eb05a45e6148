"""Entries of maps and lists, step by step → all of them in the order of the rows, one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.byte_reader import NULL, Code
from pyspark_jms.amqp.columns.compound_cursor import Field
from pyspark_jms.amqp.columns.refusals import Refusals
from pyspark_jms.amqp.columns.walk import Fields
from pyspark_jms.columns.strings import Ints, Mask, is_first

__all__ = ["FlattenedEntries", "flatten", "only_of_types", "repeated"]


@dataclass(frozen=True, slots=True)
class FlattenedEntries:
    """Row i has the entries from ``offsets[i]`` to ``offsets[i + 1]``."""

    offsets: Ints
    name: Ints | Sequence[int]
    """The number of each entry's name; a sequence if all rows have these names, in this order."""
    code: Ints | Sequence[int]
    """The constructor of each value; a sequence if all rows have these constructors, in this order."""
    start: Ints
    stop: Ints

    def __len__(self) -> int:
        return len(self.start)

    @property
    def rows(self) -> int:
        return len(self.offsets) - 1

    def row_of_each(self) -> Ints:
        return np.repeat(np.arange(self.rows), np.diff(self.offsets))

    def constructors(self) -> set[int]:
        """The constructors that some value has."""
        if isinstance(self.code, np.ndarray):
            return set(np.flatnonzero(np.bincount(self.code)).tolist())
        return set(self.code if self.rows else ())

    def places_of(self, *codes: int) -> Ints:
        """The numbers of the values with one of the constructors, in order."""
        if not isinstance(self.code, np.ndarray):
            places = np.flatnonzero([code in codes for code in self.code])
            return np.add.outer(np.arange(0, len(self), len(self.code)), places).ravel()
        wanted = np.zeros(256, np.bool_)
        wanted[list(codes)] = True
        return np.flatnonzero(wanted[self.code])

    def pick_each(self, choices: pa.Array, which: Ints | Sequence[int]) -> pa.Array:
        """``choices`` by the numbers of each entry, which are as ``name`` and ``code``."""
        if isinstance(which, np.ndarray):
            return choices.take(pa.array(which))
        return repeated(choices.take(pa.array(which, pa.int64())), self.rows)

    def rows_with_a_name_twice(self, names: int) -> Ints:
        """``names``: the number of different names."""
        if not isinstance(self.name, np.ndarray):
            return np.arange(0 if len(set(self.name)) == len(self.name) else self.rows)
        rows = self.row_of_each()
        return rows[~is_first(rows, self.name, self.rows, names)]


def only_of_types(field: Field, known: Mask, refusals: Refusals) -> Field:
    """The values with a null for each one whose constructor is not ``known``, by constructor. Such a row is refused."""
    right = known[field.code]
    if right.all():
        return field
    refusals.add_where(field.rows, ~right)
    return field._replace(code=np.where(right, field.code, NULL), content=None)


def flatten(fields: Fields, names: Sequence[int | Ints], rows: int) -> FlattenedEntries:
    """``names``: the numbers of the names of each field; any numbers for the elements of lists."""
    regular = all(len(field.rows) == rows for field in fields)
    if regular:
        width = len(fields)
        offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
        places: list[slice | Ints] = [slice(number, None, width) for number in range(width)]
    else:
        offsets, places = _places(fields, rows)
    total = int(offsets[-1])
    start, stop = np.empty(total, np.int64), np.empty(total, np.int64)
    for field, place in zip(fields, places, strict=True):
        start[place], stop[place] = field.start, field.stop
    name = _each(names, places, total, regular=regular)
    code = _each([field.code for field in fields], places, total, regular=regular)
    return FlattenedEntries(offsets, name, code, start, stop)


def _places(fields: Fields, rows: int) -> tuple[Ints, list[slice | Ints]]:
    counts = np.zeros(rows, np.int64)
    ranks = []
    for field in fields:
        ranks.append(counts[field.rows])
        counts[field.rows] += 1
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return offsets, [offsets[field.rows] + rank for field, rank in zip(fields, ranks, strict=True)]


def _each(found: Sequence[Code], places: Sequence[slice | Ints], total: int, *, regular: bool) -> Ints | Sequence[int]:
    constants = [number for number in found if isinstance(number, int)]
    if regular and len(constants) == len(found):
        return constants
    each = np.empty(total, np.int64)
    for number, place in zip(found, places, strict=True):
        each[place] = number
    return each


def repeated(array: pa.Array, times: int) -> pa.Array:
    """The array, ``times`` times over."""
    if times <= 1:
        return array.slice(0, len(array) * times)
    half = repeated(array, times // 2)
    return pa.concat_arrays([half, half, array.slice(0, len(array) * (times % 2))])
