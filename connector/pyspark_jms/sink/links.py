"""What the sink's engine needs of a protocol. Types only.

A protocol implements them in its own folder and imports nothing from here. ``spark.protocols`` names the
implementation, and mypy compares it with these types there. Exactly-once writes have no port, because only AMQP can do
them: ``sink.committing`` and the modules above it use the classes of ``amqp.sink``.

A *block* is the bytes of one or more whole messages, as the protocol encodes them. A *confirmation* is the broker's
answer that it has the messages.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, Unpack

import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.rows import EncodeOptions
from pyspark_jms.jms.dialect import BrokerDialect
from pyspark_jms.jms.model import Destination
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["ConnectSink", "SinkLink"]


class SinkLink(Protocol):
    """``send …; commit()``, and ``close()`` in any case: a connection with one transaction at a time.

    Without the commit, no message of the transaction becomes visible.
    """

    @property
    def dialect(self) -> BrokerDialect: ...

    def require_destinations(self, destinations: Sequence[Destination]) -> None:
        """``InvalidDestinationError`` if the broker's management shows that what is sent to one of them is dropped."""

    def encode(
        self,
        rows: pa.RecordBatch,
        *,
        in_transaction: bool = True,
        **how: Unpack[EncodeOptions],
    ) -> Sequence[MessageBlock]:
        """One message a row, in order, in a few blocks. Raises before it returns anything if a row cannot be sent.

        ``in_transaction`` says how the blocks will be sent. ``commit`` waits for the confirmation of each message that
        is sent outside of a transaction, if the dialect ``confirms_single_messages``.
        """

    def send(self, block: MessageBlock, *, in_transaction: bool = True) -> None:
        """Send the messages of a block, in the open transaction or outside of one. The first block opens it.

        ``UnsupportedError`` if the broker keeps no transactions. Another refusal may show only at the commit.
        """

    def commit(self) -> None:
        """Return when the broker has confirmed everything that was sent: the transaction, and what is outside of it."""

    def close(self) -> None:
        """Roll back what was not committed, and disconnect."""


ConnectSink: TypeAlias = Callable[[ConnectionSettings, float], SinkLink]
"""The number: for how many seconds to retry the connection while the broker is away."""
