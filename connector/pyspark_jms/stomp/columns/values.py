"""Header text → typed columns. Knows JMS and the text a broker writes for it, nothing of frames."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.cut import MAX_BYTES, Ints, contents, cut
from pyspark_jms.columns.integers import integers
from pyspark_jms.jms.model import DestinationKind

__all__ = ["destinations", "stable_ids", "times", "truths"]

_NUMBER = re.compile(r"-?[0-9]+")
_INT64_DIGITS = 18
_MINUS, _ZERO, _NINE = ord("-"), ord("0"), ord("9")

_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999: what a timestamp of Spark SQL, and a datetime of Python, can show."""

_TIMESTAMP = pa.timestamp("us", tz="UTC")

# Typed scalars: for a plain Python value pyarrow looks for pandas at every call, which costs more than the call.
_NO_NUMBER = pa.scalar(None, pa.int64())
_TRUE = pa.scalar("true", pa.string())
_FALSE = pa.scalar(value=False, type=pa.bool_())
_NONE = pa.scalar(0, pa.int64())
_SLASH, _NOTHING = pa.scalar("/", pa.string()), pa.scalar("", pa.string())
_QUEUE = f"{DestinationKind.QUEUE}://"


def times(texts: pa.Array, unit_ms: int = 1) -> tuple[pa.Array, list[int]]:
    """Milliseconds, or another unit, since the epoch as timestamps; 0 is none (JMS 3.1 §3.4.4, §3.4.9, §3.4.13)."""
    numbers, wrong = integers(texts, _FIRST_MS // unit_ms, _LAST_MS // unit_ms)
    micros_in_unit = pa.scalar(1000 * unit_ms, pa.int64())
    micros = pc.multiply(pc.if_else(pc.equal(numbers, _NONE), _NO_NUMBER, numbers), micros_in_unit)
    return micros.view(_TIMESTAMP), wrong


def truths(texts: pa.Array) -> pa.Array:
    """``true`` in any case; anything else, and no header, is false, as ``Boolean.valueOf`` reads it."""
    return pc.equal(pc.ascii_lower(texts), _TRUE).fill_null(_FALSE)


def destinations(texts: pa.Array, prefixes: dict[str, str]) -> pa.Array:
    """``queue://NAME`` or ``topic://NAME``; a name without a known prefix is taken for a queue's."""
    which = np.zeros(len(texts), np.int64)
    for number, prefix in enumerate(prefixes, 1):
        begins = pc.starts_with(texts, prefix).fill_null(_FALSE).to_numpy(zero_copy_only=False)
        which[begins & (which == 0)] = number
    skipped = np.array([0, *(len(prefix.encode()) for prefix in prefixes)])
    names = _behind(texts, skipped[which])
    spelled = pa.array([_QUEUE, *prefixes.values()], pa.string())
    return pc.binary_join_element_wise(spelled.take(pa.array(which)), names, _NOTHING)


def stable_ids(ids: pa.Array, separator: str, queue: str) -> pa.Array:
    """``queue/ID`` with what follows ``separator`` as ID; null where nothing does."""
    at = pc.find_substring(ids, separator).fill_null(-1).to_numpy().astype(np.int64)
    size = len(separator.encode())
    found = _behind(ids, np.where(at < 0, MAX_BYTES, at + size))
    return pc.binary_join_element_wise(pa.scalar(queue, pa.string()), found, _SLASH)


def _behind(texts: pa.Array, skipped: Ints) -> pa.Array:
    """Each text without its first ``skipped`` bytes; null where nothing is left."""
    data, limits = contents(texts)
    starts, ends = limits[:-1] + skipped, limits[1:]
    return cut(data, np.minimum(starts, ends), ends, starts < ends)
