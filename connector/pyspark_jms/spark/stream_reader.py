"""``DataSourceStreamReader``: Spark's calls on the driver → the receiver; partitions on executors → rows.

One object, two lives: in the streaming runner it owns the receiver; the copy that executors get knows only
the options and decodes what comes in the partition.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from pyspark_jms.blocks.shared_memory import MappedPiece, SharedMemory
from pyspark_jms.delivery.journal.binding import JournalMark, require_own_messages, require_same_journal
from pyspark_jms.delivery.journal.store import JournalStore
from pyspark_jms.delivery.journaled_ledger import Stored, partitions_of
from pyspark_jms.delivery.span import Span
from pyspark_jms.errors import CorruptJournalError, DataLossError, JournalError, UnsupportedError
from pyspark_jms.options.parsing import SourceOptions
from pyspark_jms.source.commit_order import CommitOrder
from pyspark_jms.source.driver_heap import driver_heap, warn_of_small_heap
from pyspark_jms.source.frames import Piece, StoredPiece, dropped_of, fitting, may_drop, piece_of, rows_of
from pyspark_jms.source.locality import Card, Neighbourhood, answer
from pyspark_jms.source.offsets import mark_of, offset, selector_of, sequence
from pyspark_jms.source.receiver import Receiver
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.stomp.dialects import dialect_named
from pyspark_jms.stomp.recognition import recognition_of, source_name

__all__ = ["JmsStreamReader"]

_log = logging.getLogger("pyspark_jms.source")

_NEARLY_FULL = 16
"""A task with less room than this part of it is not filled up with the beginning of what another decodes in one go."""


_AnyPiece: TypeAlias = Piece | StoredPiece | MappedPiece


@dataclass(repr=False)
class _FramePartition(InputPartition):
    pieces: list[_AnyPiece]
    card: Card | None = None

    def __repr__(self) -> str:
        return f"JMS frames, {sum(map(len, self.pieces))} messages"


class JmsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """At least once: a message is acknowledged when Spark's log holds its batch, and not before."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._stop_request = StopRequest()
        self._receiver: Receiver | None = None
        self._draining = False
        self._is_new = False
        """Whether the checkpoint is new: then a broker that does not answer is more likely a wrong address."""
        self._order = CommitOrder()
        self._neighbours = Neighbourhood()
        self._memory = SharedMemory()

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options}

    # --- in the runner -------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, int]:
        """Of a new checkpoint: with a journal, the oldest message that is not done."""
        self._is_new = True
        journal = self._engine().journal()
        return offset(journal.position.oldest if journal else 0)

    def getDefaultReadLimit(self) -> ReadLimit:
        # Ours, both of them, are applied in any case; Spark knows no limit that has two.
        return ReadMaxBytes(self._options.max_bytes)

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
        receiver = self._open(start)
        self._settle_up_to(receiver, sequence(start))
        end = receiver.admit()
        return self._offset(end) if end > sequence(start) else start

    def _offset(self, end: int) -> dict[str, Any]:
        receiver = self._engine()
        journal = receiver.journal()
        mark = None if journal is None else JournalMark(journal.meta.id, journal.position.next)
        return offset(end, receiver.made_with, mark)

    def reportLatestOffset(self) -> dict[str, Any]:
        """The figures of ``progress.sources[].latestOffset``."""
        return self._receiver.progress() if self._receiver and self._receiver.opened else {}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The batch in portions of ``partitionBytes``; with a journal, in those that were recorded."""
        first, last = sequence(start), sequence(end)
        if not self._engine().opened:
            self._is_new = False  # Spark repeats a batch before it asks for the next: its first one did not end
        if first == last:
            return []
        journal = self._journal(start, end)
        if journal is not None:
            self._order.require(first)
        here = self._neighbours.look()
        read = self._recorded(journal, first, last, here=here) if journal else self._received(first, last, here=here)
        card = self._neighbours.card()
        return [_FramePartition(pieces, card) for pieces in read]

    def _received(self, first: int, last: int, *, here: bool) -> Iterator[list[_AnyPiece]]:
        """None for a batch that another process received: its messages were not acknowledged and come again."""
        batch = self._engine().batch(first, last)
        if batch is None:
            _log.warning("! batch [%d, %d) was received by an earlier process: read empty here", first, last)
            return iter(())
        return self._portions(batch.start, batch.spans, mapped=here and self._memory.begin(last))

    def _recorded(self, journal: JournalStore, first: int, last: int, *, here: bool) -> Iterator[list[_AnyPiece]]:
        assert self._options.journal is not None
        must_be_whole = self._options.fail_on_data_loss
        partitions = partitions_of(journal, first, last, after_loss=not must_be_whole)
        if partitions is None:
            if must_be_whole:
                raise DataLossError(
                    f"Spark's checkpoint asks for the batch [{first}, {last}), which the journal does not hold.",
                    "Give the journalLocation of this checkpoint. With failOnDataLoss=false it is read empty.",
                )
            return
        seen = here or self._options.journal.shared
        for parts in partitions:
            yield [self._recorded_piece(part, seen=seen) for part in parts]

    def _recorded_piece(self, part: Stored, *, seen: bool) -> Piece | StoredPiece:
        """The messages, or where tasks that see the journal find them."""
        stored = StoredPiece.of(part)
        if seen and not may_drop(part.info.source, part.info.dialect, self._options):
            return stored
        piece = stored.read()
        self._engine().note_dropped(dropped_of(piece, self._options))
        return stored if seen else piece

    def _portions(self, first: int, spans: tuple[Span, ...], *, mapped: bool) -> Iterator[list[_AnyPiece]]:
        assert self._receiver is not None
        put = self._memory.put if mapped else piece_of
        pieces: list[_AnyPiece] = []
        room = self._options.partition_bytes
        for whole in spans:
            rest = whole
            while len(rest):
                fits = fitting(rest, room, at_least_one=not pieces)
                if fits:
                    taken, rest = rest.cut(fits)
                    piece = put(taken, first, *self._receiver.lane(taken.lane))
                    self._note_dropped(piece)
                    pieces.append(piece)
                    first += fits
                    room -= taken.octets
                if len(rest) or room < self._options.partition_bytes // _NEARLY_FULL:
                    yield pieces
                    pieces, room = [], self._options.partition_bytes
        if pieces:
            yield pieces

    def _note_dropped(self, piece: Piece | MappedPiece) -> None:
        assert self._receiver is not None
        if may_drop(piece.source, piece.dialect, self._options):  # else nothing need be mapped here
            self._receiver.note_dropped(dropped_of(piece.read(), self._options))

    def _settle_up_to(self, receiver: Receiver, start: int) -> None:
        """Spark asks for what follows ``start``. A journal keeps the first batch until its commit is certain."""
        self._order.asked(start)
        receiver.reached = start
        sure = self._options.journal is None or self._draining or self._order.synchronous
        if sure or self._order.is_first(start) or receiver.journal_is_full:
            self._settle(receiver, start)

    def _settle(self, receiver: Receiver, sequence: int) -> None:
        receiver.settle(sequence)
        self._memory.release(sequence)

    def commit(self, end: dict[str, Any]) -> None:
        """``end`` is in Spark's commit log. Never called for the last batch of a run."""
        self._order.committed(sequence(end))
        if self._receiver is not None and self._receiver.opened:
            self._settle(self._receiver, sequence(end))

    def stop(self) -> None:
        """Give back what is not acknowledged, and leave."""
        if self._receiver is not None:
            receiver, self._receiver = self._receiver, None
            receiver.close()
        self._memory.close()
        self._neighbours.close()

    def _engine(self) -> Receiver:
        if self._receiver is None:
            self._stop_request.install()
            journal = self._options.journal
            if journal is None or not journal.shared:  # else messages do not pass the driver's Java virtual machine
                warn_of_small_heap(self._options.connection.max_message_bytes, driver_heap())
            self._receiver = Receiver(self._options, self._stop_request)
        return self._receiver

    def _journal(self, *offsets: dict[str, Any]) -> JournalStore | None:
        """The journal, if the query has one and these offsets of the checkpoint belong to it."""
        journal, must_be_whole = self._engine().journal(), self._options.fail_on_data_loss
        marks = list(map(mark_of, offsets))
        if journal is not None and not any(marks):
            require_own_messages(journal, self._reads)
        for mark in marks:
            if journal is not None:
                require_same_journal(journal, mark, fail_on_data_loss=must_be_whole)
            elif mark is not None and must_be_whole:
                raise DataLossError(
                    f"The checkpoint was written with journal {mark.id}, and this query has no journalLocation.",
                    "Give the journalLocation that belongs to the checkpoint. With failOnDataLoss=false the query"
                    " continues without a journal: messages that only the journal holds are then lost.",
                )
        return journal

    def _reads(self, source: str, dialect: str) -> bool:
        origin, durable = recognition_of(dialect_named(dialect)).origin, self._options.durable
        return origin(source) in {origin(source_name(each, durable)) for each in self._options.destinations}

    def _open(self, start: dict[str, Any]) -> Receiver:
        receiver = self._engine()
        if not receiver.opened:
            self._journal(start)
            if self._draining:
                receiver.drain()
            receiver.open(sequence(start), selector_of(start), restarted=not self._is_new)
        return receiver

    # --- on an executor ------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Decode: one RecordBatch a piece."""
        assert isinstance(partition, _FramePartition)
        if partition.card is not None:
            answer(partition.card)
        for piece in partition.pieces:
            yield rows_of(_in_a_task(piece), self._options)


def _in_a_task(piece: _AnyPiece) -> Piece:
    """A task that cannot read the journal is told what it says of the task's place, and not of the folder."""
    try:
        return piece.read()
    except CorruptJournalError:
        raise
    except JournalError as error:
        raise JournalError(
            error.fact,
            "This task does not see the folder of journalLocation: leave out journalShared, and the messages travel to"
            " it. If every executor sees the folder, the batch is done already: a DataFrame of foreachBatch can be read"
            " until the function returns.",
        ) from None
