"""AMQP 1.0 for the sink's engine: the Protocols of ``sink.links``, implemented with ``link`` and ``columns``."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import pyarrow as pa

from pyspark_jms.amqp.columns.encode import encode
from pyspark_jms.amqp.link.commit_ledger import Admit, TokenLedger, opened
from pyspark_jms.amqp.link.management import open_amqp_management
from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.wire.types import Target
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.rows import EncodeOptions
from pyspark_jms.delivery.commit_token import LedgerEntry, LedgerOwner
from pyspark_jms.errors import JMSError, UnsupportedError
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import Destination
from pyspark_jms.management.destinations import require_destinations
from pyspark_jms.management.routing import shows_addresses
from pyspark_jms.network.connection import closed_on
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["AmqpSinkLink", "CommitLedger", "LedgerLink"]


class AmqpSinkLink(Producer):
    """A ``sink.links.SinkLink``: encoded bare messages are its blocks. The first rows decide where it attaches to."""

    def __init__(self, settings: ConnectionSettings, patience: float = 0.0, container_id: str | None = None) -> None:
        super().__init__(settings, patience=patience, container_id=container_id)
        self._settings = settings
        self._prefix = f"ID:{uuid.uuid4()}:"

    def require_destinations(self, destinations: Sequence[Destination]) -> None:
        if shows_addresses(self.dialect.management):
            require_destinations(open_amqp_management, self._settings, destinations)

    def encode(
        self,
        rows: pa.RecordBatch,
        *,
        in_transaction: bool = True,
        **how: Unpack[EncodeOptions],
    ) -> Sequence[MessageBlock]:
        blocks = encode(
            rows,
            dialect=self.dialect,
            message_id_prefix=self._prefix if how["now_ms"] else None,
            max_message_bytes=self._settings.max_message_bytes,
            **how,
        )
        if not self.is_open:
            by_row = "destination" in {name.lower() for name in rows.schema.names}
            if by_row and in_transaction:
                self.dialect.require(Feature.RELAY)
            self._open(None if by_row else how["destination"])
        return blocks

    def _open(self, destination: Destination | None) -> None:
        """Open the links. Where rows name their destinations, each message is routed by its ``to`` (the anonymous
        relay).
        """
        if destination is not None:
            what = f"attaching to {destination}"
            keep_trying(partial(self._attach, destination), what, timeout=self._patience, seen=self._patience > 0)
        elif self.has_anonymous_relay:
            self.open(Target())
        else:
            raise UnsupportedError(
                f"{self.dialect.name} does not route messages by their own destination over AMQP.",
                "Write to one destination: give option queue or topic, and no column destination.",
            )

    def _attach(self, destination: Destination) -> None:
        """A target that was there may be missing while the broker starts. RabbitMQ then ends the session."""
        address = self.dialect.send.target_address(destination.kind, destination.name)
        try:
            self.open(Target(address=address, capabilities=(str(destination.kind),)))
        except JMSError:
            if self._patience:
                self.close()
                self._connect()
            raise


class LedgerLink(AmqpSinkLink):
    """A ``SinkLink`` whose transaction can end with an entry of the ledger: it also replaces the token."""

    def __init__(self, settings: ConnectionSettings, owner: LedgerOwner, patience: float = 0.0) -> None:
        super().__init__(settings, patience, owner.queue)
        with closed_on(UnsupportedError, self.close):
            self.dialect.require(Feature.EXACTLY_ONCE_WRITE)
        self._patience = 0.0  # the ledger has the connection
        self._ledger = TokenLedger(self.connection, self.transactions, settings, owner)

    def send(self, block: MessageBlock, *, in_transaction: bool = True) -> None:
        """Rows that another link has encoded name their destinations themselves."""
        if not self.is_open:
            self._open(None)
        super().send(block, in_transaction=in_transaction)

    def commit_with_entry(self, entry: LedgerEntry, admit: Admit) -> None:
        self.await_sent()
        if not self._ledger.commit(entry, admit):
            self.transactions.roll_back()


@dataclass(frozen=True, slots=True)
class CommitLedger:
    """One entry for each committed task, in a token at the broker. Each look-up connects and disconnects."""

    settings: ConnectionSettings
    owner: LedgerOwner

    def connect(self, patience: float = 0.0) -> LedgerLink:
        return LedgerLink(self.settings, self.owner, patience)

    def find(self) -> tuple[LedgerEntry, ...]:
        with opened(self.settings, self.owner) as ledger:
            return ledger.find().entries

    def finish(self, write: str) -> None:
        if self.owner.kind == "job":
            with opened(self.settings, self.owner) as ledger:
                ledger.finish(write)
