"""STOMP for the sink's engine: the Protocols of ``sink.links``, implemented with ``link`` and ``columns``.

The one place of the STOMP sink that knows both. Decides nothing: which task sends what is the engine's business.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NoReturn, Self

import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.sink_schema import SendDefaults
from pyspark_jms.columns.strings import Int64s
from pyspark_jms.delivery.ledger_owner import LedgerOwner
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.columns.encode import encode, receipt_of
from pyspark_jms.stomp.dialects.refusals import refuse_exactly_once_writes, require_transactions
from pyspark_jms.stomp.link.producer import Producer

__all__ = ["STOMP_SINK", "StompSink", "StompSinkLink"]


class StompSinkLink:
    """A ``sink.links.SinkLink``: encoded SEND frames are its blocks."""

    def __init__(self, settings: ConnectionSettings, *, patience: float = 0.0) -> None:
        self._producer = Producer(settings, patience=patience)
        self._max_frame_bytes = settings.max_message_bytes

    @property
    def confirms_single_messages(self) -> bool:
        return self._producer.dialect.send_receipts

    @property
    def has_transactions(self) -> bool:
        return self._producer.dialect.transactions

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


@dataclass(frozen=True, slots=True)
class StompSink:
    """A ``sink.links.SinkProtocol``."""

    name: str = "STOMP"

    def connect(self, settings: ConnectionSettings, *, patience: float = 0.0) -> StompSinkLink:
        return StompSinkLink(settings, patience=patience)

    def commit_ledger(self, settings: ConnectionSettings, owner: LedgerOwner) -> NoReturn:  # noqa: ARG002
        """The options of a write refuse it before."""
        refuse_exactly_once_writes()


STOMP_SINK = StompSink()
