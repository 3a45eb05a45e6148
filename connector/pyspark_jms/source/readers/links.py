"""What the engine of exactly-once reads needs of a protocol. ``amqp.reading`` implements it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.staged import Packed, StagedBlock
from pyspark_jms.delivery.register.token import StoredToken, Token
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.network.state_condition import StateCondition
from pyspark_jms.source.links import Connected, MessageSource, SourceProtocol

__all__ = ["Probe", "ReadSource", "ReaderLink", "ReaderProtocol", "RegisterLink", "StagedRange"]


class StagedRange(Protocol):
    """A block in the register: the messages with the numbers ``first`` to ``end`` (not included)."""

    @property
    def first(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def block(self) -> StagedBlock: ...


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


class RegisterLink(Connected, Protocol):
    """One connection with the register of a reader. Most methods are the commands of a machine."""

    @property
    def patience_seconds(self) -> float:
        """The broker has ended every lost connection by then."""

    def lock(self) -> bool:
        """``SubscriptionInUseError``: another connection has the lock."""

    def require_lock(self) -> None: ...

    def prove(self) -> None: ...

    def peek(self) -> tuple[StoredToken[Token], ...]: ...

    def browse(self, stream: str, batch: int) -> Sequence[StagedRange]: ...

    def open(self) -> None: ...

    def take(self, expected: int | None) -> tuple[StoredToken[Token], ...]: ...

    @property
    def blocks(self) -> tuple[tuple[str, int], ...]:
        """The streams and batches of the blocks that were taken."""

    def accept(self) -> None: ...

    def create(self, token: Token) -> None: ...

    def replace(self, token: Token) -> None:
        """Without messages of the sources."""

    def finish(self) -> None:
        """As ``close``, when nothing is held: the connection may be kept."""


class ReaderLink(RegisterLink, Protocol):
    """The sources of a reader, on the connection with its register."""

    @property
    def sources(self) -> Sequence[ReadSource]: ...

    def subscribe(self, subscriptions: Sequence[Subscription]) -> None: ...

    def send_value(self, stream: str, batch: int, blocks: Iterable[tuple[int, int, Packed]]) -> int:
        """First numbers, counts and messages, in the transaction that ``replace_value`` ends. Returns how many."""

    def send_away(self, source: int, ids: list[bytes], queue: str | None, letters: Sequence[Any]) -> None:
        """One transaction: accept messages that are not in the value, and send dead letters for them."""

    def replace_value(self, token: Token, accepted: Sequence[tuple[int, list[bytes]]]) -> None:
        """``replace`` with messages: the numbers of their sources, and their ids."""


class Probe(Connected, Protocol):
    """A connection of the planner, which receives nothing."""

    @property
    def queues(self) -> Sequence[str]:
        """The queues that are read, as the broker's management names them."""

    @property
    def server(self) -> str | None: ...

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
