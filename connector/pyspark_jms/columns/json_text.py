"""Strings of an Arrow array in, the inside of JSON strings out, escaped; all vectorised.

Knows RFC 8259 and Arrow's layout of strings; knows no column and no body. What comes out holds no NUL and no line
end, whatever went in: it can neither end a STOMP frame nor a line of JSON.
"""

from collections.abc import Callable
from typing import NoReturn

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.ragged import (
    ByteArray,
    bytes_of,
    first_not_utf8,
    offsets_of,
    with_nulls_of,
)

__all__ = ["LARGEST_TEXT", "json_escaped", "json_text"]

LARGEST_TEXT = (1 << 31) - (1 << 24)
"""Bytes that an array of strings can hold, less than what JSON adds around them."""

# RFC 8259 §7: a quotation mark and a backslash are escaped by a backslash, control characters by their number.
_ESCAPES = {code: f"\\u{code:04x}" for code in range(ord(" "))} | {ord(plain): f"\\{plain}" for plain in '"\\'}

# The same by byte: all but the last character, and the last.
_PREFIX = np.zeros((256, 5), np.uint8)
_PREFIX_LENGTH = np.zeros(256, np.int64)
_LAST = np.arange(256, dtype=np.uint8)
for _byte, _text in _ESCAPES.items():
    _PREFIX[_byte, : len(_text) - 1] = list(_text[:-1].encode())
    _PREFIX_LENGTH[_byte] = len(_text) - 1
    _LAST[_byte] = ord(_text[-1])


def json_text(text: str) -> str:
    """One text as a JSON string."""
    return f'"{text.translate(_ESCAPES)}"'


def json_escaped(array: pa.Array, not_utf8: Callable[[int], NoReturn], too_long: Callable[[int], NoReturn]) -> pa.Array:
    """A binary array as the inside of JSON strings; nulls stay nulls.

    ``not_utf8`` is called for an entry that is no text, ``too_long`` for the longest when Arrow cannot hold them all.
    """
    wrong = first_not_utf8(array)
    if wrong is not None:
        not_utf8(wrong)
    octets = bytes_of(array)
    positions = np.flatnonzero((octets < ord(" ")) | (octets == ord('"')) | (octets == ord("\\")))
    if not len(positions):
        return array
    lengths = _PREFIX_LENGTH[octets[positions]]
    offsets = (offsets_of(array) - offsets_of(array)[0]).astype(np.int64)
    owners = np.searchsorted(offsets, positions, side="right") - 1
    offsets[1:] += np.cumsum(np.bincount(owners, weights=lengths, minlength=len(array)).astype(np.int64))
    if offsets[-1] > LARGEST_TEXT:
        too_long(int(np.diff(offsets).argmax()))
    data = np.insert(_LAST[octets], np.repeat(positions, lengths), _prefixes(octets[positions]))
    return with_nulls_of(array, offsets.astype(np.int32), pa.py_buffer(data))


def _prefixes(octets: ByteArray) -> ByteArray:
    """The prefixes of these bytes, one after the other."""
    rows = _PREFIX[octets]
    inside: ByteArray = rows[np.arange(rows.shape[1]) < _PREFIX_LENGTH[octets][:, None]]
    return inside
