"""A block of whole MESSAGE frames → one RecordBatch of the schema.

Each step works on all frames at once: only messages and headers with faults are handled one by one.
Does not know sockets and Spark.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import assert_never

import numpy as np
import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.arrays import require_offsets
from pyspark_jms.columns.schema import ARROW_SCHEMA, BODY_COLUMNS, PROPERTY_MAPS, WantedColumns
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import BodyChoice
from pyspark_jms.sentences import joined_faults
from pyspark_jms.stomp.columns.bodies import BodyTypes, detect_body_types, force_body_type, lost_bodies, read_bodies
from pyspark_jms.stomp.columns.frames import FrameBounds, with_few_headers
from pyspark_jms.stomp.columns.headers import Headers, HeaderTexts, layout_of
from pyspark_jms.stomp.columns.lines import Fault, Lines, NotPlainError, split_lines, wanted_lines
from pyspark_jms.stomp.dialects.base import Dialect

__all__ = ["decode"]

_ROW_PREFIX = len("queue://") + len("/")
"""The most that JMSDestination, JMSReplyTo and delivery_id add to a name, in bytes."""


def decode(
    block: MessageBlock,
    *,
    dialect: Dialect,
    source: Destination,
    first_sequence: int,
    body_type: BodyChoice,
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
    frames, too_many = with_few_headers(frames, dialect)
    require_offsets(frames.raw.size + rows * (len(source.name.encode()) + _ROW_PREFIX))
    read = _FrameReader(frames, too_many, dialect, source, first_sequence, body_type, wanted)
    few = None if wanted is None else _few_lines(frames, dialect, wanted)
    if few is not None:
        try:
            return read.batch(few)
        except NotPlainError:
            pass
    return read.batch(split_lines(frames))


@dataclass(frozen=True, slots=True)
class _FrameReader:
    frames: FrameBounds
    too_many: dict[int, str]
    dialect: Dialect
    source: Destination
    first_sequence: int
    body_type: BodyChoice
    wanted: WantedColumns | None

    def batch(self, lines: Lines) -> pa.RecordBatch:
        frames, wanted, rows = self.frames, self.wanted, len(self.frames)
        schema = ARROW_SCHEMA if wanted is None else wanted.schema
        names = frozenset(schema.names)
        properties = None if wanted is None or "properties" in wanted.fixed else wanted.properties
        texts = HeaderTexts(lines, layout_of(lines, self.dialect, properties))
        types = _body_types(texts, self.dialect, self.body_type)
        headers = Headers(texts, self.dialect, types.unread_markers)
        columns, faults = headers.columns(names), headers.faults
        columns |= headers.property_columns(() if wanted is None else wanted.properties)
        if names & BODY_COLUMNS:
            lost = lost_bodies(texts, self.dialect, frames.body_ends - frames.body_starts)
            unread = types.unread | lost | self.too_many
            bodies = read_bodies(frames, types.codes, unread, types.transformed, wanted=names)
            columns, faults = columns | bodies.columns, faults + bodies.faults
        made: dict[str, Callable[[], pa.Array]] = {
            "sequence": lambda: pa.array(np.arange(rows) + self.first_sequence, pa.int64()),
            "JMSDestination": lambda: headers.read_from(self.source),
            "body_error": lambda: _reasons(faults, rows),
            "delivery_id": lambda: headers.delivery_id(self.source),
        }
        return _batch(columns | {name: make() for name, make in made.items() if name in names}, schema, rows)


_BODY_ROLES = frozenset(
    {"@body", "@content-length", "@message-type", "@stored-size", "@transformation", "content_type"}
)
"""The headers that decide about the type of a body, in any dialect."""
_NEEDS_ALL_LINES = PROPERTY_MAPS | {"body_error", "bytes"}


def _few_lines(frames: FrameBounds, dialect: Dialect, wanted: WantedColumns) -> Lines | None:
    """The lines that decide about the wanted columns, if these are few and the frames have one layout; else None."""
    if _NEEDS_ALL_LINES & wanted.fixed:
        return None
    roles = set(wanted.fixed)
    if BODY_COLUMNS & wanted.fixed:
        roles |= _BODY_ROLES
    if wanted.fixed & {"JMSMessageID", "delivery_id"}:
        roles.add("@message-id")
    if "JMSDestination" in wanted.fixed:
        roles.add("@destination")
    if wanted.properties:
        roles.add("@types")
    names = {name for name, role in dialect.message_headers.items() if role in roles}
    renamed = {name for name, shown in dialect.property_names.items() if shown in wanted.properties}
    return wanted_lines(frames, names.union(wanted.properties, renamed))


def _batch(columns: dict[str, pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """Make the batch. Without messages of a kind, its column is null."""
    every = [columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(every, schema=schema)


def _body_types(headers: HeaderTexts, dialect: Dialect, body_type: BodyChoice) -> BodyTypes:
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
