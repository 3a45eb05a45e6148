"""What every protocol's dialect says of its broker: the facts by which the engines and the options decide."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Literal

from pyspark_jms.errors import InvalidOptionError, JMSError, SelectorResidualError, UnsupportedError
from pyspark_jms.jms.features import Feature, Refusal
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.jms.names import RefusedSubscriptions
from pyspark_jms.jms.rules import is_left_out
from pyspark_jms.jms.subscription import Subscription

__all__ = ["BrokerDialect", "Target"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDialect:
    """The dialects of a protocol extend it with what its own code needs."""

    name: str
    """The value of option ``broker`` that selects this dialect."""

    selector_dialect: str | None
    """The name of the ``jms_selector`` dialect in which the broker evaluates selectors, or None if it has no selectors.
    """

    browses: bool
    """Whether the broker shows messages without delivering them, so that a window is enough for a queue of any length.
    Otherwise a batch read receives messages and gives them back."""

    browse_end_id: bytes = b""
    """The id, as a received block has it, of the mark by which the broker ends a browse. Empty: it sends no mark."""

    counted_return: bytes = b""
    """What a message contains that was given back before, if the broker has counted that. Empty: it does not count."""

    browse_is_limited: bool = False
    """Whether the broker may end a browse before the end of the queue."""

    cannot: Mapping[Feature, Refusal] = field(default_factory=dict)
    """What the broker, or this release with it, does not do over this protocol, and why."""

    refused_subscriptions: RefusedSubscriptions = field(default=RefusedSubscriptions())
    """Names of durable subscriptions that the broker would take for others."""

    confirms_single_messages: bool = True
    """Whether the broker confirms a message that is sent outside of a transaction."""

    acknowledges_in_transactions: bool = True
    """Whether a transaction that sends messages can also acknowledge those that they were made of."""

    carries_all_bodies: bool = True
    """False: a map, stream or object may arrive as an empty text."""

    added_properties: tuple[str, ...] = ()
    """Beginnings of the names of properties that the broker adds to a message in its own dead-letter queue, and that
    rows have."""

    reserved_properties: frozenset[str] = frozenset()
    """Names of properties that rows must not use: the broker acts on them, takes them for a header, or drops them."""

    reserved_prefixes: tuple[str, ...] = ()
    """Beginnings of further such names."""

    set_by_broker: frozenset[str] = frozenset()
    """Properties that the broker sets in messages that it delivers. The sink leaves them out without an error, so that
    a row can be written as it was read, also where ``reserved_properties`` or ``reserved_prefixes`` has the name."""

    set_by_client: frozenset[str] = frozenset()
    """Names with a reserved prefix that a client is meant to set: rows may use them."""

    widens_again: bool = False
    """Whether a window cannot grow, is in bytes, and a queue can be left and subscribed to again with a larger one at
    no delivery attempt."""

    silent_end: str = ""
    """The likely cause, and the remedy, when the broker ends connections again and again without a reason. Empty: it
    always gives one."""

    def can(self, feature: Feature) -> bool:
        return feature not in self.cannot

    def require(self, *features: Feature) -> None:
        """Raise the error of the first feature that the broker lacks."""
        for feature in features:
            if (refusal := self.cannot.get(feature)) is not None:
                raise refusal.error(self.name)

    def left_out(self, name: str) -> bool:
        """Return whether a property of a row is not sent, because the provider sets it."""
        return is_left_out(name, self.set_by_broker)

    def name_problem(self, name: str) -> str | None:
        """Return why a message to this broker cannot have a property of this name; None if it can."""
        if name in self.reserved_properties:
            return f"is one that {self.name} acts on"
        if name.startswith(self.reserved_prefixes) and name not in self.set_by_client:
            return f"has a prefix that {self.name} reserves"
        return None

    def require_subscription(self, wanted: Subscription) -> None:
        """Raise the error of what the subscription needs and the broker lacks, or of a name that it would misread."""
        durable = wanted.durable
        if wanted.destination.kind is DestinationKind.TOPIC:
            self.require(Feature.TOPICS)
        if wanted.connections > 1:
            self.require(Feature.CONNECTIONS)
        if durable is None:
            return
        self.refused_subscriptions.check(wanted.destination.name, durable)
        if durable.shared:
            self.require(Feature.SHARED)
        if wanted.selector is not None and durable.client_id is None:
            self.require(Feature.SELECTOR_WITHOUT_CLIENT_ID)

    @property
    def has_transactions(self) -> bool:
        """Return whether a commit takes effect as a whole, and its confirmation proves that it did."""
        return self.can(Feature.TRANSACTIONS)


@dataclass(frozen=True, slots=True)
class Target:
    """The broker of a query, as far as its options tell."""

    protocol: Literal["stomp", "amqp"]

    dialects: tuple[BrokerDialect, ...]
    """The dialects that the broker may have: one, or with ``broker=auto`` all of the protocol. Its answer decides."""

    def require(self, *features: Feature) -> None:
        """Raise the error of the first feature that none of the dialects has."""
        for feature in features:
            self.require_any(methodcaller("require", feature))

    def require_subscription(self, wanted: Subscription) -> None:
        self.require_any(methodcaller("require_subscription", wanted))

    def require_any(self, check: Callable[[BrokerDialect], object]) -> None:
        """Raise the first error of ``check`` if it raises one for every dialect."""
        refused: list[JMSError] = []
        for dialect in self.dialects:
            try:
                check(dialect)
            except (UnsupportedError, SelectorResidualError, InvalidOptionError) as error:
                refused.append(error)
        if len(refused) == len(self.dialects):
            raise refused[0]
