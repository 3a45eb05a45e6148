"""Texts of headers → typed columns. Does not know frames."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.strings import Ints, contents, strings_at
from pyspark_jms.columns.value_texts import integers
from pyspark_jms.jms.model import DestinationKind

__all__ = ["destinations", "stable_ids", "times", "truths"]

_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999: the range of timestamps in Spark SQL and of ``datetime`` in Python."""

_TIMESTAMP = pa.timestamp("us", tz="UTC")

# Typed scalars: with a plain Python value pyarrow looks for pandas in each call, which costs more than the call.
_NO_NUMBER = pa.scalar(None, pa.int64())
_TRUE = pa.scalar("true", pa.string())
_FALSE = pa.scalar(value=False, type=pa.bool_())
_NONE = pa.scalar(0, pa.int64())
_SLASH, _NOTHING = pa.scalar("/", pa.string()), pa.scalar("", pa.string())
_QUEUE = f"{DestinationKind.QUEUE}://"


def times(texts: pa.Array, unit_ms: int = 1) -> tuple[pa.Array, list[int]]:
    """Milliseconds, or another unit, since the epoch → timestamps; 0 → null (JMS 3.1 §3.4.4, §3.4.9, §3.4.13)."""
    numbers, wrong = integers(texts, _FIRST_MS // unit_ms, _LAST_MS // unit_ms)
    micros_in_unit = pa.scalar(1000 * unit_ms, pa.int64())
    micros = pc.multiply(pc.if_else(pc.equal(numbers, _NONE), _NO_NUMBER, numbers), micros_in_unit)
    return micros.view(_TIMESTAMP), wrong


def truths(texts: pa.Array) -> pa.Array:
    """True for ``true`` in upper or lower case, otherwise false, also for a null: as ``Boolean.valueOf`` in Java."""
    return pc.equal(pc.ascii_lower(texts), _TRUE).fill_null(_FALSE)


def destinations(texts: pa.Array, prefixes: dict[str, str]) -> pa.Array:
    """``queue://NAME`` or ``topic://NAME``. A name without a known prefix is taken for a queue."""
    which = np.zeros(len(texts), np.int64)
    for number, prefix in enumerate(prefixes, 1):
        begins = pc.starts_with(texts, prefix).fill_null(_FALSE).to_numpy(zero_copy_only=False)
        which[begins & (which == 0)] = number
    skipped = np.array([0, *(len(prefix.encode()) for prefix in prefixes)])
    names = _without_start(texts, skipped[which])
    urls = pa.array([_QUEUE, *prefixes.values()], pa.string())
    return pc.binary_join_element_wise(urls.take(pa.array(which)), names, _NOTHING)


def stable_ids(ids: pa.Array, separator: str, queue: str) -> pa.Array:
    """``QUEUE/ID``, where ID is what follows ``separator``, or all where it is not; null where ID is empty."""
    at = pc.find_substring(ids, separator).fill_null(-1).to_numpy().astype(np.int64)
    found = _without_start(ids, np.where(at < 0, 0, at + len(separator.encode())))
    return pc.binary_join_element_wise(pa.scalar(queue, pa.string()), found, _SLASH)


def _without_start(texts: pa.Array, skipped: Ints) -> pa.Array:
    """Each text without its first ``skipped`` bytes; null where nothing is left."""
    data, limits = contents(texts)
    starts, ends = limits[:-1] + skipped, limits[1:]
    return strings_at(data, np.minimum(starts, ends), ends, starts < ends)
