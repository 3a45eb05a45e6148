"""STOMP for the sink's engine: a ``sink.links.SinkLink``, implemented with ``link`` and ``columns``.

The one place of the STOMP sink that knows both. Decides nothing: which task sends what is the engine's business.
"""

from collections.abc import Sequence
from typing import Unpack

import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.rows import EncodeOptions
from pyspark_jms.jms.model import Destination
from pyspark_jms.management.destinations import require_destinations
from pyspark_jms.management.routing import shows_addresses
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.columns.encode import encode, receipt_of
from pyspark_jms.stomp.link.management import StompManagementLink
from pyspark_jms.stomp.link.producer import Producer

__all__ = ["StompSinkLink"]


class StompSinkLink(Producer):
    """A ``sink.links.SinkLink``: encoded SEND frames are its blocks."""

    def __init__(self, settings: ConnectionSettings, patience: float = 0.0) -> None:
        super().__init__(settings, patience=patience)
        self._settings = settings
        self._receipts: list[str] = []
        """Those that encoded frames request, and that ``commit`` is to wait for."""

    def require_destinations(self, destinations: Sequence[Destination]) -> None:
        if shows_addresses(self.dialect.management):
            require_destinations(StompManagementLink, self._settings, destinations)

    def encode(
        self,
        rows: pa.RecordBatch,
        *,
        in_transaction: bool = True,
        **how: Unpack[EncodeOptions],
    ) -> Sequence[MessageBlock]:
        """The transaction and the receipt are headers of each frame, so they are decided here."""
        confirm_each = not in_transaction and self.dialect.confirms_single_messages
        blocks = encode(
            rows,
            dialect=self.dialect,
            transaction=Producer.transaction if in_transaction else None,
            max_frame_bytes=self._settings.max_message_bytes,
            receipts=confirm_each,
            **how,
        )
        if confirm_each:
            first = how.get("first_row", 0)
            self._receipts += [receipt_of(row) for row in range(first, first + rows.num_rows)]
        return blocks

    def send(self, block: MessageBlock, *, in_transaction: bool = True) -> None:
        self.send_frames(block.data, in_transaction=in_transaction)

    def commit(self) -> None:
        receipts, self._receipts = self._receipts, []
        self.await_each(receipts)
        super().commit()
