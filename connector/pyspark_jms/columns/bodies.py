"""Frames → ``body_type``, ``text`` and ``bytes``. Knows which frames hold text, not why."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyspark_jms.columns.decode_cut import Bools, cut, is_utf8
from pyspark_jms.columns.decode_frames import Frames
from pyspark_jms.columns.decode_lines import Fault
from pyspark_jms.model import BodyType

__all__ = ["Bodies", "read_bodies"]

_NAMES = pa.array([BodyType.TEXT.value, BodyType.BYTES.value], pa.string())
_AFTER_HEADERS = 1 << 62


@dataclass(frozen=True, slots=True)
class Bodies:
    body_type: pa.Array
    text: pa.Array
    octets: pa.Array
    faults: list[Fault]


def read_bodies(frames: Frames, *, is_bytes: Bools) -> Bodies:
    """Each body in its column; text that is not UTF-8 stays raw, and is named among the faults."""
    starts, ends = frames.heads + 2, frames.ends - 2
    text = cut(frames.raw, starts, ends, ~is_bytes)
    wrong = np.zeros(len(frames), np.bool_)
    if not is_utf8(text):
        wrong = _not_utf8(text)
        text = cut(frames.raw, starts, ends, ~(is_bytes | wrong))
    raw = is_bytes | wrong
    octets = cut(frames.raw, starts, ends, raw).view(pa.binary()) if raw.any() else pa.nulls(len(raw), pa.binary())
    faults = [Fault(row, _AFTER_HEADERS, "text is not valid UTF-8") for row in np.flatnonzero(wrong).tolist()]
    return Bodies(_NAMES.take(pa.array(is_bytes.astype(np.int8))), text, octets, faults)


def _not_utf8(text: pa.Array) -> Bools:
    return np.array([not (value is None or _decodes(value)) for value in text.view(pa.binary()).to_pylist()])


def _decodes(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True
