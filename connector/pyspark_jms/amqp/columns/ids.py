"""Message-ids and correlation-ids → strings as JMS spells them (AMQP-JMS binding §3.2.1.1)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.amqp.columns.byte_reader import BIN8, BIN32, ByteReader
from pyspark_jms.amqp.columns.compound_cursor import Field
from pyspark_jms.amqp.columns.fields import string
from pyspark_jms.amqp.columns.refusals import Refusals
from pyspark_jms.amqp.wire.sections import EMPTY_MESSAGE_ID, ENCODED_IDS, FINGERPRINT_BYTES
from pyspark_jms.columns.strings import Ints, Uint8s, contents, require_offsets, strings_at

__all__ = ["fingerprint_texts", "ids", "uuid_texts"]

_ULONG, _SMALL_ULONG, _ULONG_0, _UUID = 0x80, 0x53, 0x44, 0x98
_OTHERS = (_ULONG, _SMALL_ULONG, _ULONG_0, _UUID, BIN8, BIN32)
_IS_OTHER = np.zeros(256, np.bool_)
_IS_OTHER[list(_OTHERS)] = True
_UUID_BYTES, _DASHES = 16, (8, 13, 18, 23)
_NOTHING = pa.scalar("", pa.string())
_ENCODED, _IS_ENCODED = "ID:AMQP_", rf"\A({'|'.join(ENCODED_IDS)})"
_LOWER, _UPPER = (
    np.frombuffer("".join(f"{byte:02{case}}" for byte in range(256)).encode(), "V2") for case in ("x", "X")
)
"""The two digits of each byte."""


def ids(reader: ByteReader, field: Field | None, rows: int, refusals: Refusals, *, of_messages: bool) -> pa.Array:
    """A column of a field that holds ids, null for a null. A row with a value that is no id is refused."""
    if field is None or not _IS_OTHER[field.code].any():
        return _escaped(string(reader, field, rows, refusals), of_messages=of_messages)
    codes = np.broadcast_to(np.asarray(field.code), field.rows.shape)
    texts = string(reader, field.only(~_IS_OTHER[codes]), rows, refusals)
    parts = [_escaped(texts, of_messages=of_messages)]
    places = np.arange(rows)
    for code in _OTHERS:
        which = codes == code
        if not which.any():
            continue
        places[field.rows[which]] = np.arange(int(which.sum())) + sum(map(len, parts))
        parts.append(_spelled(reader, code, field.start[which], field.stop[which]))
    return pa.concat_arrays(parts).take(pa.array(places))


def _escaped(texts: pa.Array, *, of_messages: bool) -> pa.Array:
    """Strings as ids: what begins like another type is escaped, and each JMSMessageID begins with ``ID:``."""
    escaped = texts
    if pc.any(pc.starts_with(texts, _ENCODED)).as_py():
        encoded = pc.match_substring_regex(texts, _IS_ENCODED)
        escaped = pc.if_else(encoded, _with_prefix("ID:AMQP_STRING:", texts), texts)
    if of_messages:
        prefixed = pc.starts_with(texts, "ID:")
        if pc.all(prefixed).as_py() is False:
            escaped = pc.if_else(prefixed, escaped, _with_prefix(EMPTY_MESSAGE_ID, texts))
    return escaped


def _spelled(reader: ByteReader, code: int, start: Ints, stop: Ints) -> pa.Array:
    """The ids with one constructor."""
    if code == _UUID:
        return _with_prefix("ID:AMQP_UUID:", uuid_texts(reader, start))
    if code in {BIN8, BIN32}:
        return _with_prefix("ID:AMQP_BINARY:", _digits(strings_at(reader.buffer, start, stop)))
    numbers = np.zeros(len(start), np.uint64) if code == _ULONG_0 else reader.numbers(code, start).astype(np.uint64)
    return _with_prefix("ID:AMQP_ULONG:", pa.array(numbers).cast(pa.string()))


def _with_prefix(prefix: str, texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(prefix, pa.string()), texts, _NOTHING)


def fingerprint_texts(digests: Sequence[bytes]) -> pa.Array:
    """``~`` and the digits of each digest, at least one."""
    raw = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, FINGERPRINT_BYTES)
    texts: Uint8s = np.full((len(raw), 1 + 2 * FINGERPRINT_BYTES), ord("~"), np.uint8)
    texts[:, 1:] = _LOWER[raw].view(np.uint8).reshape(len(raw), -1)
    return _strings(np.arange(len(raw) + 1) * texts.shape[1], texts)


def uuid_texts(reader: ByteReader, start: Ints) -> pa.Array:
    digits = _LOWER[reader.raw[start[:, None] + np.arange(_UUID_BYTES)]].view(np.uint8).reshape(len(start), -1)
    width = digits.shape[1] + len(_DASHES)
    texts: Uint8s = np.full((len(start), width), ord("-"), np.uint8)
    texts[:, np.delete(np.arange(width), _DASHES)] = digits
    return _strings(np.arange(len(start) + 1) * width, texts)


def _digits(column: pa.Array) -> pa.Array:
    data, limits = contents(column)
    return _strings(2 * limits, _UPPER[np.frombuffer(data, np.uint8)])


def _strings(limits: Ints, data: npt.NDArray[Any]) -> pa.Array:
    require_offsets(int(limits[-1]))
    offsets = pa.py_buffer(limits.astype(np.int32))
    return pa.Array.from_buffers(pa.string(), len(limits) - 1, [None, offsets, pa.py_buffer(data)])
