"""What the engine of exactly-once reads needs of a protocol. ``amqp.reading`` implements it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.staged import Packed
from pyspark_jms.delivery.register.token import StoredToken, Token
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.source.links import Connected, MessageSource, SourceProtocol

__all__ = ["Probe", "ReadSource", "ReaderLink", "ReaderProtocol"]


class ReadSource(MessageSource, Protocol):
    """A queue or subscription that a task reads: no message comes before ``resume`` or after ``pause``."""

    @property
    def was_empty(self) -> bool:
        """Whether the last ``pause`` has proven that the source has no more messages."""

    def suspect(self, block: MessageBlock) -> tuple[int, str]:
        """The highest number of earlier deliveries of one message, and what identifies that message."""

    def resume(self) -> None: ...

    def pause(self) -> None:
        """Returns when no more messages can come."""

    def take(self, *, only_full: bool = False) -> list[MessageBlock]:
        """``only_full``: blocks to which no more messages are added."""

    def release(self, ids: Sequence[bytes]) -> None:
        """Give messages back; their delivery counts stay."""


class ReaderLink(Connected, Protocol):
    """One connection with the register of a reader, and with its sources from ``subscribe`` on."""

    @property
    def patience_seconds(self) -> float:
        """The broker has ended every lost connection by then."""

    def carry_out(self, command: object) -> Any:
        """A command of ``delivery.register.steps`` that is one act at the broker → its event. It waits for nothing that
        an earlier holder of the register may still do: ``SubscriptionInUseError`` if another connection has the lock.
        """

    @property
    def sources(self) -> Sequence[ReadSource]: ...

    def subscribe(self, subscriptions: Sequence[Subscription]) -> None: ...

    def add_to_value(
        self, source: int, ids: list[bytes], stream: str, batch: int, blocks: Iterable[tuple[int, int, Packed]]
    ) -> int:
        """Send messages of a source in the open transaction: first numbers, counts and bytes. Returns how many blocks.

        ``Replace`` accepts the messages with these ids.
        """

    def send_away(self, source: int, ids: list[bytes], queue: str | None, letters: Sequence[Any]) -> None:
        """One transaction: accept messages that are not in the value, and send dead letters for them."""

    def finish(self) -> None:
        """As ``close``, when nothing is held: the connection may be kept."""


class Probe(Connected, Protocol):
    """A connection of the planner, which receives nothing."""

    @property
    def queues(self) -> Sequence[str]:
        """The queues that are read, as the broker's management names them."""

    def has_messages(self) -> bool: ...

    def peek(self, base: str, reader: int) -> Iterable[StoredToken[Token]]: ...


class ReaderProtocol(SourceProtocol, Protocol):
    def connect_reader(
        self, settings: ConnectionSettings, condition: StateCondition, *, base: str, reader: int, client_id: str | None
    ) -> ReaderLink:
        """``UnsupportedError`` for a broker that cannot keep a register."""

    def connect_probe(
        self,
        settings: ConnectionSettings,
        destinations: Sequence[Destination],
        selector_for: Callable[[Any], str | None],
        durable: DurableSubscription | None = None,
        *,
        base: str,
    ) -> Probe: ...
