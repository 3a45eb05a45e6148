"""Tests the broker with messages on a scratch queue. The queue stays, and is empty afterwards.

The messages of a run have a property that the run selects by, so that it does not receive other messages (on brokers
with selectors). Only messages with this property are acknowledged.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import closing

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import InvalidDestinationError, JMSError, ReceiptTimeoutError
from pyspark_jms.jms.model import OCTET_STREAM, Destination, DestinationKind
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.management.queue_facts import look_up_queues
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.columns.decode import decode
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.dialects.base import BodyRule
from pyspark_jms.stomp.link.consumer import Consumer
from pyspark_jms.stomp.link.management import StompManagementLink
from pyspark_jms.stomp.link.producer import Producer
from pyspark_jms.stomp.wire.frame import Frame, encode_frame, header_of
from pyspark_jms.tools.check.findings import Finding, Verdict

__all__ = ["RUN_PROPERTY", "SCRATCH_QUEUE", "Scratch", "scratch_findings"]

SCRATCH_QUEUE = "pyspark-jms.check"
"""All runs use one name, because the broker may keep an auto-created queue for ever."""

RUN_PROPERTY = "pyspark_jms_check"
"""Property of a test message: the run that has sent it."""

_QUIET_SECONDS, _POLL_SECONDS = 1.0, 0.05
_WINDOW_BYTES, _BODY_BYTES, _MESSAGES = 4_096, 1_000, 16
_BODIES: tuple[tuple[str, bytes], ...] = (("text", b"text"), ("bytes", b"bytes"), ("text", b""), ("bytes", b""))
_REMEDY = "Permit this user to create queues, or name a queue that the user can read and write with --scratch-queue."


def scratch_findings(scratch: "Scratch") -> Iterator[Finding]:
    """Run the tests. The first error ends them; usually the user cannot create the queue."""
    try:
        scratch.require_queue()
    except InvalidDestinationError as error:
        yield Finding.of_error("scratch queue", error, Verdict.PROBLEM)
        return
    try:
        yield scratch.bodies()
        yield scratch.window()
    except JMSError as error:
        yield Finding.of_error("scratch queue", error, remedy=f"{error.remedy} {_REMEDY}")


class Scratch:
    def __init__(self, settings: ConnectionSettings, queue: str, dialect: Dialect) -> None:
        self._settings, self._dialect = settings, dialect
        self._destination = Destination(DestinationKind.QUEUE, queue)
        self._run = uuid.uuid4().hex
        self.clock: tuple[float, float, float] | None = None
        """This machine's time before a SEND, the broker's timestamp, this machine's time afterwards; milliseconds."""

    def require_queue(self) -> None:
        """``InvalidDestinationError`` for the name of a topic, which the messages would change for good."""
        look_up_queues(StompManagementLink, self._settings, [self._destination.name])

    # --- the two tests -------------------------------------------------------------------------

    def bodies(self) -> Finding:
        """Return whether text and bytes, also empty ones, are received as the type that was sent."""
        with closing(self._consumer("bodies", 1 << 20)) as consumer:
            before = time.time() * 1000
            for kind, body in _BODIES:
                consumer.connection.send(self._frame("bodies", kind, body))
            blocks = self._receive(consumer, len(_BODIES), "bodies")
            self._record_clock(blocks[0], before)
            found = [kind for block in blocks for kind in self._body_types(block)]
        wanted = [kind for kind, _ in _BODIES]
        if found == wanted:
            return Finding(name="body rule", value="text and bytes are distinguished")
        return Finding(
            name="body rule",
            value=f"sent {', '.join(wanted)}; read as {', '.join(found)}",
            verdict=Verdict.PROBLEM,
            advice="The body rule of this broker version is unknown. Use option bodyType, and please report a bug.",
        )

    def window(self) -> Finding:
        """Return whether the broker stops when windowBytes are in flight."""
        with Producer(self._settings) as producer:
            for _ in range(_MESSAGES):
                producer.send(self._frame("window", "text", b"x" * _BODY_BYTES, producer.transaction))
            producer.commit()
        with closing(self._consumer("window", _WINDOW_BYTES)) as consumer:
            self._await(consumer, 1)
            ahead = self._count_when_quiet(consumer)
            left = _MESSAGES
            while left:
                left -= sum(map(len, self._receive(consumer, 1, "window")))
        if ahead < _MESSAGES:
            return Finding(name="window", value="the broker waits for acknowledgements when windowBytes are in flight")
        return Finding(
            name="window",
            value="the broker sends without waiting for acknowledgements",
            verdict=Verdict.PROBLEM,
            advice="windowBytes has no effect, so a full queue would fill the driver's memory.",
        )

    # --- messages --------------------------------------------------------------------------------

    def _frame(self, purpose: str, kind: str, body: bytes, transaction: str | None = None) -> bytes:
        headers = {
            "destination": self._dialect.addresses.header_value(self._destination, sending=True),
            **self._dialect.send_destination_headers[DestinationKind.QUEUE],
            "persistent": "true",
            RUN_PROPERTY: f"{self._run}-{purpose}",
            **({} if transaction is None else {"transaction": transaction}),
        }
        if kind == "bytes":
            if self._dialect.body_rule is BodyRule.CONTENT_TYPE:
                headers["content-type"] = OCTET_STREAM
            headers["content-length"] = str(len(body))
            return encode_frame(Frame("SEND", tuple(headers.items()), body))
        return encode_frame(Frame("SEND", tuple(headers.items())))[:-1] + body + b"\0"

    def _consumer(self, purpose: str, window: int) -> Consumer:
        subscription = Subscription(
            destination=self._destination,
            window_bytes=window,
            selector=f"{RUN_PROPERTY} = '{self._run}-{purpose}'",
        )
        return Consumer(self._settings, subscription, StateCondition())

    def _receive(self, consumer: Consumer, count: int, purpose: str) -> list[MessageBlock]:
        """Receive and acknowledge the messages of a test. Any other message is given back, and ends the test."""
        self._await(consumer, count)
        blocks = consumer.take()
        own = [self._is_own(block, index, purpose) for block in blocks for index in range(len(block))]
        identifiers = [identifier for block in blocks for identifier in block.ids]
        ids = [each for each, is_own in zip(identifiers, own, strict=True) if is_own and each is not None]
        if ids:
            consumer.has_receipt(consumer.acknowledge(ids), wait=True)
        if not all(own):
            raise InvalidDestinationError(
                f"Queue {self._destination.name} has a message that this check did not send. The message was given"
                " back, and the broker was not tested further.",
                "Let no other program use this queue, and remove what an interrupted check has left there.",
            )
        return blocks

    def _is_own(self, block: MessageBlock, index: int, purpose: str) -> bool:
        return header_of(block, index, RUN_PROPERTY.encode()) == f"{self._run}-{purpose}".encode()

    def _await(self, consumer: Consumer, count: int) -> None:
        """Wait until ``count`` messages are received; raise an error after receiptTimeout."""
        deadline = time.monotonic() + self._settings.receipt_timeout
        while consumer.waiting()[0] < count:
            consumer.connection.check_messages()
            if time.monotonic() > deadline:
                raise ReceiptTimeoutError(
                    f"The messages that were sent to queue {self._destination.name} were not received within"
                    f" {self._settings.receipt_timeout:g} s.",
                    "Check whether the queue is paused or has a filter.",
                )
            consumer.connection.condition.pause(_POLL_SECONDS)

    def _count_when_quiet(self, consumer: Consumer) -> int:
        """The number of received messages, after a while without a new one."""
        seen, since = consumer.waiting()[0], time.monotonic()
        deadline = since + self._settings.receipt_timeout
        while time.monotonic() - since < _QUIET_SECONDS and time.monotonic() < deadline:
            consumer.connection.condition.pause(_POLL_SECONDS)
            consumer.connection.check_messages()
            if consumer.waiting()[0] != seen:
                seen, since = consumer.waiting()[0], time.monotonic()
        return seen

    def _body_types(self, block: MessageBlock) -> list[str]:
        rows = decode(block, dialect=self._dialect, source=self._destination, first_sequence=0, body_type="auto")
        return [str(kind) for kind in rows.column("body_type").to_pylist()]

    def _record_clock(self, block: MessageBlock, before: float) -> None:
        name = self._dialect.header_of("JMSTimestamp")
        sent = header_of(block, 0, name) if name else None
        if sent is not None and sent.isdigit():
            self.clock = (before, float(sent), time.time() * 1000)
