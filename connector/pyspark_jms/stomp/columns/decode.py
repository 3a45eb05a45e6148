"""A block of whole MESSAGE frames → one RecordBatch of the schema.

Each step works on all frames at once: only messages and headers with faults are handled one by one.
Does not know sockets and Spark.
"""

from collections.abc import Callable
from itertools import groupby
from typing import Literal, TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.read_columns import WantedColumns
from pyspark_jms.columns.schema import ARROW_SCHEMA, BODY_COLUMNS
from pyspark_jms.columns.strings import require_offsets
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import MAX_ELEMENTS
from pyspark_jms.sentences import joined_faults
from pyspark_jms.stomp.columns.bodies import BodyTypes, detect_body_types, force_body_type, lost_bodies, read_bodies
from pyspark_jms.stomp.columns.frames import FrameBounds, with_few_headers
from pyspark_jms.stomp.columns.headers import Headers
from pyspark_jms.stomp.columns.layout import HeaderTexts, layout_of
from pyspark_jms.stomp.columns.lines import Fault, split_lines
from pyspark_jms.stomp.dialects.base import Dialect

__all__ = ["BodyTypeOption", "decode"]

BodyTypeOption: TypeAlias = Literal["auto", "text", "bytes"]

_ROW_PREFIX = len("queue://") + len("/")
"""The most that JMSDestination, JMSReplyTo and delivery_id add to a name, in bytes."""


def decode(
    block: MessageBlock,
    *,
    dialect: Dialect,
    source: Destination,
    first_sequence: int,
    body_type: BodyTypeOption,
    max_elements: int = MAX_ELEMENTS,
    wanted: WantedColumns | None = None,
) -> pa.RecordBatch:
    """Decode the MESSAGE frames of a block, which is as ``FrameScanner`` makes it.

    An index that the bytes do not bear out is an ``IllegalStateError``.
    A message that cannot be read becomes a row whose ``body_error`` states the reason; none raises.
    ``wanted``: the columns of the rows, instead of all.
    """
    schema = ARROW_SCHEMA if wanted is None else wanted.schema
    frames = FrameBounds.of(block)
    rows = len(frames)
    if not rows:
        return pa.RecordBatch.from_pylist([], schema=schema)
    frames, too_many = with_few_headers(frames, dialect, max_elements)
    require_offsets(frames.raw.size + rows * (len(source.name.encode()) + _ROW_PREFIX))
    names = frozenset(schema.names)
    texts = _header_texts(frames, dialect, wanted)
    types = _body_types(texts, dialect, body_type)
    headers = Headers(texts, dialect, types.unread_markers, max_elements)
    columns, faults = headers.columns(names), headers.faults
    columns |= headers.property_columns(() if wanted is None else wanted.properties)
    if names & BODY_COLUMNS:
        unread = types.unread | lost_bodies(texts, dialect, frames.body_ends - frames.body_starts)
        bodies = read_bodies(frames, types.codes, unread | too_many, types.transformed, max_elements, wanted=names)
        columns, faults = columns | bodies.columns, faults + bodies.faults
    made: dict[str, Callable[[], pa.Array]] = {
        "sequence": lambda: _numbered(first_sequence, rows),
        "JMSDestination": lambda: headers.read_from(source),
        "body_error": lambda: _reasons(faults, rows),
        "delivery_id": lambda: headers.delivery_id(source),
    }
    return _batch(columns | {name: make() for name, make in made.items() if name in names}, schema, rows)


def _numbered(first: int, rows: int) -> pa.Array:
    return pa.array(np.arange(first, first + rows, dtype=np.int64))


def _batch(columns: dict[str, pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """Without messages of a kind, its column is null."""
    every = [columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(every, schema=schema)


def _header_texts(frames: FrameBounds, dialect: Dialect, wanted: WantedColumns | None) -> HeaderTexts:
    """The headers, with a layout of the wanted properties only."""
    lines = split_lines(frames)
    properties = None if wanted is None or "properties" in wanted.fixed else wanted.properties
    return HeaderTexts(lines, layout_of(lines, dialect, properties))


def _body_types(headers: HeaderTexts, dialect: Dialect, body_type: BodyTypeOption) -> BodyTypes:
    match body_type:
        case "auto":
            return detect_body_types(headers, dialect)
        case "text" | "bytes":
            return force_body_type(headers, body_type)
        case _:
            assert_never(body_type)


def _reasons(faults: list[Fault], rows: int) -> pa.Array:
    """``body_error``: the faults of a message, in the order of its bytes."""
    if not faults:
        return pa.nulls(rows, pa.string())
    texts: list[str | None] = [None] * rows
    ordered = sorted(faults, key=lambda fault: (fault.row, fault.place))
    for row, of_row in groupby(ordered, key=lambda fault: fault.row):
        reasons = [fault.reason for fault in of_row]
        texts[row] = joined_faults(reasons)
    return pa.array(texts, pa.string())
