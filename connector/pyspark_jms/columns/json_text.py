"""Strings of an Arrow array → the inside of JSON strings, escaped by RFC 8259; all vectorised.

The result never has a NUL or a line end, so it can end neither a line of JSON nor a message whose text ends at a NUL.
"""

from collections.abc import Callable
from typing import NoReturn

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.ragged import (
    Uint8s,
    bytes_of,
    first_not_utf8,
    offsets_of,
    with_nulls_of,
)

__all__ = ["LARGEST_TEXT", "json_escaped", "json_text"]

LARGEST_TEXT = (1 << 31) - (1 << 24)
"""The limit of the escaped strings of an array, in bytes. It leaves room for the JSON around them."""

# RFC 8259 §7: a quotation mark and a backslash are escaped by a backslash, control characters by their number.
_ESCAPES = {code: f"\\u{code:04x}" for code in range(ord(" "))} | {ord(plain): f"\\{plain}" for plain in '"\\'}

# The escape of each byte, split into its prefix and its last character.
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

    ``not_utf8`` is called with the index of an entry that is not UTF-8, ``too_long`` with the index of the longest
    entry if one array cannot hold them all.
    """
    wrong = first_not_utf8(array)
    if wrong is not None:
        not_utf8(wrong)
    plain = bytes_of(array)
    positions = np.flatnonzero((plain < ord(" ")) | (plain == ord('"')) | (plain == ord("\\")))
    if not len(positions):
        return array
    lengths = _PREFIX_LENGTH[plain[positions]]
    offsets = (offsets_of(array) - offsets_of(array)[0]).astype(np.int64)
    owners = np.searchsorted(offsets, positions, side="right") - 1
    offsets[1:] += np.cumsum(np.bincount(owners, weights=lengths, minlength=len(array)).astype(np.int64))
    if offsets[-1] > LARGEST_TEXT:
        too_long(int(np.diff(offsets).argmax()))
    data = np.insert(_LAST[plain], np.repeat(positions, lengths), _prefixes(plain[positions]))
    return with_nulls_of(array, offsets.astype(np.int32), pa.py_buffer(data))


def _prefixes(plain: Uint8s) -> Uint8s:
    """The prefixes of these bytes, one after the other."""
    rows = _PREFIX[plain]
    inside: Uint8s = rows[np.arange(rows.shape[1]) < _PREFIX_LENGTH[plain][:, None]]
    return inside
