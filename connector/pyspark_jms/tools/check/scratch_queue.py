"""The scratch queue of a check: rows to the broker and back, over either protocol, without Spark.

Every row has a property with the id of the run. Only messages with this id are acknowledged. Any other message ends the
tests, and is given back. Where the dialect trusts the broker's selectors, the tests select by the id, so that messages
of other programs are not even delivered to them.
"""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from jms_selector.syntax.dialects import dialect_of
from pyspark_jms.amqp.sink import AmqpSinkLink
from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.amqp.wire.sections import delivery_count
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.envelope import open_envelopes
from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.management.link import ManagementLink, ask
from pyspark_jms.management.queue_facts import QueueFacts, look_up_queues, queue_facts
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.sink.links import SinkLink
from pyspark_jms.source.links import SourceLink, SourceProtocol
from pyspark_jms.stomp.sink import StompSinkLink
from pyspark_jms.stomp.source import StompSource

__all__ = [
    "PATIENCE_SECONDS",
    "RUN_PROPERTY",
    "Clock",
    "EndedEarly",
    "Reader",
    "Row",
    "ScratchQueue",
    "decoded",
    "trusts_selectors",
]

RUN_PROPERTY = "pyspark_jms_check"
"""Property of a test message: the run that has sent it."""

Row = Mapping[str, Any]
"""The columns of the sink that a message has."""

Clock = tuple[float, float, float]
"""This machine's time before a message, the broker's time, this machine's time afterwards; epoch milliseconds."""

PATIENCE_SECONDS = 75.0
"""How long unacknowledged messages may take to come back: a broker may lock them for a minute."""

_LIMIT_SECONDS = 600.0
"""For all tests together. They take less than a minute at a broker that gives messages back at once."""

_WINDOW_BYTES, _LOOK_BYTES = 16 << 20, 4 << 10
_ARRIVAL_SECONDS, _QUIET_SECONDS = 10.0, 0.7
_TYPES = {field.name: field.type for field in ARROW_SCHEMA} | {"time_to_live": pa.int64()}


class EndedEarly(Exception):  # noqa: N818 - no error of the broker: a test must not catch it as one
    """The tests cannot go on. The text says why, and is the value of a finding."""


def trusts_selectors(dialect: Any) -> bool:
    return dialect.selector_dialect is not None and not dialect_of(dialect.selector_dialect).unknown_broker


class ScratchQueue:
    def __init__(self, settings: ConnectionSettings, name: str) -> None:
        self.is_amqp = settings.protocol == "amqp"
        self.name = name
        self.dialect: Any = None
        """The broker's dialect, which the first trial finds out."""
        self.uses_transactions = True
        """Whether ``send`` commits. The trial of transactions decides it."""
        self.clock: Clock | None = None
        """What the messages of ``body_rule`` have shown of the broker's clock."""
        self.patience = settings.receipt_timeout
        """How long the messages of ``body_rule`` and ``window`` may take to arrive, in seconds."""
        self._settings = settings
        self.run = uuid.uuid4().hex
        self.missing = f"{name}.missing.{self.run[:8]}"
        """The name of a queue that does not exist before the tests."""
        self._deadline = time.monotonic() + _LIMIT_SECONDS
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
            _batch([{**row, "properties": [(RUN_PROPERTY, self.run), *row.get("properties", ())]} for row in rows]),
            destination=Destination(DestinationKind.QUEUE, queue or self.name),
            property_columns=(),
            now_ms=int(time.time() * 1000),
            in_transaction=in_transaction,
        )

    # --- receiving -----------------------------------------------------------------------------

    def connect_reader(self, condition: StateCondition | None = None) -> Any:
        return self._source.connect(self._settings, condition or StateCondition())

    @contextmanager
    def reader(
        self,
        *,
        queue: str | None = None,
        selector: str | None = None,
        browse: bool = False,
        every: bool = False,
        window_bytes: int = _WINDOW_BYTES,
    ) -> Iterator["Reader"]:
        """Connect, and read the messages of this run. What was not acknowledged at the end is given back.

        ``browse``: ask the broker for a browse even if the dialect does not trust it. ``every``: read also messages of
        other programs, by a browse where the dialect trusts it.
        """
        condition = StateCondition()
        with closing(self.connect_reader(condition)) as link:
            if browse and self.is_amqp:
                link.connection.dialect = replace(link.dialect, browses=True)
            own = f"{RUN_PROPERTY} = '{self.run}'" if not every and trusts_selectors(link.dialect) else None
            link.subscribe(
                Subscription(
                    destination=Destination(DestinationKind.QUEUE, queue or self.name),
                    window_bytes=window_bytes,
                    transform=True,
                    browse=browse or (every and link.dialect.browses),
                    selector=" AND ".join(filter(None, (selector, own))) or None,
                )
            )
            yield Reader(link, condition, self._source, self.run, self._deadline)

    def receive(self, count: int, seconds: float = _ARRIVAL_SECONDS) -> list[Row]:
        """Return and acknowledge messages of this run, as ``Reader.receive`` and ``Reader.acknowledge`` do."""
        with self.reader() as reader:
            found = reader.receive(count, seconds)
            reader.acknowledge()
        return found

    def require_alone(self) -> None:
        """Raise ``EndedEarly`` if the queue has a message that this run did not send."""
        with self.reader(every=True, window_bytes=_LOOK_BYTES) as reader:
            reader.receive(0)

    def look_up(self) -> QueueFacts | None:
        """Return the facts of the queue. Raise ``InvalidDestinationError`` for a topic, which messages would
        change for good. Nobody knows without the permission for management, or on a broker without it.
        """
        return look_up_queues(self._source.open_management, self._settings, [self.name]).get(self.name)

    def require_no_consumers(self) -> None:
        """Raise ``EndedEarly`` if another program would receive the messages of the tests."""
        found = self.look_up()
        if found is not None and found.consumers:
            raise EndedEarly(
                f"queue {self.name} has consumers ({found.consumers:,}), which would receive the messages of the tests"
            )

    def remove_own(self, *, queue: str | None = None) -> None:
        """Acknowledge what the tests of this run have left, also behind messages of other programs, which raise
        ``EndedEarly`` afterwards: RabbitMQ delivers one message after the other.
        """
        foreign: EndedEarly | None = None
        with self.reader(queue=queue) as reader:
            reader.deadline = time.monotonic() + _ARRIVAL_SECONDS
            try:
                while time.monotonic() < reader.deadline:
                    try:
                        reader.receive(0)
                        break
                    except EndedEarly as end:
                        reader.deadline = min(reader.deadline, time.monotonic() + 2 * _QUIET_SECONDS)
                        foreign = foreign or end
            finally:
                reader.acknowledge()
        if foreign is not None:
            raise foreign

    def delete(self, *names: str) -> None:
        """Delete those of the queues that are empty and have no consumer, where the user may use the management."""

        def delete(link: ManagementLink) -> None:
            for name, facts in queue_facts(link, names).items():
                if facts.exists and not facts.messages and not facts.consumers and link.words.delete_queue is not None:
                    # Without removing consumers, and with the address, if the broker had created it.
                    link.operation(link.words.broker_resource, link.words.delete_queue, name, False, True)  # noqa: FBT003

        ask(self._source.open_management, self._settings, delete, "which queues of the tests are left")


class Reader:
    """The messages that one connection has received."""

    def __init__(
        self, link: SourceLink, condition: StateCondition, source: SourceProtocol, run: str, deadline: float
    ) -> None:
        self.link = link
        self._condition, self._source, self._run = condition, source, run
        self.deadline = deadline
        self._own: list[tuple[bytes | None, bytes]] = []
        """The id and the bytes of each message that this run has sent."""

    def receive(self, count: int, seconds: float = _ARRIVAL_SECONDS) -> list[Row]:
        """Return the messages that come until there are ``count``, at most for ``seconds``, and a moment longer.

        ``EndedEarly`` if one of them is not of this run. It is given back when the connection ends.
        """
        found: list[Row] = []
        deadline = time.monotonic() + seconds
        while self._arrives(_QUIET_SECONDS if len(found) >= count else deadline - time.monotonic()):
            found += self._take()
        return found

    def count_ahead(self, seconds: float) -> int:
        """Return how many messages the broker sends, from the first one on, until nothing comes for a moment."""
        self._arrives(seconds)
        seen = -1
        while seen != (seen := self.link.waiting()[0]):
            self._until(lambda seen=seen: self.link.waiting()[0] != seen, _QUIET_SECONDS)
        return seen

    def _arrives(self, seconds: float) -> bool:
        return self._until(lambda: self.link.waiting()[0] > 0, seconds)

    def _take(self) -> list[Row]:
        rows = [
            (identifier, block.message(index), row)
            for block in self.link.take()
            for index, (identifier, row) in enumerate(
                zip(block.ids, decoded(self._source, self.link, block).to_pylist(), strict=True)
            )
            if not identifier or identifier != self.link.dialect.browse_end_id
        ]
        own = [dict(row["properties"] or ()).get(RUN_PROPERTY) == self._run for _, _, row in rows]
        self._own += [(identifier, message) for (identifier, message, _), yes in zip(rows, own, strict=True) if yes]
        if not all(own):
            raise EndedEarly(
                f"queue {self.link.subscription.destination.name} has a message without the mark of these tests:"
                " another program sends to the queue, or the broker drops properties. The message was given back"
            )
        return [row for _, _, row in rows]

    def _until(self, true: Any, seconds: float) -> bool:
        return self._condition.poll(true, seconds, self._check)

    def _check(self) -> None:
        if time.monotonic() > self.deadline:
            raise EndedEarly(f"the tests have not ended within {_LIMIT_SECONDS / 60:g} minutes")
        self.link.check()

    def failed_deliveries(self) -> list[int] | None:
        """Return how often each message was delivered before without success, or None if the protocol does not have the
        number.
        """
        if self.link.address.protocol != "amqp":
            return None
        return [delivery_count(message) for _, message in self._own]

    def acknowledge(self, count: int | None = None) -> None:
        """Acknowledge the first ``count`` messages of this run, or all of them, and wait for the broker's
        confirmation.
        """
        ids = [each for each, _ in self._own if each is not None][:count]
        if ids:
            self.link.has_receipt(self.link.acknowledge(ids), wait=True)

    def proves_end(self, seconds: float) -> bool:
        """Return whether the broker answers the question for the end of the queue (a drain, AMQP 1.0 §2.6.7)."""
        receipt = self.link.probe()
        return self._until(lambda: self.link.has_receipt(receipt), seconds)


def decoded(protocol: SourceProtocol, link: SourceLink, block: MessageBlock) -> Any:
    """Return the rows of the block, a RecordBatch, with their envelopes opened."""
    dialect, source = link.dialect.name, link.subscription.destination
    rows = protocol.decode(block, dialect=dialect, source=source, first_sequence=0, body_type="auto")
    return open_envelopes(rows, "auto")


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.RecordBatch.from_pylist(list(rows), schema=pa.schema([(name, _TYPES[name]) for name in names]))
