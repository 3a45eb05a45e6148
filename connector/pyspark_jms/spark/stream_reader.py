"""``DataSourceStreamReader``: Spark's calls on the driver → the receiver; partitions on executors → rows.

One object, two lives: in the streaming runner it owns the receiver; the copy that executors get knows only
the options and decodes what comes in the partition.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.journal.ledger import Span
from pyspark_jms.options import SourceOptions
from pyspark_jms.spark.frames import Piece, dropped_of, piece_of, rows_of
from pyspark_jms.spark.offsets import offset, sequence
from pyspark_jms.spark.receiver import Receiver
from pyspark_jms.spark.stopping import StopRequest

__all__ = ["JmsStreamReader"]

_log = logging.getLogger("pyspark_jms.source")


@dataclass(repr=False)
class _FramePartition(InputPartition):
    pieces: list[Piece]

    def __repr__(self) -> str:
        return f"JMS frames, {sum(len(piece.octets) for piece in self.pieces)} octets"


class JmsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """At least once: a message is acknowledged when Spark's log holds its batch, and not before."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._stop_request = StopRequest()
        self._receiver: Receiver | None = None
        self._draining = False

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options}

    # --- in the runner -------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, int]:
        return offset(0)

    def getDefaultReadLimit(self) -> ReadLimit:
        # Ours, both of them, are applied in any case; Spark knows no limit that has two.
        return ReadMaxBytes(self._options.max_octets)

    def prepareForTriggerAvailableNow(self) -> None:
        self._draining = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """What is in Spark's commit log up to ``start`` is acknowledged, then the next batch is cut.

        Spark asks for what follows ``start`` only when the batch that ends there is in its commit log.
        """
        if isinstance(limit, ReadAllAvailable):
            raise UnsupportedError(
                "Trigger.Once never says when its batch is done, so nothing could ever be acknowledged.",
                "Use trigger(availableNow=True).",
            )
        receiver = self._open(sequence(start))
        receiver.settle(sequence(start))
        end = receiver.admit()
        return offset(end) if end > sequence(start) else start

    def reportLatestOffset(self) -> dict[str, Any]:
        """The figures of ``progress.sources[].latestOffset``."""
        return self._receiver.progress() if self._receiver else {}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The batch in portions of ``partitionBytes``; none for a batch that another process received.

        Of such a batch nothing was acknowledged: its messages come again in later ones.
        """
        first, last = sequence(start), sequence(end)
        batch = self._receiver.batch(first, last) if self._receiver and first < last else None
        if batch is None:
            if first < last:
                _log.warning("! batch [%d, %d) was received by an earlier process: read empty here", first, last)
            return []
        return list(self._portions(batch.start, batch.spans))

    def _portions(self, first: int, spans: tuple[Span, ...]) -> Iterator[InputPartition]:
        assert self._receiver is not None
        pieces: list[Piece] = []
        room = self._options.partition_octets
        for whole in spans:
            rest = whole
            while len(rest):
                fits = _fitting(rest, room, at_least_one=not pieces)
                if fits:
                    taken, rest = rest.cut(fits)
                    pieces.append(piece_of(taken, first, *self._receiver.lane(taken.lane)))
                    self._receiver.note_dropped(dropped_of(pieces[-1], self._options))
                    first += fits
                    room -= taken.octets
                if len(rest):
                    yield _FramePartition(pieces)
                    pieces, room = [], self._options.partition_octets
        if pieces:
            yield _FramePartition(pieces)

    def commit(self, end: dict[str, Any]) -> None:
        if self._receiver is not None:
            self._receiver.settle(sequence(end))

    def stop(self) -> None:
        """Give back what is not acknowledged, and leave."""
        if self._receiver is not None:
            receiver, self._receiver = self._receiver, None
            receiver.close()

    def _open(self, start: int) -> Receiver:
        if self._receiver is None:
            self._stop_request.install()
            receiver = Receiver(self._options, self._stop_request)
            self._receiver = receiver
            if self._draining:
                receiver.drain()
            receiver.open(start)
        return self._receiver

    # --- on an executor ------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Decode: one RecordBatch a piece."""
        assert isinstance(partition, _FramePartition)
        for piece in partition.pieces:
            yield rows_of(piece, self._options)


def _fitting(span: Span, room: int, *, at_least_one: bool) -> int:
    """How many of the span's messages fit into so many octets."""
    ends = np.frombuffer(span.run.ends, np.int64)[span.first : span.last]
    fits = int(np.searchsorted(ends, span.begin + room, side="right"))
    return max(1, fits) if at_least_one else fits
