"""What the engine of reading needs of a protocol: ``SourceProtocol`` connects, ``SourceLink`` receives.

The engine knows nothing else of a protocol. ``stomp.source`` and ``amqp.source`` implement both. What only AMQP can do
has no port: ``source.readers`` and two of ``source.stores`` use its classes. Each protocol must have all members of all
ports, so they have at most 50 together. What an engine must know of a broker is data: ``jms.dialect``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Unpack

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.dead_letter import DeadLetter, OversizedMessage
from pyspark_jms.columns.origins import Origin
from pyspark_jms.columns.schema import DecodeOptions, WantedColumns
from pyspark_jms.delivery.subscription_ledger import Recognition
from pyspark_jms.jms.dialect import BrokerDialect
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import BodyChoice, Subscription
from pyspark_jms.management.destinations import require_destinations
from pyspark_jms.management.link import ManagementLink
from pyspark_jms.management.queue_facts import QueueFacts, count_matching, look_up_queues
from pyspark_jms.network.connection import OpenConnection, StateCondition
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.options.source import SourceOptions

__all__ = ["MessageSource", "Reading", "SourceLink", "SourceProtocol"]


class MessageSource(Protocol):
    """A subscription, its received messages, and what the engine asks of them."""

    @property
    def subscription(self) -> Subscription: ...

    def waiting(self) -> tuple[int, int]:
        """Messages, and bytes, that were received and not taken."""

    def take(self) -> Sequence[MessageBlock]:
        """The messages received since the last call. Those of a browse may end with the dialect's ``browse_end_id``."""

    def take_oversized(self) -> Sequence[OversizedMessage]: ...

    def check(self) -> None:
        """Raise what ended the connection or the link, ``MessageTooLargeError`` for a message that stops the query, and
        ``PrefetchExceededError`` if the broker has delivered more than the window allows.
        """

    def redelivered(self, block: MessageBlock) -> int:
        """Return how many messages the broker marked as redelivered."""

    def sent_ms(self, block: MessageBlock, index: int) -> int | None:
        """Return when a message was sent, in milliseconds since 1970; None if it does not say so."""

    def message_id(self, identifier: bytes) -> str:
        """A message's id for a log line."""


class SourceLink(MessageSource, OpenConnection[BrokerDialect], Protocol):
    """A connection, which links may share, and from ``subscribe`` on one subscription."""

    def shares(self, other: Any) -> bool:
        """Return whether both use one connection."""

    @property
    def confirms_acknowledgements(self) -> bool:
        """Return whether the broker has stored an acknowledgement once its receipt is there."""

    def subscribe(self, subscription: Subscription) -> None:
        """Once. After an error the connection is closed.

        ``UnsupportedError``: this broker cannot do what the subscription wants. ``SelectorChangedError``,
        ``InvalidDestinationError``: it has another durable subscription of that name.
        """

    def fills_window(self) -> bool:
        """Return whether so much is in flight that a larger window would be filled, too."""

    def acknowledge(self, ids: Iterable[bytes]) -> str:
        """Send the acknowledgements, and return the receipt that will confirm them."""

    def has_receipt(self, receipt: str, *, wait: bool = False) -> bool:
        """Return whether the broker has confirmed it, or raise the error of its refusal. With ``wait``, wait until it
        has.
        """

    def ping(self) -> str:
        """Request a receipt, as a sign of life. It changes nothing, and the call waits for nothing.

        A broker may give no sign of life: then there is never a receipt, and a wait for it is an ``UnsupportedError``.
        """

    def probe(self) -> str:
        """Request a receipt, as a sign of life; it does not prove that no message is on its way."""

    def unexpired(self, block: MessageBlock, at_ms: float) -> MessageBlock:
        """The messages of a browse without those that the broker shows though they had expired at that time."""

    def shown(self, block: MessageBlock) -> None:
        """The messages of a browse are not kept any more, and more may come."""


class SourceProtocol(Protocol):
    """One value for each protocol: its functions before, beside and after a connection."""

    def connect(self, settings: ConnectionSettings, condition: StateCondition, beside: Any = None) -> SourceLink:
        """``beside``: a link of this protocol, which has subscribed. The new one shares its connection."""

    def decode(self, block: MessageBlock, *, dialect: str, **how: Unpack[DecodeOptions]) -> Any:
        """One RecordBatch of the schema, with which selectors are compared: its types are those that the broker has.
        ``columns.envelope`` may find envelopes in it.
        """

    def has_unheld_time(self, dialect: str, block: MessageBlock, index: int) -> bool:
        """Return whether the message has a time that no column can hold. A broker's selector may have compared it."""

    def recognition(self, dialect: str) -> Recognition | None:
        """Return how a redelivered message is recognised; None where it cannot be."""

    def open_management(self, settings: ConnectionSettings) -> ManagementLink:
        """A connection for management requests. ``UnsupportedError`` or ``JMSSecurityError`` if there can be none."""

    def send_dead_letters(self, settings: ConnectionSettings, queue: str, letters: Sequence[DeadLetter]) -> None:
        """Returns when the broker has confirmed all of them."""

    def end_subscription(
        self, settings: ConnectionSettings, topic: Destination, subscription: DurableSubscription
    ) -> None:
        """Delete the subscription and its messages on the broker. ``InvalidDestinationError`` if it does not exist."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read, and by which protocol."""

    options: SourceOptions
    protocol: SourceProtocol

    def with_options(self, **changes: Any) -> "Reading":
        return replace(self, options=replace(self.options, **changes))

    def connect(self, condition: StateCondition, beside: SourceLink | None = None) -> SourceLink:
        return self.protocol.connect(self.options.connection, condition, beside)

    def decode(
        self,
        block: MessageBlock,
        dialect: str,
        source: Origin,
        *,
        first_sequence: int = 0,
        body_type: BodyChoice | None = None,
        wanted: WantedColumns | None = None,
    ) -> Any:
        """The rows of these messages (``SourceProtocol.decode``), without ``body_type`` by option bodyType."""
        how = DecodeOptions(
            source=source,
            first_sequence=first_sequence,
            body_type=body_type or self.options.body_type,
            wanted=wanted,
        )
        return self.protocol.decode(block, dialect=dialect, **how)

    def look_up(self, queues: Sequence[str]) -> dict[str, QueueFacts]:
        """Ask the management what these queues are (``look_up_queues``)."""
        return look_up_queues(self.protocol.open_management, self.options.connection, queues)

    def count_matching(self, queue: str, selector: str) -> int | None:
        """Ask the management how many messages of a queue match (``count_matching`` of ``management.queue_facts``)."""
        return count_matching(self.protocol.open_management, self.options.connection, queue, selector)

    def require_destination(self, destination: Destination) -> None:
        """Refuse a destination at which what is sent would not arrive (``require_destinations``)."""
        require_destinations(self.protocol.open_management, self.options.connection, [destination])
