"""STOMP for ``moving.engine``: a link that receives from a queue, and a second connection that sends to others.

STOMP brokers do not acknowledge inside of a transaction that also sends. The messages are sent first, so a connection
that is lost between the two steps leaves them on both queues.
"""

import time
from collections.abc import Sequence

import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.arrays import Int64s
from pyspark_jms.errors import JMSError, UnsupportedError
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.network.connection import StateCondition, closed_on
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.sink import StompSinkLink
from pyspark_jms.stomp.source import StompSourceLink
from pyspark_jms.stomp.wire.frame import header_of, unescape
from pyspark_jms.tools.moving.engine import OutgoingMessages

__all__ = ["StompMover"]


class StompMover(StompSourceLink):
    """A ``moving.engine.MovingLink``."""

    def __init__(self, settings: ConnectionSettings, condition: StateCondition | None = None) -> None:
        super().__init__(settings, condition)
        with closed_on(JMSError, super().close):
            require_kept_transactions(self.dialect)
            self._sink = StompSinkLink(settings)

    def origin(self, block: MessageBlock, index: int) -> Destination | None:
        return origin_of(block, index, self.dialect)

    def check_target(self, name: str) -> None:
        target = Destination(DestinationKind.QUEUE, name)
        self.dialect.addresses.header_value(target, sending=True, by_row=True)

    def encode(self, destination: Destination, rows: pa.RecordBatch, numbers: Int64s) -> Sequence[MessageBlock]:
        now_ms = int(time.time() * 1000)
        return self._sink.encode(rows, destination=destination, property_columns=(), now_ms=now_ms, numbers=numbers)

    def forward(self, ids: Sequence[bytes], outgoing: Sequence[OutgoingMessages]) -> None:
        self.require_acknowledgeable(ids)
        for _, blocks in outgoing:
            for block in blocks:
                self._sink.send(block)
        self._sink.commit()
        self.has_receipt(self.acknowledge(ids), wait=True)

    def close(self) -> None:
        self._sink.close()
        super().close()


def require_kept_transactions(dialect: Dialect) -> None:
    if not dialect.has_transactions:
        raise UnsupportedError(
            f"{dialect.name} does not keep its transactions over STOMP, so a move could lose messages.",
            "Move the messages with the broker's own tools.",
        )


def origin_of(block: MessageBlock, index: int, dialect: Dialect) -> Destination | None:
    """Return None also where the queue's name is not its address's: a subscription to a topic."""
    found = {header_of(block, index, name.encode()) or b"" for name in dialect.origin_headers} - {b""}
    if len(found) != 1:
        return None
    address = unescape(found.pop().decode())
    kinds = dialect.reply_to_prefixes
    prefix = next((prefix for prefix in kinds if address.startswith(prefix)), "")
    if not prefix:
        return Destination(DestinationKind.QUEUE, address)
    target = Destination.parse(kinds[prefix] + address.removeprefix(prefix))
    return target if target.kind is DestinationKind.QUEUE else None
