"""``DataSourceStreamReader``: Spark's calls on the driver → the receiver; partitions on executors → rows.

One object, two lives: in the streaming runner it owns the receiver; the copy that executors get knows only
the options and decodes what comes in the partition.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from pyspark_jms.errors import DataLossError, UnsupportedError
from pyspark_jms.journal.durable import partitions_of
from pyspark_jms.journal.ledger import Span
from pyspark_jms.journal.store import JournalStore
from pyspark_jms.options import SourceOptions
from pyspark_jms.spark.frames import Piece, StoredPiece, dropped_of, fitting, piece_of, rows_of
from pyspark_jms.spark.offsets import offset, sequence
from pyspark_jms.spark.receiver import Receiver
from pyspark_jms.spark.stopping import StopRequest

__all__ = ["JmsStreamReader"]

_log = logging.getLogger("pyspark_jms.source")


@dataclass(repr=False)
class _FramePartition(InputPartition):
    pieces: list[Piece | StoredPiece]

    def __repr__(self) -> str:
        return f"JMS frames, {sum(map(len, self.pieces))} messages"


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
        """Of a new checkpoint: with a journal, the oldest message that is not done."""
        journal = self._engine().journal()
        return offset(journal.position.oldest if journal else 0)

    def getDefaultReadLimit(self) -> ReadLimit:
        # Ours, both of them, are applied in any case; Spark knows no limit that has two.
        return ReadMaxBytes(self._options.max_octets)

    def prepareForTriggerAvailableNow(self) -> None:
        self._draining = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """What is in Spark's commit log up to ``start`` is acknowledged, then the next batch is cut.

        Spark asks for what follows ``start`` only when the batch that ends there is in its commit log.
        """
        if isinstance(limit, ReadAllAvailable) and self._options.journal is None:
            raise UnsupportedError(
                "Trigger.Once never says when its batch is done: without a journal nothing could be acknowledged.",
                "Use trigger(availableNow=True), or journalLocation.",
            )
        receiver = self._open(sequence(start))
        receiver.settle(sequence(start))
        end = receiver.admit()
        return offset(end) if end > sequence(start) else start

    def reportLatestOffset(self) -> dict[str, Any]:
        """The figures of ``progress.sources[].latestOffset``."""
        return self._receiver.progress() if self._receiver and self._receiver.opened else {}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The batch in portions of ``partitionBytes``; with a journal, in those that were recorded."""
        first, last = sequence(start), sequence(end)
        if first == last:
            return []
        journal = self._engine().journal()
        return self._recorded(journal, first, last) if journal else self._received(first, last)

    def _received(self, first: int, last: int) -> list[InputPartition]:
        """None for a batch that another process received: its messages were not acknowledged and come again."""
        batch = self._engine().batch(first, last)
        if batch is None:
            _log.warning("! batch [%d, %d) was received by an earlier process: read empty here", first, last)
            return []
        return list(self._portions(batch.start, batch.spans))

    def _recorded(self, journal: JournalStore, first: int, last: int) -> list[InputPartition]:
        partitions = partitions_of(journal, first, last)
        assert self._options.journal is not None
        if partitions is None:
            if self._options.journal.fail_on_data_loss:
                raise DataLossError(
                    f"Spark's checkpoint asks for the batch [{first}, {last}), which the journal does not hold.",
                    "Give the journalLocation of this checkpoint. With failOnDataLoss=false it is read empty.",
                )
            return []
        shared = self._options.journal.shared
        return [
            _FramePartition([StoredPiece.of(part) if shared else StoredPiece.of(part).read() for part in parts])
            for parts in partitions
        ]

    def _portions(self, first: int, spans: tuple[Span, ...]) -> Iterator[InputPartition]:
        assert self._receiver is not None
        pieces: list[Piece | StoredPiece] = []
        room = self._options.partition_octets
        for whole in spans:
            rest = whole
            while len(rest):
                fits = fitting(rest, room, at_least_one=not pieces)
                if fits:
                    taken, rest = rest.cut(fits)
                    piece = piece_of(taken, first, *self._receiver.lane(taken.lane))
                    self._receiver.note_dropped(dropped_of(piece, self._options))
                    pieces.append(piece)
                    first += fits
                    room -= taken.octets
                if len(rest):
                    yield _FramePartition(pieces)
                    pieces, room = [], self._options.partition_octets
        if pieces:
            yield _FramePartition(pieces)

    def commit(self, end: dict[str, Any]) -> None:
        if self._receiver is not None and self._receiver.opened:
            self._receiver.settle(sequence(end))

    def stop(self) -> None:
        """Give back what is not acknowledged, and leave."""
        if self._receiver is not None:
            receiver, self._receiver = self._receiver, None
            receiver.close()

    def _engine(self) -> Receiver:
        if self._receiver is None:
            self._stop_request.install()
            self._receiver = Receiver(self._options, self._stop_request)
        return self._receiver

    def _open(self, start: int) -> Receiver:
        receiver = self._engine()
        if not receiver.opened:
            if self._draining:
                receiver.drain()
            receiver.open(start)
        return receiver

    # --- on an executor ------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Decode: one RecordBatch a piece."""
        assert isinstance(partition, _FramePartition)
        for piece in partition.pieces:
            yield rows_of(piece if isinstance(piece, Piece) else piece.read(), self._options)
