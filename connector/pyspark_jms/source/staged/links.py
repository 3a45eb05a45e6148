"""What the engine of staged reads needs of a protocol. ``amqp.staging`` implements it."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.staged import Packed, StagedBlock
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.address import Address
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.source.links import BrokerDialect, SourceProtocol, Timestamped, Unmappable

__all__ = ["SourcesLink", "StagedLane", "StagedLink", "StagedProtocol", "StagedToken", "Stretch"]


class StagedToken(Protocol):
    @property
    def text(self) -> str: ...

    @property
    def deliveries(self) -> int: ...


class Stretch(Protocol):
    """A block in the staging queue: the messages with the numbers ``first`` to ``end`` (not included)."""

    @property
    def first(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def moved_ms(self) -> int: ...

    @property
    def block(self) -> StagedBlock: ...


class StagedLane(Unmappable, Timestamped, Protocol):
    """A source of the stream: no message comes before ``resume`` or after ``pause``."""

    @property
    def subscription(self) -> Subscription: ...

    @property
    def was_empty(self) -> bool:
        """Whether the last ``pause`` has proven that the source has no more messages."""

    def redelivered(self, block: MessageBlock) -> int: ...

    def most_deliveries(self, block: MessageBlock) -> int:
        """The highest number of earlier deliveries of one message."""

    def suspect(self, block: MessageBlock) -> tuple[int, str]:
        """The highest number of earlier deliveries of one message, and what identifies that message."""

    def resume(self) -> None: ...

    def pause(self) -> None:
        """Returns when no more messages can come."""

    def waiting(self) -> tuple[int, int]:
        """Messages and bytes received and not taken."""

    def take(self, *, only_full: bool = False) -> list[MessageBlock]:
        """``only_full``: blocks to which no more messages are added."""

    def take_oversized(self) -> list[Any]: ...

    def check(self) -> None:
        """Raise what ended the link, and ``MessageTooLargeError`` for a message that stops the query."""

    def release(self, ids: Sequence[bytes]) -> None:
        """Give messages back; their delivery counts stay."""


class SourcesLink(Protocol):
    """One connection with a lock and the sources: what the intake needs of it."""

    @property
    def dialect(self) -> BrokerDialect: ...

    @property
    def address(self) -> Address: ...

    @property
    def received_bytes(self) -> int: ...

    @property
    def patience_seconds(self) -> float:
        """The broker has ended every lost connection by then."""

    @property
    def lanes(self) -> Sequence[StagedLane]: ...

    def lock(self) -> None:
        """``SubscriptionInUseError``: another connection has the lock."""

    def subscribe(self, subscriptions: Sequence[Subscription]) -> None: ...

    def send_blocks(self, blocks: Iterable[tuple[int, int, Packed]], *, finished: int = 0) -> None:
        """First numbers, counts and messages, in the transaction of the next ``move``.

        ``finished``: ``take_finished`` of this number will follow, so the broker may send its blocks meanwhile.
        """

    def send_away(self, lane: int, ids: list[bytes], queue: str | None, letters: Sequence[Any]) -> None:
        """One transaction: accept messages that are not staged, and send dead letters for them."""

    def close(self) -> None: ...

    def drop(self) -> None: ...


class StagedLink(SourcesLink, Protocol):
    """The tokens and blocks of one stream, on the same connection."""

    @property
    def server(self) -> str | None: ...

    def check(self) -> None: ...

    def tokens(self) -> Sequence[StagedToken]:
        """Only what ``delivery.staging.tokens.is_token``; the same holds for ``take_tokens``."""

    def create_token(self, text: str) -> None: ...

    def renew_token(self, text: str) -> None: ...

    def take_tokens(self) -> Sequence[str]: ...

    def take_finished(self, below: int) -> int:
        """Returns how many blocks."""

    def blocks(self) -> Sequence[Stretch]: ...

    def move(self, token: str, accepted: Sequence[tuple[int, list[bytes]]]) -> None:
        """Ends the transaction. ``accepted``: numbers of lanes, and ids of their messages."""


class StagedProtocol(SourceProtocol, Protocol):
    def connect_staging(
        self,
        settings: ConnectionSettings,
        arrivals: Any,
        *,
        queue: str,
        stream: str,
        topic: Destination,
        durable: DurableSubscription | None,
    ) -> StagedLink:
        """``UnsupportedError`` for a broker that cannot keep a staging queue. ``InvalidOptionError`` for a durable
        subscription to ``topic`` that the broker would take for another one.
        """
