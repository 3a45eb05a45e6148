"""A block of whole MESSAGE frames → one RecordBatch of the schema.

One pass over all frames at once: nothing loops over messages or headers, save over those that are at fault.
Knows the stations of that way; no socket, no Spark.
"""

from itertools import groupby
from typing import Literal, TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.cut import Ints, require_offsets
from pyspark_jms.columns.schema import ARROW_SCHEMA, BODY_TYPES
from pyspark_jms.jms.model import Destination
from pyspark_jms.stomp.columns.bodies import read_bodies
from pyspark_jms.stomp.columns.frames import FrameBounds
from pyspark_jms.stomp.columns.headers import Headers
from pyspark_jms.stomp.columns.layout import layout_of
from pyspark_jms.stomp.columns.lines import FAULTS_TOLD, Fault, split_lines
from pyspark_jms.stomp.dialects.base import Dialect

__all__ = ["BodyTypeOption", "decode"]

BodyTypeOption: TypeAlias = Literal["auto", "text", "bytes"]

_ROW_PREFIX = len("queue://") + len("/")
"""What JMSDestination, JMSReplyTo and delivery_id add, at most, to a name."""


def decode(
    block: MessageBlock,
    *,
    dialect: Dialect,
    source: Destination,
    first_sequence: int,
    body_type: BodyTypeOption,
) -> pa.RecordBatch:
    """Decode the MESSAGE frames of a block, which is as ``FrameScanner`` makes it.

    An index that the bytes do not bear out is an ``IllegalStateError``.
    A message that cannot be read becomes a row whose ``body_error`` says why; none raises.
    """
    frames = FrameBounds.of(block)
    rows = len(frames)
    if not rows:
        return pa.RecordBatch.from_pylist([], schema=ARROW_SCHEMA)
    require_offsets(frames.raw.size + rows * (len(source.name.encode()) + _ROW_PREFIX))
    lines = split_lines(frames)
    headers = Headers(lines, layout_of(lines, dialect), dialect)
    body_types, unread = _body_types(headers, body_type)
    unread |= headers.lost_bodies(frames.body_ends - frames.body_starts)
    bodies = read_bodies(frames, body_types, unread, headers.transformed_maps() if body_type == "auto" else None)
    columns = headers.columns() | bodies.columns
    columns |= {
        "sequence": pa.array(np.arange(first_sequence, first_sequence + rows, dtype=np.int64)),
        "JMSDestination": headers.read_from(source),
        "body_error": _reasons(headers.faults + bodies.faults, rows),
        "delivery_id": headers.delivery_id(source),
    }
    every = [columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in ARROW_SCHEMA]
    return pa.RecordBatch.from_arrays(every, schema=ARROW_SCHEMA)


def _body_types(headers: Headers, body_type: BodyTypeOption) -> tuple[Ints, dict[int, str]]:
    """The code of each frame's body type, and why a body's type cannot be told."""
    match body_type:
        case "auto":
            return headers.body_types()
        case "text" | "bytes":
            headers.leave_body_markers()
            return np.full(len(headers), BODY_TYPES.index(body_type).as_py()), {}
        case _:
            assert_never(body_type)


def _reasons(faults: list[Fault], rows: int) -> pa.Array:
    """``body_error``: what is wrong with a message, in the order of its bytes."""
    if not faults:
        return pa.nulls(rows, pa.string())
    told: list[str | None] = [None] * rows
    ordered = sorted(faults, key=lambda fault: (fault.row, fault.place))
    for row, of_row in groupby(ordered, key=lambda fault: fault.row):
        reasons = [fault.reason for fault in of_row]
        more = ["and more"] if len(reasons) > FAULTS_TOLD else []
        told[row] = "; ".join(reasons[:FAULTS_TOLD] + more)
    return pa.array(told, pa.string())
