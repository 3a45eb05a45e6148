"""STOMP 1.2's header escapes over whole columns and buffers: the vectorised pair of ``wire.frame``.

Knows the table of ``wire.frame`` and how Arrow holds strings. Does not know headers and frames.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.arrays import (
    Int64s,
    Mask,
    Uint8s,
    binary_array,
    bytes_of,
    contents,
    offsets_of,
    strings_at,
    with_nulls_of,
)
from pyspark_jms.stomp.wire.frame import ESCAPE_CODES

__all__ = ["escape_column", "unescape_buffer"]

_BACKSLASH = ord("\\")
_JOINT = pa.scalar(b"\\", pa.binary())

_CODE_OF = np.zeros(256, np.uint8)
"""Byte → the byte that follows the backslash; 0: the byte needs no escape."""

_PLAIN_OF = np.zeros(256, np.uint8)
"""The byte that follows a backslash → the byte that was escaped; 0: STOMP 1.2 does not define this escape."""

for _plain, _code in ESCAPE_CODES.items():
    _CODE_OF[ord(_plain)] = ord(_code)
    _PLAIN_OF[ord(_code)] = ord(_plain)

_LAST_CONTROL = max(ord(plain) for plain in ESCAPE_CODES if plain < " ")
_PRINTABLE = [ord(plain) for plain in ESCAPE_CODES if plain >= " "]


# --- escape ----------------------------------------------------------------------------------------------


def escape_column(array: pa.Array) -> pa.Array:
    """Escape each entry of a binary array, whose entries are known to be UTF-8."""
    data = bytes_of(array)
    positions, codes = _to_escape(data)
    return _with_escapes(array, data, positions, codes) if len(positions) else array


def _to_escape(data: Uint8s) -> tuple[Int64s, Uint8s]:
    """The positions of the bytes to escape, and their codes."""
    suspects = data <= _LAST_CONTROL  # few comparisons of all bytes are faster than a look-up of each one
    for byte in _PRINTABLE:
        suspects |= data == byte
    positions = np.flatnonzero(suspects)
    codes = _CODE_OF[data[positions]]
    needed = codes != 0
    return (positions, codes) if needed.all() else (positions[needed], codes[needed])


def _with_escapes(array: pa.Array, data: Uint8s, positions: Int64s, codes: Uint8s) -> pa.Array:
    """Put each code in the place of its byte, cut the data before each code, and join the cuts by backslashes."""
    coded = data.copy()
    coded[positions] = codes
    cuts = np.concatenate([[0], positions, [len(data)]])
    pieces = binary_array(cuts, coded)
    bounds = pa.py_buffer(np.array([0, len(pieces)], np.int32))
    one_list = pa.Array.from_buffers(pa.list_(pa.binary()), 1, [None, bounds], children=[pieces])
    joined = pc.binary_join(one_list, _JOINT)
    offsets = offsets_of(array) - offsets_of(array)[0]
    owners = np.searchsorted(offsets, positions, side="right") - 1
    offsets[1:] += np.cumsum(np.bincount(owners, minlength=len(array)), dtype=offsets.dtype)
    return with_nulls_of(array, offsets, joined.buffers()[2])


# --- unescape --------------------------------------------------------------------------------------------


class UnescapedData(NamedTuple):
    """A buffer with one byte for each escape; positions are those in the buffer before."""

    data: Uint8s
    removed: Int64s
    """The backslashes that are gone, in order."""
    undefined: Int64s
    """The backslashes of undefined escapes, in order. They stay as they were."""


def unescape_buffer(data: Uint8s) -> UnescapedData:
    """Undo the escapes of header lines, of which each ends in its LF."""
    slashes = np.flatnonzero(data == _BACKSLASH)
    slashes = slashes[_opens_escape(slashes)]
    plain = _PLAIN_OF[data[slashes + 1]]
    defined = plain != 0
    removed = slashes[defined]
    coded = data.copy()
    coded[removed + 1] = plain[defined]
    return UnescapedData(_without(coded, removed), removed, slashes[~defined])


def _opens_escape(slashes: Int64s) -> Mask:
    """Find the backslashes that open an escape, in a run the first, third, …: the others are the escaped character."""
    number = np.arange(len(slashes))
    begins_run = np.concatenate(([True], np.diff(slashes) != 1))
    opens: Mask = (number - np.maximum.accumulate(np.where(begins_run, number, 0))) % 2 == 0
    return opens


def _without(data: Uint8s, dropped: Int64s) -> Uint8s:
    """The data without the bytes at these positions."""
    starts = np.concatenate(([0], dropped + 1))
    ends = np.append(dropped, len(data))
    kept, limits = contents(strings_at(pa.py_buffer(data), starts, ends))
    result: Uint8s = np.frombuffer(kept, np.uint8)[: limits[-1]]
    return result
