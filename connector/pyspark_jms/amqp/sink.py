"""AMQP 1.0 for the sink's engine: the Protocols of ``sink.links``, implemented with ``link`` and ``columns``."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import pyarrow as pa

from pyspark_jms.amqp.columns.encode import encode
from pyspark_jms.amqp.dialects.refusals import require_one_entity, require_register
from pyspark_jms.amqp.link.commit_ledger import Admit, TokenLedger, opened
from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.wire.types import Target
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.row_parts import RowsDigest
from pyspark_jms.columns.sink_schema import SendDefaults
from pyspark_jms.columns.strings import Int64s
from pyspark_jms.delivery.commit_token import LedgerEntry, write_of
from pyspark_jms.delivery.ledger_owner import LedgerOwner
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import Destination
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["AMQP_SINK", "AmqpCommitLedger", "AmqpLedgerLink", "AmqpSink", "AmqpSinkLink"]

_DIGEST_VERSION = "a1"


class AmqpSinkLink:
    """A ``sink.links.SinkLink``: encoded bare messages are its blocks. The first rows decide where it attaches to."""

    confirms_single_messages = True

    def __init__(self, settings: ConnectionSettings, *, patience: float = 0.0, container_id: str | None = None) -> None:
        self._producer = Producer(settings, patience=patience, container_id=container_id)
        self._max_message_bytes = settings.max_message_bytes
        self._prefix = f"ID:{uuid.uuid4()}:"

    @property
    def has_transactions(self) -> bool:
        return self._producer.dialect.has_transactions

    def require_transactions(self) -> None:
        self._producer.transactions.begin()

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
        confirm_each: bool = False,  # noqa: ARG002
    ) -> Sequence[MessageBlock]:
        blocks = encode(
            rows,
            dialect=self._producer.dialect,
            defaults=defaults,
            property_columns=property_columns,
            now_ms=now_ms,
            message_id_prefix=self._prefix if now_ms else None,
            first_row=first_row,
            numbers=numbers,
            max_message_bytes=self._max_message_bytes,
        )
        if not self._producer.is_open:
            by_row = "destination" in {name.lower() for name in rows.schema.names}
            if by_row and in_transaction:
                require_one_entity(self._producer.dialect)
            self._open(None if by_row else defaults.destination)
        return blocks

    def _open(self, destination: Destination | None) -> None:
        """Where rows name their destinations, each message is routed by its ``to`` (the anonymous relay)."""
        if destination is not None:
            address = self._producer.dialect.send.target_address(destination.kind, destination.name)
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


class AmqpLedgerLink(AmqpSinkLink):
    """A ``sink.links.LedgerLink``: the transaction of the rows also replaces the token of the ledger."""

    def __init__(self, settings: ConnectionSettings, owner: LedgerOwner, *, patience: float = 0.0) -> None:
        super().__init__(settings, patience=patience, container_id=owner.queue)
        producer = self._producer
        self._ledger = TokenLedger(producer.connection, producer.transactions, settings, owner)

    def new_digest(self) -> RowsDigest:
        return RowsDigest(_DIGEST_VERSION)

    def send(self, block: MessageBlock) -> None:
        """Rows that another link has encoded name their destinations themselves."""
        if not self._producer.is_open:
            self._open(None)
        super().send(block)

    def commit_with_entry(self, entry: LedgerEntry, admit: Admit) -> None:
        self._producer.await_sent()
        if not self._ledger.commit(entry, admit):
            self._producer.transactions.roll_back()

    def __enter__(self) -> Self:
        try:
            require_register(self._producer.dialect)
        except UnsupportedError:
            self.__exit__(None, None, None)
            raise
        return self


@dataclass(frozen=True, slots=True)
class AmqpCommitLedger:
    """A ``sink.links.CommitLedger``: a token in the broker, which each commit replaces."""

    settings: ConnectionSettings
    owner: LedgerOwner

    @property
    def queue(self) -> str:
        return self.owner.queue

    @property
    def requirements(self) -> str:
        return (
            f"Topic address {self.owner.address} needs the permissions send and consume. It must exist with its"
            " durable subscription, or be created automatically (createAddress, createDurableQueue): see"
            " docs/security.md."
        )

    def connect(self, *, patience: float = 0.0) -> AmqpLedgerLink:
        return AmqpLedgerLink(self.settings, self.owner, patience=patience)

    def find_for_task(self, task: str, *, write: str, execution: str) -> tuple[LedgerEntry, ...]:
        found = self.find_for_write(write)
        return tuple(each for each in found if each.task == task or each.execution != execution)

    def find_for_write(self, write: str) -> tuple[LedgerEntry, ...]:
        return tuple(each for each in self._entries() if write_of(each) == write)

    def _entries(self) -> tuple[LedgerEntry, ...]:
        with opened(self.settings, self.owner) as ledger:
            return ledger.find().entries

    def find_late(self, task: str) -> tuple[LedgerEntry, ...]:
        """A commit whose connection is lost was carried out before the lock was free again, or never will be."""
        timeout = self.settings.reconnect_timeout
        found = keep_trying(self._entries, f"the look-up in {self.queue}", timeout=timeout)
        return tuple(each for each in found if each.task == task)

    def finish(self, write: str) -> None:
        if self.owner.kind == "job":
            with opened(self.settings, self.owner) as ledger:
                ledger.finish(write)


@dataclass(frozen=True, slots=True)
class AmqpSink:
    """A ``sink.links.SinkProtocol``."""

    name: str = "AMQP"

    def connect(self, settings: ConnectionSettings, *, patience: float = 0.0) -> AmqpSinkLink:
        return AmqpSinkLink(settings, patience=patience)

    def commit_ledger(self, settings: ConnectionSettings, owner: LedgerOwner) -> AmqpCommitLedger:
        return AmqpCommitLedger(settings, owner)


AMQP_SINK = AmqpSink()
