"""The body columns in, each row's octets and ``content-length`` out. Knows text and bytes; refuses the others."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.columns.encode_columns import Rows
from pyspark_jms.columns.encode_octets import Mask, Piece, first_not_utf8, first_with_nul, header_line, is_ascii_text
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.model import BodyType

__all__ = ["body_of"]

_TYPES = tuple(BodyType)
_TEXT, _BYTES, _MESSAGE = (_TYPES.index(kind) for kind in (BodyType.TEXT, BodyType.BYTES, BodyType.MESSAGE))
_COLUMN_OF = {
    BodyType.TEXT: "text",
    BodyType.BYTES: "bytes",
    BodyType.MAP: "map",
    BodyType.STREAM: "stream",
    BodyType.OBJECT: "bytes",
}
_BODY_COLUMNS = ("text", "bytes", "map", "stream")
_UNSAID = -1
_EMPTY = pa.scalar(b"", pa.binary())

Codes = npt.NDArray[np.int64]


def body_of(rows: Rows) -> tuple[list[Piece], pa.Array]:
    """The pieces of the ``content-length`` line, and the body.

    Artemis takes a SEND with ``content-length`` for a BytesMessage and one without for a TextMessage, whose
    body ends at the first NUL: so a text with one is refused, it would end its frame and begin another.
    """
    is_bytes = _body_types(rows) == _BYTES
    texts, octets = rows.text("text"), rows.text("bytes")
    if texts is not None:
        _check_texts(rows, texts, ~is_bytes)
    if not is_bytes.any():
        return [], pa.repeat(_EMPTY, rows.count) if texts is None else texts.fill_null(_EMPTY)
    body = _merged(texts, octets, is_bytes)
    lengths = pc.fill_null(pc.binary_length(body), 0)
    if not is_bytes.all():
        lengths = pc.if_else(pa.array(is_bytes), lengths, None)
    return header_line("content-length", lengths.cast(pa.string()).view(pa.binary())), body.fill_null(_EMPTY)


def _merged(texts: pa.Array | None, octets: pa.Array | None, is_bytes: Mask) -> pa.Array:
    if octets is not None and is_bytes.all():
        return octets
    missing = pa.nulls(len(is_bytes), pa.binary())
    return pc.if_else(pa.array(is_bytes), missing if octets is None else octets, missing if texts is None else texts)


def _check_texts(rows: Rows, texts: pa.Array, is_text: Mask) -> None:
    if is_ascii_text(texts):
        return
    if not is_text.all():
        texts = pc.if_else(pa.array(is_text), texts, pa.nulls(len(texts), pa.binary()))
    index = first_with_nul(texts)
    if index is not None:
        rows.refuse(index, "has U+0000 in its text, which ends a text frame", "Send it as bytes.")
    index = first_not_utf8(texts)
    if index is not None:
        rows.refuse(index, "has a text that is not UTF-8", "Send it as bytes.")


def _body_types(rows: Rows) -> Codes:
    """An index into ``_TYPES`` for each row: what ``body_type`` says, else the one body column that is given."""
    given = {name: mask for name in _BODY_COLUMNS if (mask := rows.given(name)) is not None}
    stated = _stated_types(rows)
    codes = np.where(stated == _UNSAID, _inferred_types(rows, given, stated == _UNSAID), stated)
    for code, body_type in enumerate(_TYPES):
        _check_stated(rows, body_type, stated == code, given)
    unsupported = (codes != _TEXT) & (codes != _BYTES) & (codes != _MESSAGE)
    if unsupported.any():
        index = int(unsupported.argmax())
        raise UnsupportedError(
            f"{rows.label(index)} has a {_TYPES[codes[index]]} body, which this release cannot write.",
            "Write it as text or bytes.",
        )
    return codes


def _stated_types(rows: Rows) -> Codes:
    column = rows.text("body_type")
    if column is None:
        return np.full(rows.count, _UNSAID)
    encoded = column.dictionary_encode()
    known = {body_type.value.encode(): code for code, body_type in enumerate(_TYPES)}
    codes = np.array([known.get(name, len(_TYPES)) for name in encoded.dictionary.to_pylist()] + [_UNSAID])
    stated: Codes = codes[encoded.indices.fill_null(len(codes) - 1).to_numpy()]
    remedy = f"It is one of {', '.join(_TYPES)}, or null to tell by the body."
    rows.refuse_any(stated == len(_TYPES), "has an unknown body_type", remedy)
    return stated


def _inferred_types(rows: Rows, given: dict[str, Mask], unsaid: Mask) -> Codes:
    codes = np.full(rows.count, _MESSAGE)
    if len(given) > 1:
        several = sum(mask.astype(np.int8) for mask in given.values()) > 1
        remedy = "Leave all but one null, or say in body_type which one to send."
        rows.refuse_any(several & unsaid, "has more than one body", remedy)
    for name, mask in given.items():
        codes[mask] = _TYPES.index(BodyType(name))
    return codes


def _check_stated(rows: Rows, body_type: BodyType, stated: Mask, given: dict[str, Mask]) -> None:
    """A body that ``body_type`` does not speak of would be lost without a word."""
    others = [mask for name, mask in given.items() if name != _COLUMN_OF.get(body_type)]
    if not others or not stated.any():
        return
    own = given.get(_COLUMN_OF.get(body_type, ""), np.zeros(rows.count, np.bool_))
    lost = stated & ~own & np.logical_or.reduce(others)
    rows.refuse_any(lost, f"says body_type {body_type}, but its body is in another column", "Correct one of the two.")
