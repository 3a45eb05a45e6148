"""Frames on their way to a task, and there to rows: what the stream's partitions carry and a batch read decodes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyspark_jms.columns.selection import Selection, Selector, selection
from pyspark_jms.delivery.journal.store import read_stretch
from pyspark_jms.delivery.journaled_ledger import Stored
from pyspark_jms.delivery.span import Span
from pyspark_jms.errors import BadMessageError
from pyspark_jms.jms.model import Destination
from pyspark_jms.options.parsing import SourceOptions
from pyspark_jms.source.gc_freeze import freeze_gc
from pyspark_jms.stomp.dialects import Dialect, dialect_named
from pyspark_jms.stomp.wire.scan import FrameRun

__all__ = ["Piece", "StoredPiece", "bytes_of", "dropped_of", "fitting", "index_of", "may_drop", "piece_of", "rows_of"]


@dataclass(frozen=True, slots=True, repr=False)
class Piece:
    """Consecutive frames of one subscription, as they came, with their index (64-bit offsets, native order)."""

    source: str
    dialect: str
    first_sequence: int
    octets: bytes | memoryview
    heads: bytes | memoryview
    ends: bytes | memoryview

    def __len__(self) -> int:
        return len(self.ends) // 8

    def read(self) -> "Piece":
        return self


@dataclass(frozen=True, slots=True, repr=False)
class StoredPiece:
    """The same in the journal: a task that sees its folder reads it there."""

    path: str
    digest: bytes
    first: int
    last: int

    @classmethod
    def of(cls, stored: Stored) -> "StoredPiece":
        return cls(str(stored.info.path), stored.info.digest, stored.first, stored.last)

    def __len__(self) -> int:
        return self.last - self.first

    def read(self) -> Piece:
        """Map it, prove it, and take it out."""
        stretch = read_stretch(self.path, self.digest, self.first, self.last)
        return Piece(
            stretch.source,
            stretch.dialect,
            stretch.first,
            bytes(stretch.octets),
            stretch.heads.tobytes(),
            stretch.ends.tobytes(),
        )


def fitting(span: Span, room: int, *, at_least_one: bool) -> int:
    """How many of the span's messages fit into so many bytes."""
    ends = np.frombuffer(span.run.ends, np.int64)[span.first : span.last]
    fits = int(np.searchsorted(ends, span.begin + room, side="right"))
    return max(1, fits) if at_least_one else fits


def bytes_of(span: Span) -> memoryview:
    assert isinstance(span.run, FrameRun)
    return memoryview(span.run.octets)[span.begin : span.end]


def index_of(span: Span) -> tuple[memoryview, memoryview]:
    """Heads and ends of the span's frames, counted from its first byte."""
    assert isinstance(span.run, FrameRun)
    every = (np.frombuffer(index, np.int64)[span.first : span.last] for index in (span.run.heads, span.run.ends))
    heads, ends = ((index - span.begin).data.cast("B") for index in every)
    return heads, ends


def piece_of(span: Span, first_sequence: int, source: Destination, dialect: Dialect) -> Piece:
    heads, ends = index_of(span)
    octets = bytes(bytes_of(span))
    return Piece(str(source), dialect.name, first_sequence, octets, bytes(heads), bytes(ends))


def rows_of(piece: Piece, options: SourceOptions) -> Any:
    """One RecordBatch; with ``onBadMessage=fail`` a ``BadMessageError`` instead of a row with ``body_error``."""
    from pyspark_jms.stomp.columns.decode import decode  # with pyarrow's kernels, wanted where rows are made only

    freeze_gc()
    batch = decode(
        piece.octets,
        np.frombuffer(piece.heads, np.int64),
        np.frombuffer(piece.ends, np.int64),
        dialect=dialect_named(piece.dialect),
        source=Destination.parse(piece.source),
        first_sequence=piece.first_sequence,
        body_type=options.body_type,
    )
    if options.on_bad_message == "fail":
        _require_good(batch)
    if options.selector is not None:
        batch = _selection(options.selector, piece.dialect).apply(batch, Destination.parse(piece.source).kind)
    return batch


def may_drop(source: str, dialect: str, options: SourceOptions) -> bool:
    """Whether messages from there may become no row."""
    return options.selector is not None and _selection(options.selector, dialect).may_drop(
        Destination.parse(source).kind
    )


def dropped_of(piece: Piece, options: SourceOptions) -> int:
    """How many of the piece's messages become no row: known by reading them, so only asked where it can be."""
    if not may_drop(piece.source, piece.dialect, options):
        return 0
    return len(piece) - int(rows_of(piece, options).num_rows)


def _require_good(batch: Any) -> None:
    reasons = batch.column("body_error").drop_null()
    if len(reasons):
        raise BadMessageError(
            f"{len(reasons)} of {batch.num_rows} messages cannot be mapped, the first because: {reasons[0].as_py()}",
            "They stay on the broker, or in the journal. onBadMessage=keep makes rows with body_error and the bytes.",
        )


def _selection(selector: Selector, dialect: str) -> Selection:
    return selection(selector, dialect, dialect_named(dialect).selector_dialect)
