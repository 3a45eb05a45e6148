"""The scratch queue of the conformance tests: rows to the broker and back, over either protocol, without Spark.

Every row has a property by which the tests know their own messages. A queue with any other message is refused, and its
messages are given back.
"""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pyspark_jms.amqp.sink import AmqpSinkLink
from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.amqp.wire.sections import delivery_count
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.envelope import open_envelopes
from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.sink.links import SinkLink
from pyspark_jms.source.links import SourceLink, SourceProtocol
from pyspark_jms.stomp.sink import StompSinkLink
from pyspark_jms.stomp.source import StompSource

__all__ = ["PATIENCE_SECONDS", "ConformanceQueue", "Reader", "Row"]

Row = Mapping[str, Any]
"""The columns of the sink that a message has."""

PATIENCE_SECONDS = 75.0
"""How long unacknowledged messages may take to come back: a broker may lock them for a minute."""

_MARK = "conformance"
_WINDOW_BYTES = 16 << 20
_ARRIVAL_SECONDS, _QUIET_SECONDS, _POLL_SECONDS = 10.0, 0.7, 0.02
_TYPES = {field.name: field.type for field in ARROW_SCHEMA} | {"time_to_live": pa.int64()}


class ConformanceQueue:
    def __init__(self, settings: ConnectionSettings, name: str) -> None:
        self.is_amqp = settings.addresses[0].protocol == "amqp"
        self.name = name
        self.uses_transactions = True
        """Whether ``send`` commits. The test of transactions decides it."""
        self._settings = settings
        self._run = uuid.uuid4().hex
        self._source: SourceProtocol = AmqpSource() if self.is_amqp else StompSource()

    # --- sending -------------------------------------------------------------------------------

    def connect_sender(self) -> SinkLink:
        return (AmqpSinkLink if self.is_amqp else StompSinkLink)(self._settings)

    def send(self, rows: Sequence[Row], *, queue: str | None = None) -> None:
        """Send the rows. Returns when the broker has confirmed them; raises why it did not."""
        with closing(self.connect_sender()) as link:
            commits = self.uses_transactions or not link.dialect.confirms_single_messages
            for block in self.encode(link, rows, queue=queue, in_transaction=commits):
                link.send(block, in_transaction=commits)
            link.commit()

    def encode(
        self, link: SinkLink, rows: Sequence[Row], *, queue: str | None = None, in_transaction: bool = True
    ) -> Sequence[MessageBlock]:
        return link.encode(
            _batch([self._marked(row) for row in rows]),
            destination=Destination(DestinationKind.QUEUE, queue or self.name),
            property_columns=(),
            now_ms=int(time.time() * 1000),
            in_transaction=in_transaction,
        )

    def _marked(self, row: Row) -> Row:
        return {**row, "properties": [(_MARK, self._run), *row.get("properties", ())]}

    # --- receiving -----------------------------------------------------------------------------

    def connect_reader(self, condition: StateCondition | None = None) -> Any:
        return self._source.connect(self._settings, condition or StateCondition())

    @contextmanager
    def reader(
        self, *, queue: str | None = None, selector: str | None = None, browse: bool = False
    ) -> Iterator["Reader"]:
        """A connection that reads the queue. At its end it gives back what was not acknowledged."""
        destination = Destination(DestinationKind.QUEUE, queue or self.name)
        condition = StateCondition()
        with closing(self.connect_reader(condition)) as link:
            if browse:
                self._ask_for_browse(link)
            link.subscribe(
                Subscription(
                    destination=destination,
                    window_bytes=_WINDOW_BYTES,
                    transform=True,
                    browse=browse,
                    selector=selector,
                )
            )
            yield Reader(link, condition, self._source, is_amqp=self.is_amqp)

    def _ask_for_browse(self, link: Any) -> None:
        """Ask the broker for a browse even if the dialect does not trust it."""
        if self.is_amqp:
            link.connection.dialect = replace(link.dialect, browses=True)

    def remove_own(self, *, queue: str | None = None) -> None:
        """Acknowledge what earlier tests, or an earlier run, have left.

        ``InvalidDestinationError`` if the queue has a message of somebody else. Nothing is acknowledged then.
        """
        with self.reader(queue=queue) as reader:
            found = reader.receive(0)
            strange = sum(_MARK not in dict(row["properties"] or ()) for row in found)
            if strange:
                raise InvalidDestinationError(
                    f"Queue {queue or self.name} has {strange:,} messages that these tests did not send.",
                    "Name an empty queue that nothing else uses. The messages were given back.",
                )
            reader.acknowledge()

    def own(self, found: Sequence[Row]) -> list[Row]:
        """The messages that this run has sent."""
        return [row for row in found if dict(row["properties"] or ()).get(_MARK) == self._run]


class Reader:
    """What one connection has received."""

    def __init__(self, link: SourceLink, condition: StateCondition, source: SourceProtocol, *, is_amqp: bool) -> None:
        self.link = link
        self._condition, self._source, self._is_amqp = condition, source, is_amqp
        self._blocks: list[MessageBlock] = []

    def receive(self, count: int, seconds: float = _ARRIVAL_SECONDS) -> list[Row]:
        """The messages that come until there are ``count``, at most for ``seconds``, and a moment longer."""
        self._until(lambda: self.link.waiting()[0] >= count, seconds)
        seen = -1
        while seen != (seen := self.link.waiting()[0]):
            self._until(lambda: False, _QUIET_SECONDS)
        blocks = list(self.link.take())
        self._blocks += blocks
        return [row for block in blocks for row in self._rows(block)]

    def _until(self, true: Any, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not (is_true := bool(true())) and time.monotonic() < deadline:
            self.link.check()
            self._condition.pause(_POLL_SECONDS)
        return is_true

    def _rows(self, block: MessageBlock) -> list[Row]:
        rows = self._source.decode(
            block,
            dialect=self.link.dialect.name,
            source=self.link.subscription.destination,
            first_sequence=0,
            body_type="auto",
        )
        found: list[Row] = open_envelopes(rows, "auto").to_pylist()
        return found

    def failed_deliveries(self) -> list[int] | None:
        """How often each message was delivered before without success. None: the protocol does not have the number."""
        if not self._is_amqp:
            return None
        return [delivery_count(block.message(index)) for block in self._blocks for index in range(len(block))]

    def acknowledge(self, count: int | None = None) -> None:
        """Acknowledge the first ``count`` messages, or all of them, and wait for the broker's confirmation."""
        ids = [each for block in self._blocks for each in block.ids if each is not None][:count]
        if ids:
            self.link.has_receipt(self.link.acknowledge(ids), wait=True)

    def proves_end(self, seconds: float) -> bool:
        """Whether the broker answers the question for the end of the queue (a drain, AMQP 1.0 §2.6.7)."""
        receipt = self.link.probe()
        return self._until(lambda: self.link.has_receipt(receipt), seconds)

    def drop(self) -> None:
        """Close the socket, as the death of the process would."""
        self.link.drop()


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.RecordBatch.from_pylist(list(rows), schema=pa.schema([(name, _TYPES[name]) for name in names]))
