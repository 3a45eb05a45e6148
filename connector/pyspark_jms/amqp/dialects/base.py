"""The AMQP dialect: one frozen value for each broker, and a broker overrides only what differs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import unquote

from pyspark_jms.amqp.dialects.cannot import OTHER_BROKER
from pyspark_jms.amqp.dialects.send_rules import SendRules
from pyspark_jms.jms.added_names import ANY_BROKER
from pyspark_jms.jms.dialect import BrokerDialect
from pyspark_jms.jms.features import Feature, Refusal
from pyspark_jms.management.attributes import Management

__all__ = ["ACTIVEMQ_HEADERS", "COMPRESSED_PROPERTY", "IGNORED_PROPERTIES", "SIZE_PROPERTY", "Dialect"]

IGNORED_PROPERTIES = ANY_BROKER.names | {"JMSXDeliveryCount"}
"""Application properties that a broker adds when it converts a message, without a meaning of their own."""

IGNORED_PROPERTY_PREFIXES = ("_AMQ_", *ANY_BROKER.prefixes)
"""Beginnings of further such names."""

ACTIVEMQ_HEADERS = frozenset({"destination", "destination-type", "receipt", "transaction", "content-length"})
"""Headers of STOMP's SEND that Artemis and Classic leave in a message."""

COMPRESSED_PROPERTY, SIZE_PROPERTY = "_AMQ_LARGE_COMPRESSED", "_AMQ_LARGE_SIZE"
"""Whether a CORE client has compressed the body, and the bytes of the body before that.

Artemis decompresses such a body when it converts the message, and takes as many bytes of a BytesMessage as the
compressed body had. The bodies of other messages contain their lengths, and arrive whole.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect(BrokerDialect):
    """The facts that distinguish one broker's AMQP. Capabilities that its frames show are not repeated here."""

    products: tuple[str, ...] = ()
    """Beginnings of ``product`` in the properties of the broker's ``open``, by which the broker is detected."""

    hosts: tuple[str, ...] = ()
    """Ends of the host names of a hosted broker, by which it is detected if its ``open`` names no known product."""

    tested_versions: str
    """Versions of the broker that the tests use; ``none``: the dialect is from documentation."""

    ignored_properties: frozenset[str] = IGNORED_PROPERTIES
    """Application properties that are not the producer's, and do not become properties of the row."""

    ignored_property_prefixes: tuple[str, ...] = IGNORED_PROPERTY_PREFIXES

    ignored_stomp_headers: frozenset[str] = frozenset()
    """Further names to leave out of a message that a STOMP client sent: the headers of its SEND frame."""

    destination_prefixes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Beginnings of ``to`` and ``reply-to`` that name the kind of a destination, as ``queue://``, with its word."""

    native_kinds: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Beginnings of further addresses, with the word of their destination, whose name is the whole address."""

    max_unacknowledged: int | None = None
    """The most messages that may be in delivery to a reader, because the broker takes messages back after a time and
    counts an attempt. None if only the prefetch window limits them.
    """

    cannot: Mapping[Feature, Refusal] = field(default_factory=lambda: OTHER_BROKER)
    """That of a broker of which nothing else was seen, unless the dialect says otherwise."""

    virtual_host_prefix: str = ""
    """What begins ``hostname`` of ``open`` (AMQP 1.0 §2.7.1) if it names a virtual host."""

    browses: bool = True
    """By distribution mode ``copy``. That a broker repeats the mode in its attach is no proof (RabbitMQ 4.0)."""

    browse_shows_expired: bool = False
    """Whether a browse shows messages that have expired, until the broker looks for them (Artemis: every 30 s)."""

    refused_in_container_ids: str = ""
    """Regular expression: the characters that the id of a container must not have."""

    sql_filters_since: tuple[int, int] | None = None
    """The first version whose streams filter by SQL. An older one repeats such a filter and delivers everything."""

    default_redeliveries: int | None = None
    """After how many redeliveries a quorum queue without a limit of its own drops a message. None if the broker has no
    such queues.
    """

    changes_annotations: bool = False
    """Whether a redelivery may have other annotations than the first delivery."""

    checks_user_id: bool = False
    """Whether the broker refuses a message whose ``user-id`` is another user's."""

    origin_names: tuple[str, ...] = ()
    """Annotations and properties by which a message in the broker's own dead-letter queue names the queue and the
    address that it came from."""

    added_annotations: tuple[str, ...] = ()
    """Beginnings of the names of annotations that the broker adds to such a message."""

    refuses_at_discharge: bool = False
    """Whether a transaction fails if the broker refused one of its presettled messages. Otherwise the outcome of each
    message is awaited. Only of links with an address: without one, no broker was seen to do it."""

    management: Management | None = None
    """How the broker answers management requests. None if it does not."""

    send: SendRules = field(default_factory=SendRules)
    """What the broker takes from a producer."""

    def split_address(self, address: str) -> tuple[str | None, str]:
        """The word that ``to`` or ``reply-to`` names, or None; and the name whose ``send.address`` it is."""
        for prefix, word in self.destination_prefixes.items():
            if address.startswith(prefix):
                return word, self._name(address, address.removeprefix(prefix))
        for prefix, word in self.native_kinds.items():
            if address.startswith(prefix):
                return word, address
        return None, address

    def _name(self, address: str, encoded: str) -> str:
        """Return the name of an address, or the address with its prefix if the name would not lead back to it."""
        name = unquote(encoded) if self.send.percent_encoded else encoded
        is_other = name.startswith(self.send.native_prefixes) or "\N{REPLACEMENT CHARACTER}" in name
        return address if is_other else name

    def adds(self, name: str) -> bool:
        """Return whether the broker added a property of this name, which a message that is sent on does not have."""
        if name in {COMPRESSED_PROPERTY, SIZE_PROPERTY} or name in self.set_by_client:
            return False  # by the first two, a later reader sees that the broker has cut the body
        beginnings = (*self.ignored_property_prefixes, *self.added_properties)
        return name in self.ignored_properties or name.startswith(beginnings)
