"""A RecordBatch of the sink's rows in, whole SEND frames out, in a few blocks.

The bodies, and the header lines that they need, are made here; the other lines by ``encode_headers``. Does not know
connections, transactions and the broker's answers.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.arrays import Int64s, Mask, Piece, first_with_nul, is_ascii_text, join_rows, mask_of
from pyspark_jms.columns.elements import envelopes
from pyspark_jms.columns.row_parts import blocks_of
from pyspark_jms.columns.rows import BODY_TYPES, Codes, Rows, body_types
from pyspark_jms.columns.sink_properties import properties_of, typed_columns
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import BODY_MARKER, OCTET_STREAM, BodyType, Destination
from pyspark_jms.sentences import with_article
from pyspark_jms.stomp.columns.encode_headers import (
    check_stable,
    column_lines,
    destination_lines,
    fixed_line,
    header_line,
    header_lines,
    property_lines,
    types_line,
)
from pyspark_jms.stomp.dialects.base import Dialect

__all__ = ["encode", "receipt_of"]


def encode(
    batch: pa.RecordBatch,
    *,
    dialect: Dialect,
    destination: Destination | None,
    transaction: str | None,
    now_ms: int,
    first_row: int = 0,
    numbers: Int64s | None = None,
    max_frame_bytes: int,
    property_columns: Sequence[str] = (),
    receipts: bool = False,
) -> list[MessageBlock]:
    """One SEND frame a row, in order, each ending in its NUL; the blocks have no heads and no ids.

    A row that cannot be sent raises before anything is returned.
    ``destination`` is that of rows without one; ``first_row`` is the batch's place in the task, for the errors, or
    ``numbers`` each row's, when they do not follow each other; ``now_ms`` is what a time to live counts from;
    ``property_columns`` are sent as typed properties; with ``receipts`` each frame requests ``receipt_of`` its number.
    """
    return blocks_of(
        batch,
        lambda rows: _frames(rows, dialect, destination, transaction, now_ms, receipts=receipts),
        max_frame_bytes,
        property_columns=property_columns,
        first_row=first_row,
        numbers=numbers,
    )


def receipt_of(number: int) -> str:
    """The receipt that the SEND of a task's row requests."""
    return f"s{number}"


def _frames(
    rows: Rows,
    dialect: Dialect,
    destination: Destination | None,
    transaction: str | None,
    now_ms: int,
    *,
    receipts: bool,
) -> pa.Array:
    if dialect.unstable_characters:
        check_stable(rows)
    body_lines, body = body_of(rows, dialect)
    requested = [receipt_of(rows.first + index).encode() for index in range(rows.count)] if receipts else []
    return join_rows(
        [
            b"SEND",
            destination_lines(rows, dialect, destination),
            *(header_line("receipt", pa.array(requested)) if receipts else []),
            *body_lines,
            *header_lines(rows, dialect, transaction, now_ms),
            *_properties(rows, dialect),
            b"\n\n",
            body,
            b"\0",
        ]
    )


def _properties(rows: Rows, dialect: Dialect) -> list[Piece]:
    properties, columns = properties_of(rows), typed_columns(rows)
    lines = column_lines(rows, columns, dialect)
    if properties is not None:
        lines.append(property_lines(properties, dialect, columns))
    return lines + types_line(rows, properties, columns, dialect) if dialect.envelopes else lines


# --- bodies -----------------------------------------------------------------------------------------

_TEXT, _BYTES, _MAP, _STREAM, _OBJECT, _MESSAGE = map(BODY_TYPES.index, BodyType)
_EMPTY = pa.scalar(b"", pa.binary())
_MARKERS = [*(fixed_line(BODY_MARKER, kind) for kind in BodyType), b""]
_UNMARKED = len(BODY_TYPES)


def body_of(rows: Rows, dialect: Dialect) -> tuple[list[Piece], pa.Array]:
    """The header lines that the bodies need, as pieces, and the bodies.

    Brokers take a SEND with ``content-length`` for a BytesMessage, and one without it for a TextMessage, whose body
    ends at the first NUL. So a text with a NUL is refused: it would end its frame and begin another one.
    """
    codes = body_types(rows)
    counts = np.bincount(codes, minlength=len(BODY_TYPES))
    _check_known(rows, codes, counts, dialect)
    texts = _texts(rows, codes, counts)
    markers = _marker_line(rows, codes, dialect) if dialect.envelopes else []
    if not counts[_BYTES] and not counts[_OBJECT]:
        return markers, pa.repeat(_EMPTY, rows.count) if texts is None else texts.fill_null(_EMPTY)
    is_bytes = (codes == _BYTES) | (codes == _OBJECT)
    body = _merged(texts, rows.text("bytes"), is_bytes)
    lengths = pc.fill_null(pc.binary_length(body), 0)
    if not is_bytes.all():
        lengths = pc.if_else(pa.array(is_bytes), lengths, None)
    length_line = header_line("content-length", lengths.cast(pa.string()).view(pa.binary()))
    return length_line + markers, body.fill_null(_EMPTY)


def _merged(texts: pa.Array | None, data: pa.Array | None, is_bytes: Mask) -> pa.Array:
    if data is not None and is_bytes.all():
        return data
    missing = pa.nulls(len(is_bytes), pa.binary())
    return pc.if_else(pa.array(is_bytes), missing if data is None else data, missing if texts is None else texts)


def _marker_line(rows: Rows, codes: Codes, dialect: Dialect) -> list[Piece]:
    """The line with the body type of rows that are sent as text or bytes and are something else."""
    marked = (codes != _TEXT) & (codes != _BYTES)
    if dialect.marks_bytes:
        marked |= (codes == _BYTES) | _called_bytes(rows)
    if not marked.any():
        return []
    kinds = np.where(marked, codes, _UNMARKED)
    if (kinds == kinds[0]).all():
        return [_MARKERS[kinds[0]]]
    return [pa.array(_MARKERS, pa.binary()).take(pa.array(kinds))]


def _called_bytes(rows: Rows) -> Mask:
    """Rows whose content type makes consumers take them for bytes."""
    content_types = rows.text("content_type")
    if content_types is None:
        return np.zeros(rows.count, np.bool_)
    return mask_of(pc.equal(content_types, pa.scalar(OCTET_STREAM.encode(), pa.binary())))


def _texts(rows: Rows, codes: Codes, counts: Codes) -> pa.Array | None:
    """The bodies that are sent as text: texts and envelopes."""
    texts = rows.text("text")
    if texts is not None:
        _check_texts(rows, texts, codes == _TEXT)
    if counts[_MAP]:
        texts = _placed(envelopes(rows.only(codes == _MAP), "map"), codes == _MAP, texts)
    if counts[_STREAM]:
        texts = _placed(envelopes(rows.only(codes == _STREAM), "stream"), codes == _STREAM, texts)
    return texts


def _placed(found: pa.Array, mask: Mask, others: pa.Array | None) -> pa.Array:
    """``found`` in the places of ``mask``, ``others`` in the rest."""
    if mask.all():
        return found
    spread = found.take(pa.array(np.cumsum(mask) - 1, mask=~mask))
    return spread if others is None else pc.if_else(pa.array(mask), spread, others)


def _check_texts(rows: Rows, texts: pa.Array, is_text: Mask) -> None:
    if is_ascii_text(texts):
        return
    if not is_text.all():
        texts = pc.if_else(pa.array(is_text), texts, pa.nulls(len(texts), pa.binary()))
    index = first_with_nul(texts)
    if index is not None:
        rows.refuse(index, "has U+0000 in its text, which ends a text frame", "Send it as bytes.")
    rows.require_utf8(texts, "a text", "Send it as bytes.")


def _check_known(rows: Rows, codes: Codes, counts: Codes, dialect: Dialect) -> None:
    if dialect.envelopes or counts[_TEXT] + counts[_BYTES] + counts[_MESSAGE] == len(codes):
        return
    index = int(np.isin(codes, (_MAP, _STREAM, _OBJECT)).argmax())
    kind = with_article(BODY_TYPES[codes[index]])
    raise UnsupportedError(
        f"{rows.label(index)} has {kind} body, which this release cannot write to this broker.",
        "Write it as text or bytes.",
    )
