"""What the engine of reads whose tasks receive needs of a protocol. ``amqp.reading`` implements it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from pyspark_jms.delivery.register.token import Sighting, Token
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.address import Address
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.source.links import BrokerDialect, SourceProtocol
from pyspark_jms.source.staged.links import SourcesLink, Stretch

__all__ = ["Probe", "ReaderLink", "ReaderProtocol"]


class ReaderLink(SourcesLink, Protocol):
    """One connection with the register of a reader, and its sources. The methods are the commands of a machine."""

    sent: int
    """Blocks of the value that is being sent."""

    def require_lock(self) -> None: ...

    def prove(self) -> None: ...

    def peek(self) -> tuple[Sighting, ...]: ...

    def browse(self, stream: str, batch: int) -> Sequence[Stretch]: ...

    def open(self) -> None: ...

    def take(self, expected: int) -> tuple[tuple[Token, ...], tuple[tuple[str, int], ...]]: ...

    def accept(self) -> None: ...

    def begin_value(self, stream: str, batch: int) -> None: ...

    def create(self, token: Token) -> None: ...

    def replace(self, token: Token) -> None:
        """Without messages of the sources."""

    def move(self, token: Token, accepted: Sequence[tuple[int, list[bytes]]]) -> None:
        """With these. Numbers of lanes, and ids of their messages."""

    def subscribe(self, subscriptions: Sequence[Subscription]) -> None: ...

    def finish(self) -> None:
        """As ``close``, when nothing is held: the end of the connection is enough."""


class Probe(Protocol):
    """A connection of the planner, which receives nothing."""

    @property
    def dialect(self) -> BrokerDialect: ...

    @property
    def address(self) -> Address: ...

    @property
    def queues(self) -> Sequence[str]:
        """The queues that are read, as the broker's management names them."""

    @property
    def server(self) -> str | None: ...

    def has_messages(self) -> bool: ...

    def peek(self, base: str, reader: int) -> Iterable[Sighting]: ...

    def close(self) -> None: ...

    def drop(self) -> None: ...


class ReaderProtocol(SourceProtocol, Protocol):
    def connect_reader(
        self, settings: ConnectionSettings, arrivals: Any, *, base: str, reader: int, client_id: str | None
    ) -> ReaderLink: ...

    def connect_probe(
        self,
        settings: ConnectionSettings,
        destinations: Sequence[Destination],
        selector_for: Callable[[Any], str | None],
        durable: DurableSubscription | None = None,
        *,
        base: str,
    ) -> Probe: ...
