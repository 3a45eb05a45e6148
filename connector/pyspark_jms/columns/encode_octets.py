"""Strings of an Arrow array in, header octets of the same array out: escapes, lines, joins, all vectorised.

Knows STOMP 1.2's value encoding and Arrow's layout of strings; knows no column and no header.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "Int64s",
    "Offsets",
    "Piece",
    "escaped",
    "first_not_utf8",
    "first_with_nul",
    "header_line",
    "join_rows",
    "octets_of",
    "offsets_of",
    "slices_of",
    "to_binary",
]

Int64s: TypeAlias = npt.NDArray[np.int64]
Offsets: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Octets: TypeAlias = npt.NDArray[np.uint8]

Piece: TypeAlias = bytes | pa.Array
"""Part of a frame: the same octets for every row, or a binary array in which a null adds nothing."""

_BINARY = pa.binary()
_BACKSLASH = ord("\\")

# STOMP 1.2 "Value Encoding": what follows the backslash. NUL is not in the table: the grammar allows it in
# a header (only CR, LF and ":" are excluded), and Artemis reads the header block up to the blank line.
_ESCAPE_CODE = np.zeros(256, np.uint8)
for _plain, _code in ((b"\r", b"r"), (b"\n", b"n"), (b":", b"c"), (b"\\", b"\\")):
    _ESCAPE_CODE[_plain[0]] = _code[0]


def offsets_of(array: pa.Array) -> Offsets:
    """The ``len + 1`` offsets of a string, binary or map array, into its whole child or data buffer."""
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    buffer = array.buffers()[1]
    if buffer is None or not buffer.size:
        return np.zeros(1, np.int32)
    offsets = np.frombuffer(buffer, np.int64) if wide else np.frombuffer(buffer, np.int32)
    return offsets[array.offset : array.offset + len(array) + 1]


def to_binary(array: pa.Array) -> pa.Array:
    """The same strings as ``binary``, without a copy unless their offsets are 64 bits wide."""
    if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type):
        array = array.take(pa.array(np.arange(len(array))))  # offsets that begin at 0 and so fit 32 bits
        return array.cast(pa.string() if pa.types.is_large_string(array.type) else _BINARY).view(_BINARY)
    return array.view(_BINARY)


def octets_of(array: pa.Array) -> Octets:
    """All octets of a binary array's entries, one after the other, those hidden under a null included."""
    offsets = offsets_of(array)
    data = array.buffers()[2]
    if data is None or offsets[-1] == offsets[0]:
        return np.zeros(0, np.uint8)
    return np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]


def slices_of(array: pa.Array, bounds: Offsets) -> pa.Array:
    """Entry i spans ``array[bounds[i]:bounds[i + 1]]``, octets end to end; shares the data."""
    offsets = np.ascontiguousarray(offsets_of(array)[bounds], np.int32)
    data = array.buffers()[2] or pa.py_buffer(b"")
    return pa.Array.from_buffers(_BINARY, len(bounds) - 1, [None, pa.py_buffer(offsets), data])


def first_not_utf8(array: pa.Array) -> int | None:
    """The first entry of a binary array that is not UTF-8: a broker would replace what it cannot read."""
    try:
        array.cast(pa.string())
    except pa.ArrowInvalid:
        return next((i for i, entry in enumerate(array) if entry.is_valid and not _is_utf8(entry.as_py())), None)
    return None


def _is_utf8(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True


def first_with_nul(array: pa.Array, among: npt.NDArray[np.bool_] | None = None) -> int | None:
    """The first entry of a binary array, of those wanted, that holds a NUL."""
    octets = octets_of(array)
    if not len(octets) or octets.min():
        return None
    found = pc.fill_null(pc.greater_equal(pc.find_substring(array, b"\0"), 0), fill_value=False)
    hits = found.to_numpy(zero_copy_only=False)
    hits = hits if among is None else hits & among
    return int(hits.argmax()) if hits.any() else None


def escaped(array: pa.Array, refuse: Callable[[int], NoReturn]) -> pa.Array:
    """A binary array with STOMP 1.2's escapes; ``refuse`` is called for an entry that is not UTF-8."""
    wrong = first_not_utf8(array)
    if wrong is not None:
        refuse(wrong)
    octets = octets_of(array)
    positions = _to_escape(octets)
    return _with_escapes(array, octets, positions) if len(positions) else array


def _to_escape(octets: Octets) -> Int64s:
    """Positions of CR, LF, colon and backslash; control characters are told apart only where there are any."""
    suspects = np.flatnonzero((octets <= ord("\r")) | (octets == ord(":")) | (octets == _BACKSLASH))
    needed: Int64s = suspects[_ESCAPE_CODE[octets[suspects]] != 0]
    return needed


def _with_escapes(array: pa.Array, octets: Octets, positions: Int64s) -> pa.Array:
    offsets = offsets_of(array).astype(np.int64)
    offsets -= offsets[0]
    backslashes = positions + np.arange(len(positions))
    data = np.empty(len(octets) + len(positions), np.uint8)
    kept = np.ones(len(data), np.bool_)
    kept[backslashes] = False
    data[kept] = octets
    data[backslashes] = _BACKSLASH
    data[backslashes + 1] = _ESCAPE_CODE[octets[positions]]
    owners = np.searchsorted(offsets, positions, side="right") - 1
    offsets[1:] += np.cumsum(np.bincount(owners, minlength=len(array)))
    return _rebuilt(array, offsets.astype(np.int32), data)


def _rebuilt(array: pa.Array, offsets: npt.NDArray[np.int32], data: Octets) -> pa.Array:
    """The array with other octets and the nulls it has."""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    if not array.null_count:
        return pa.Array.from_buffers(_BINARY, len(array), buffers)
    # A validity bitmap can be shared from a whole byte on; the bits before the first entry stay as padding.
    padding = array.offset % 8
    buffers[0] = array.buffers()[0].slice(array.offset // 8)
    buffers[1] = pa.py_buffer(np.concatenate([np.zeros(padding, np.int32), offsets]))
    return pa.Array.from_buffers(_BINARY, len(array), buffers, offset=padding)


def header_line(name: str, values: pa.Array) -> Piece:
    """``name:value`` and its LF for each entry of an escaped binary array; a null stays null."""
    return join_rows([f"{name}:".encode(), values, b"\n"], nulls="emit_null")


def join_rows(pieces: Sequence[Piece], *, nulls: Literal["emit_null", "replace"]) -> pa.Array:
    """The pieces of each row one after the other; a null makes its row null, or (``replace``) adds nothing."""
    arguments: list[pa.Array | pa.Scalar] = []
    constant = b""
    for piece in pieces:
        if isinstance(piece, bytes):
            constant += piece
        else:
            arguments += [pa.scalar(constant, _BINARY), piece] if constant else [piece]
            constant = b""
    arguments += [pa.scalar(constant, _BINARY)] if constant else []
    separator = pa.scalar(b"", _BINARY)
    return pc.binary_join_element_wise(*arguments, separator, null_handling=nulls, null_replacement="")
