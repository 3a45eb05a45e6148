"""AMQP 1.0 for the sink's engine: the Protocols of ``sink.links``, implemented with ``link`` and ``columns``."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NoReturn, Self

import pyarrow as pa

from pyspark_jms.amqp.columns.encode import encode
from pyspark_jms.amqp.dialects.refusals import refuse_exactly_once_writes, require_transactions
from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.wire.definitions import Target
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.ragged import Int64s
from pyspark_jms.columns.send_defaults import SendDefaults
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import Destination
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["AMQP_SINK", "AmqpSink", "AmqpSinkLink"]


class AmqpSinkLink:
    """A ``sink.links.SinkLink``: encoded bare messages are its blocks. The first rows decide where it attaches to."""

    confirms_single_messages = True

    def __init__(self, settings: ConnectionSettings, *, patience: float = 0.0) -> None:
        self._producer = Producer(settings, patience=patience)
        self._max_message_bytes = settings.max_message_bytes
        self._prefix = f"ID:{uuid.uuid4()}:"

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
        in_transaction: bool = True,  # noqa: ARG002  # decided by ``send`` and ``send_at_once``
        confirm_each: bool = False,  # noqa: ARG002
    ) -> Sequence[MessageBlock]:
        blocks = encode(
            rows,
            dialect=self._producer.dialect,
            defaults=defaults,
            property_columns=property_columns,
            now_ms=now_ms,
            message_id_prefix=self._prefix,
            first_row=first_row,
            numbers=numbers,
            max_message_bytes=self._max_message_bytes,
        )
        if not self._producer.is_open:
            by_row = "destination" in {name.lower() for name in rows.schema.names}
            self._open(None if by_row else defaults.destination)
        return blocks

    def _open(self, destination: Destination | None) -> None:
        """Where rows name their destinations, each message is routed by its ``to`` (the anonymous relay)."""
        if destination is not None:
            address = self._producer.dialect.send.address(destination.kind, destination.name)
            self._producer.open(Target(address=address, capabilities=(str(destination.kind),)))
        elif self._producer.has_anonymous_relay:
            self._producer.open(Target())
        else:
            raise UnsupportedError(
                f"{self._producer.dialect.name} does not route messages by their own destination over AMQP.",
                "Write to one destination: give option queue or topic, and no column destination.",
            )

    def send(self, block: MessageBlock) -> None:
        self._producer.send(block)

    def send_at_once(self, block: MessageBlock) -> None:
        self._producer.send_at_once(block)

    def await_each(self, first_row: int, count: int) -> None:  # noqa: ARG002  # all that were sent, these included
        self._producer.await_all()

    def commit(self) -> None:
        self._producer.commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._producer.__exit__(kind, error, traceback)


@dataclass(frozen=True, slots=True)
class AmqpSink:
    """A ``sink.links.SinkProtocol``."""

    name: str = "AMQP"

    def connect(self, settings: ConnectionSettings, *, patience: float = 0.0) -> AmqpSinkLink:
        return AmqpSinkLink(settings, patience=patience)

    def commit_ledger(self, settings: ConnectionSettings, queue: str) -> NoReturn:  # noqa: ARG002
        refuse_exactly_once_writes()


AMQP_SINK = AmqpSink()
