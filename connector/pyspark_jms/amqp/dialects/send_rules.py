"""The rules for a producer over AMQP, as data: spellings of addresses, and destinations that a broker refuses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import quote

from pyspark_jms.jms.names import AMQP_NODES, CONNECTOR_QUEUES, RefusedName

__all__ = ["DUPLICATE_ID_PROPERTY", "SendRules"]

DUPLICATE_ID_PROPERTY = "_AMQ_DUPL_ID"
"""Artemis drops a message whose value of this property it has seen before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRules:
    address_prefixes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What begins an address, by the kind of its destination: queue, topic, temp-queue, temp-topic."""

    percent_encoded: bool = False
    """Whether a name is percent-encoded in its address (RFC 3986)."""

    native_prefixes: tuple[str, ...] = ()
    """Beginnings of names that are addresses of the broker already, and are sent as they stand."""

    delays_delivery: bool = True
    """Whether the broker may hold a message back until its delivery time. Otherwise such a row is refused."""

    takes_message_ids: bool = True
    """Whether messages are sent with a message-id. Otherwise the broker gives each one of its own."""

    states_bytes: bool = True
    """Whether bytes without a content type are sent as ``application/octet-stream``. Consumers of a broker of JMS know
    them by their annotation, so that a row is written as it was read."""

    sends_timestamps: bool = False
    """Send a property that the row states as a timestamp as one. JMS has a long instead."""

    needs_body_section: bool = False
    """Whether the broker refuses a message without a body section, which AMQP 1.0 §3.2 demands."""

    refused_names: tuple[RefusedName, ...] = ()
    """Names of destinations that the broker would take for something else."""

    refused_in_rows: tuple[RefusedName, ...] = (AMQP_NODES,)
    """Names that an option may have and column ``destination`` may not: the broker acts on messages sent there."""

    def address(self, kind: str, name: str) -> str:
        if name.startswith(self.native_prefixes):
            return name
        return self.address_prefixes.get(kind, "") + (quote(name, safe="") if self.percent_encoded else name)

    def source_address(self, kind: str, name: str) -> str:
        """Return where messages are read; ``InvalidDestinationError`` for a refused name."""
        for rule in self.refused_names:
            if rule.when_reading:
                rule.check(name)
        return self.address(kind, name)

    def target_address(self, kind: str, name: str) -> str:
        """Return where messages are sent; ``InvalidDestinationError`` for a refused name."""
        self.check_name(name, by_row=False)
        return self.address(kind, name)

    def check_name(self, name: str, *, by_row: bool) -> None:
        """``InvalidDestinationError`` for a refused name. ``by_row``: it comes from column ``destination``."""
        for rule in self.refused_names:
            if rule.when_sending:
                rule.check(name)
        for rule in (*self.refused_in_rows, CONNECTOR_QUEUES) if by_row else ():
            rule.check(name)
