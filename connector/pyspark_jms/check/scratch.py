"""What only trying tells: messages to a scratch queue and back. Leaves the queue, and nothing in it.

All messages of a run carry a property that its selectors ask for, so that two runs at a time do not meet (on a broker
that has selectors).
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import closing

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.check.findings import Finding, Verdict
from pyspark_jms.errors import JMSError, ReceiptTimeoutError, TransactionRolledBackError
from pyspark_jms.jms.model import OCTET_STREAM, Destination, DestinationKind
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.columns.decode import decode
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.dialects.base import BodyRule
from pyspark_jms.stomp.link.connection import Arrivals
from pyspark_jms.stomp.link.consumer import Consumer
from pyspark_jms.stomp.link.producer import Producer
from pyspark_jms.stomp.wire.frame import Frame, encode_frame
from pyspark_jms.stomp.wire.header import header_of

__all__ = ["SCRATCH_QUEUE", "Scratch", "scratch_findings"]

SCRATCH_QUEUE = "pyspark-jms.check"
"""One name for all runs: an auto-created queue may stay for ever."""

_PROPERTY = "check"
_QUIET_SECONDS, _POLL_SECONDS = 1.0, 0.05
_WINDOW_BYTES, _BODY_BYTES, _MESSAGES = 4_096, 1_000, 16
_BODIES: tuple[tuple[str, bytes], ...] = (("text", b"text"), ("bytes", b"bytes"), ("text", b""), ("bytes", b""))
_NOT_TRIED = "Let this user create queues, or name one it may read and write with --scratch-queue."


def scratch_findings(scratch: "Scratch") -> Iterator[Finding]:
    """Ends with the first thing that cannot be tried: mostly, the queue may not be created."""
    try:
        yield scratch.bodies()
        yield scratch.window()
        yield scratch.duplicates()
    except JMSError as error:
        yield Finding.of_error("scratch queue", error, remedy=f"{error.remedy} {_NOT_TRIED}")


class Scratch:
    def __init__(self, settings: ConnectionSettings, queue: str, dialect: Dialect) -> None:
        self._settings, self._dialect = settings, dialect
        self._destination = Destination(DestinationKind.QUEUE, queue)
        self._run = uuid.uuid4().hex
        self.clock: tuple[float, float, float] | None = None
        """Before a message was sent, when the broker says that it was, after it came: milliseconds."""

    # --- the three tries -------------------------------------------------------------------------

    def bodies(self) -> Finding:
        """Whether text and bytes, also empty ones, come back as what they were."""
        with closing(self._consumer("bodies", 1 << 20)) as consumer:
            before = time.time() * 1000
            for kind, body in _BODIES:
                consumer.connection.send(self._frame("bodies", kind, body))
            blocks = self._receive(consumer, len(_BODIES))
            self._note_clock(blocks[0], before)
            found = [kind for block in blocks for kind in self._body_types(block)]
            self._acknowledge(consumer, blocks)
        wanted = [kind for kind, _ in _BODIES]
        if found == wanted:
            return Finding(name="body rule", value="text and bytes are told apart")
        return Finding(
            name="body rule",
            value=f"sent {', '.join(wanted)}; read as {', '.join(found)}",
            verdict=Verdict.PROBLEM,
            advice="This version tells text from bytes in another way: use option bodyType, and report it.",
        )

    def window(self) -> Finding:
        """Whether the broker stops when a window's worth is not acknowledged."""
        with Producer(self._settings) as producer:
            for _ in range(_MESSAGES):
                producer.send(self._frame("window", "text", b"x" * _BODY_BYTES, producer.transaction))
            producer.commit()
        with closing(self._consumer("window", _WINDOW_BYTES)) as consumer:
            self._await(consumer, 1)
            ahead = self._until_quiet(consumer)
            left = _MESSAGES
            while left:
                blocks = self._receive(consumer, 1)
                self._acknowledge(consumer, blocks)
                left -= sum(map(len, blocks))
        if ahead < _MESSAGES:
            return Finding(name="window", value="the broker waits for acknowledgements when windowBytes are in flight")
        return Finding(
            name="window",
            value="the broker sends without waiting for acknowledgements",
            verdict=Verdict.PROBLEM,
            advice="windowBytes bounds nothing here: a full queue would fill the driver's memory.",
        )

    def duplicates(self) -> Finding:
        """Whether a transaction with a duplicate id is refused the second time."""
        twice = Finding(
            name="duplicate detection",
            value="a transaction that comes twice is carried out twice",
            verdict=Verdict.NOTE,
            advice="deliveryGuarantee=exactly-once cannot be kept here.",
        )
        if self._dialect.duplicate_id_header is None:
            return twice
        try:
            self._commit_once()
            refused = self._is_refused()
        finally:
            self._sweep("duplicates")
        if refused:
            return Finding(name="duplicate detection", value="a transaction that comes twice is refused")
        return twice

    # --- messages --------------------------------------------------------------------------------

    def _frame(self, purpose: str, kind: str, body: bytes, transaction: str | None = None) -> bytes:
        headers = {
            "destination": self._dialect.addresses.spelled(self._destination, sending=True),
            **self._dialect.send_types[DestinationKind.QUEUE],
            "persistent": "true",
            _PROPERTY: f"{self._run}-{purpose}",
            **({} if transaction is None else {"transaction": transaction}),
        }
        if purpose == "duplicates" and self._dialect.duplicate_id_header is not None:
            headers[self._dialect.duplicate_id_header] = self._run
        if kind == "bytes":
            if self._dialect.body_rule is BodyRule.CONTENT_TYPE:
                headers["content-type"] = OCTET_STREAM
            headers["content-length"] = str(len(body))
            return encode_frame(Frame("SEND", tuple(headers.items()), body))
        return encode_frame(Frame("SEND", tuple(headers.items())))[:-1] + body + b"\0"

    def _commit_once(self) -> None:
        with Producer(self._settings) as producer:
            producer.send(self._frame("duplicates", "text", b"once", producer.transaction))
            producer.commit()

    def _is_refused(self) -> bool:
        try:
            self._commit_once()
        except TransactionRolledBackError:
            return True
        return False

    def _consumer(self, purpose: str, window: int) -> Consumer:
        subscription = Subscription(
            destination=self._destination,
            window_bytes=window,
            selector=f"{_PROPERTY} = '{self._run}-{purpose}'",
        )
        return Consumer(self._settings, subscription, Arrivals())

    def _receive(self, consumer: Consumer, count: int) -> list[MessageBlock]:
        self._await(consumer, count)
        return consumer.take()

    def _await(self, consumer: Consumer, count: int) -> None:
        """Return when so many messages are here; raise when they do not come."""
        deadline = time.monotonic() + self._settings.receipt_timeout
        while consumer.waiting()[0] < count:
            consumer.connection.check_messages()
            if time.monotonic() > deadline:
                raise ReceiptTimeoutError(
                    f"What was sent to queue {self._destination.name} did not come back within"
                    f" {self._settings.receipt_timeout:g} s.",
                    "Is the queue paused, or does it have a filter?",
                )
            consumer.connection.changed.pause(_POLL_SECONDS)

    def _until_quiet(self, consumer: Consumer) -> int:
        """How many messages are here when no more have come for a while."""
        seen, since = consumer.waiting()[0], time.monotonic()
        while time.monotonic() - since < _QUIET_SECONDS:
            consumer.connection.changed.pause(_POLL_SECONDS)
            consumer.connection.check_messages()
            if consumer.waiting()[0] != seen:
                seen, since = consumer.waiting()[0], time.monotonic()
        return seen

    def _sweep(self, purpose: str) -> None:
        with closing(self._consumer(purpose, 1 << 20)) as consumer:
            self._until_quiet(consumer)
            self._acknowledge(consumer, consumer.take())

    @staticmethod
    def _acknowledge(consumer: Consumer, blocks: list[MessageBlock]) -> None:
        ids = [identifier for block in blocks for identifier in block.ids if identifier is not None]
        if ids:
            consumer.await_receipt(consumer.acknowledge(ids))

    def _body_types(self, block: MessageBlock) -> list[str]:
        rows = decode(block, dialect=self._dialect, source=self._destination, first_sequence=0, body_type="auto")
        return [str(kind) for kind in rows.column("body_type").to_pylist()]

    def _note_clock(self, block: MessageBlock, before: float) -> None:
        name = self._dialect.header_of("JMSTimestamp")
        sent = header_of(block, 0, name) if name else None
        if sent is not None and sent.isdigit():
            self.clock = (before, float(sent), time.time() * 1000)
