"""STOMP for the sink's engine: a ``sink.links.SinkLink``, implemented with ``link`` and ``columns``.

The one place of the STOMP sink that knows both. Decides nothing: which task sends what is the engine's business.
"""

from collections.abc import Sequence

import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.sink_schema import SendDefaults
from pyspark_jms.columns.strings import Int64s
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.columns.encode import encode, receipt_of
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.link.producer import Producer

__all__ = ["StompSinkLink"]


class StompSinkLink:
    """A ``sink.links.SinkLink``: encoded SEND frames are its blocks."""

    def __init__(self, settings: ConnectionSettings, patience: float = 0.0) -> None:
        self._producer = Producer(settings, patience=patience)
        self._max_frame_bytes = settings.max_message_bytes
        self._receipts: list[str] = []
        """Those that encoded frames request, and that ``commit`` is to wait for."""

    @property
    def dialect(self) -> Dialect:
        return self._producer.dialect

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
        blocks = encode(
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
        if confirm_each:
            self._receipts += [receipt_of(row) for row in range(first_row, first_row + rows.num_rows)]
        return blocks

    def send(self, block: MessageBlock, *, in_transaction: bool = True) -> None:
        if in_transaction:
            self._producer.send(block.data)
        else:
            self._producer.send_at_once(block.data)

    def commit(self) -> None:
        receipts, self._receipts = self._receipts, []
        self._producer.await_each(receipts)
        self._producer.commit()

    def close(self) -> None:
        self._producer.close()
