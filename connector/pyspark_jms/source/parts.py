"""Frames on their way to a task, and there to rows: what the stream's partitions carry and a batch read decodes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyspark_jms.columns.selection import Selection, selection
from pyspark_jms.delivery.journal.store import read_stretch
from pyspark_jms.delivery.journaled_ledger import Stored
from pyspark_jms.delivery.span import Span
from pyspark_jms.errors import BadMessageError
from pyspark_jms.jms.model import Destination
from pyspark_jms.options.parsing import SourceOptions
from pyspark_jms.source.gc_freeze import freeze_gc
from pyspark_jms.source.links import SourceProtocol
from pyspark_jms.stomp.wire.scan import FrameRun

__all__ = ["Piece", "StoredPiece", "bytes_of", "fitting", "index_of", "may_drop", "piece_of", "rows_of"]


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


def piece_of(span: Span, first_sequence: int, source: Destination, dialect: str) -> Piece:
    heads, ends = index_of(span)
    octets = bytes(bytes_of(span))
    return Piece(str(source), dialect, first_sequence, octets, bytes(heads), bytes(ends))


def rows_of(piece: Piece, options: SourceOptions, protocol: SourceProtocol) -> tuple[Any, int]:
    """One RecordBatch, and how many messages the selector dropped.

    With ``onBadMessage=fail`` a ``BadMessageError`` instead of a row with ``body_error``.
    """
    freeze_gc()
    source = Destination.parse(piece.source)
    batch = protocol.decode(
        piece.octets,
        piece.heads,
        piece.ends,
        dialect=piece.dialect,
        source=source,
        first_sequence=piece.first_sequence,
        body_type=options.body_type,
    )
    if options.on_bad_message == "fail":
        _require_good(batch)
    chosen = _selection(options, protocol, piece.dialect)
    if chosen is None:
        return batch, 0
    kept = chosen.apply(batch, source.kind)
    return kept, batch.num_rows - kept.num_rows


def may_drop(source: Destination, dialect: str, options: SourceOptions, protocol: SourceProtocol) -> bool:
    """Whether messages from there may become no row."""
    chosen = _selection(options, protocol, dialect)
    return chosen is not None and chosen.may_drop(source.kind)


def _selection(options: SourceOptions, protocol: SourceProtocol, dialect: str) -> Selection | None:
    if options.selector is None:
        return None
    return selection(options.selector, dialect, protocol.selector_dialect(dialect))


def _require_good(batch: Any) -> None:
    reasons = batch.column("body_error").drop_null()
    if len(reasons):
        raise BadMessageError(
            f"{len(reasons)} of {batch.num_rows} messages cannot be mapped, the first because: {reasons[0].as_py()}",
            "They stay on the broker, or in the journal. onBadMessage=keep makes rows with body_error and the bytes.",
        )
