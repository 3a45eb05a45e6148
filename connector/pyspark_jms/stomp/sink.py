"""STOMP for the sink's engine: the Protocols of ``sink.links``, implemented with ``link`` and ``columns``.

The one place of the STOMP sink that knows both. Decides nothing: which task sends what is the engine's business.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.ragged import Int64s
from pyspark_jms.columns.send_defaults import SendDefaults
from pyspark_jms.delivery.commit_entry import LedgerEntry
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.columns.digest import RowsDigest, counts_from_now
from pyspark_jms.stomp.columns.encode import encode, receipt_of
from pyspark_jms.stomp.dialects.refusals import require_duplicate_detection, require_transactions
from pyspark_jms.stomp.link.commit_ledger import delete_entries, find_entries, find_late_entries
from pyspark_jms.stomp.link.ledger_entries import (
    before_batch_selector,
    before_time_selector,
    encode_entry,
    encode_trial,
    lock_queue,
    task_selector,
    write_selector,
)
from pyspark_jms.stomp.link.producer import Producer

__all__ = ["STOMP_SINK", "StompCommitLedger", "StompLedgerLink", "StompSink", "StompSinkLink"]


class StompSinkLink:
    """A ``sink.links.SinkLink``: encoded SEND frames are its blocks."""

    def __init__(self, settings: ConnectionSettings, *, patience: float = 0.0) -> None:
        self._producer = Producer(settings, patience=patience)
        self._max_frame_bytes = settings.max_message_bytes

    @property
    def confirms_single_messages(self) -> bool:
        return self._producer.dialect.send_receipts

    def require_transactions(self) -> None:
        require_transactions(self._producer.dialect)

    def encode(
        self,
        rows: pa.RecordBatch,
        *,
        defaults: SendDefaults,
        property_columns: Sequence[str],
        now_ms: int,
        first_row: int = 0,
        numbers: Int64s | None = None,
        in_transaction: bool = True,
        confirm_each: bool = False,
    ) -> Sequence[MessageBlock]:
        """The transaction and the receipt are headers of each frame, so they are decided here."""
        return encode(
            rows,
            dialect=self._producer.dialect,
            defaults=defaults,
            transaction=Producer.transaction if in_transaction else None,
            now_ms=now_ms,
            first_row=first_row,
            numbers=numbers,
            max_frame_bytes=self._max_frame_bytes,
            property_columns=property_columns,
            receipts=confirm_each,
        )

    def send(self, block: MessageBlock) -> None:
        self._producer.send(block.data)

    def send_at_once(self, block: MessageBlock) -> None:
        self._producer.send_at_once(block.data)

    def await_each(self, first_row: int, count: int) -> None:
        self._producer.await_each(receipt_of(row) for row in range(first_row, first_row + count))

    def commit(self) -> None:
        self._producer.commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._producer.__exit__(kind, error, traceback)


class StompLedgerLink(StompSinkLink):
    """A ``sink.links.LedgerLink``: an entry travels with the COMMIT of its rows."""

    def __init__(self, settings: ConnectionSettings, queue: str, *, patience: float = 0.0) -> None:
        super().__init__(settings, patience=patience)
        self._queue = queue

    def new_digest(self) -> RowsDigest:
        return RowsDigest()

    def counts_from_now(self, schema: pa.Schema, defaults: SendDefaults) -> bool:
        return counts_from_now(schema, self._producer.dialect, defaults)

    def commit_with_entry(self, entry: LedgerEntry, *, again: bool, admit: object = None) -> None:  # noqa: ARG002
        """The broker admits an entry that it does not remember."""
        dialect, transaction = self._producer.dialect, self._producer.transaction
        last = encode_entry(entry, queue=self._queue, dialect=dialect, transaction=transaction, again=again)
        trial = encode_trial(queue=self._queue, dialect=dialect, transaction=self._producer.trial)
        self._producer.try_commit(last, trial)

    def __enter__(self) -> Self:
        try:
            require_duplicate_detection(self._producer.dialect)
        except UnsupportedError:
            self.__exit__(None, None, None)
            raise
        return self


@dataclass(frozen=True, slots=True)
class StompCommitLedger:
    """A ``sink.links.CommitLedger``: a queue of the broker, and another one for the lock of its look-ups."""

    settings: ConnectionSettings
    queue: str

    @property
    def requirements(self) -> str:
        return (
            f"Queue {self.queue} needs the permissions send and consume, and must exist or be created automatically,"
            f" and so does queue {lock_queue(self.queue)}."
        )

    def connect(self, *, patience: float = 0.0) -> StompLedgerLink:
        return StompLedgerLink(self.settings, self.queue, patience=patience)

    def find_for_task(self, task: str, *, write: str, execution: str) -> tuple[LedgerEntry, ...]:
        earlier = write_selector(write, except_execution=execution)
        return find_entries(self.settings, self.queue, f"({task_selector(task)} OR {earlier})")

    def find_for_write(self, write: str) -> tuple[LedgerEntry, ...]:
        return find_entries(self.settings, self.queue, write_selector(write))

    def find_late(self, task: str, *, may_arrive: bool) -> tuple[LedgerEntry, ...]:
        return find_late_entries(self.settings, self.queue, task_selector(task), may_arrive=may_arrive)

    def establish(self) -> None:
        """An entry that is missing was never there."""

    def finish(self, write: str) -> None:
        """Every entry stays until it is deleted."""

    def delete_before_batch(self, batch: int) -> int:
        return delete_entries(self.settings, self.queue, before_batch_selector(batch, now_ms=_now_ms()))

    def delete_before_time(self, oldest_ms: int) -> int:
        return delete_entries(self.settings, self.queue, before_time_selector(oldest_ms, now_ms=_now_ms()))


def _now_ms() -> int:
    return int(time.time() * 1000)


@dataclass(frozen=True, slots=True)
class StompSink:
    """A ``sink.links.SinkProtocol``."""

    name: str = "STOMP"

    def connect(self, settings: ConnectionSettings, *, patience: float = 0.0) -> StompSinkLink:
        return StompSinkLink(settings, patience=patience)

    def commit_ledger(
        self,
        settings: ConnectionSettings,
        queue: str,
        *,
        keep_ms: int | None = None,  # noqa: ARG002  # ``delete_before_time``
    ) -> StompCommitLedger:
        return StompCommitLedger(settings, queue)


STOMP_SINK = StompSink()
