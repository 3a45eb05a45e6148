"""Options ``brokerUrl`` and ``broker`` → the protocol, and what its brokers refuse. Nothing connects here."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark_jms.amqp.dialects import DIALECTS as AMQP_DIALECTS
from pyspark_jms.amqp.dialects import refusals as amqp_refusals
from pyspark_jms.errors import OptionConflictError, UnsupportedError
from pyspark_jms.jms.dialect import BrokerDialect
from pyspark_jms.jms.model import DestinationKind, DurableSubscription
from pyspark_jms.network.address import Protocol as ProtocolName
from pyspark_jms.stomp.dialects import DIALECTS as STOMP_DIALECTS
from pyspark_jms.stomp.dialects import refusals as stomp_refusals

__all__ = [
    "BROKERS",
    "dialect_of",
    "possible_dialects",
    "protocol_of",
    "require_connections",
    "require_durable",
    "require_exactly_once_reads",
    "require_exactly_once_writes",
    "require_known_broker",
    "require_readable",
    "require_streams",
    "require_transactions",
]


_DIALECTS: Mapping[ProtocolName, Mapping[str, Any]] = {"stomp": STOMP_DIALECTS, "amqp": AMQP_DIALECTS}

BROKERS = tuple(dict.fromkeys(name for dialects in _DIALECTS.values() for name in dialects))
"""The values of option ``broker`` beside ``auto``."""


def protocol_of(values: Mapping[str, Any]) -> ProtocolName:
    """The protocol of ``brokerUrl``; STOMP without the option, which is refused elsewhere."""
    addresses = values["brokerUrl"]
    protocol: ProtocolName = addresses[0].protocol if addresses else "stomp"
    return protocol


def require_known_broker(values: Mapping[str, Any]) -> None:
    """The broker of option ``broker`` speaks the protocol of ``brokerUrl``."""
    protocol, broker = protocol_of(values), values["broker"]
    if broker != "auto" and broker not in _DIALECTS[protocol]:
        raise OptionConflictError(
            f"Option broker={broker} is not a broker that this release reads over {protocol.upper()}.",
            f"Over {protocol.upper()}: {', '.join(('auto', *_DIALECTS[protocol]))}.",
        )


def possible_dialects(values: Mapping[str, Any]) -> tuple[BrokerDialect, ...]:
    """The dialect of option ``broker``, or with ``auto`` all dialects of the protocol."""
    dialects, broker = _DIALECTS[protocol_of(values)], values["broker"]
    return tuple(dialects.values()) if broker == "auto" else (dialects[broker],)


def dialect_of(protocol: ProtocolName, broker: str) -> BrokerDialect:
    """The dialect with this value of option ``broker``."""
    dialect: BrokerDialect = _DIALECTS[protocol][broker]
    return dialect


def _named(values: Mapping[str, Any]) -> Any:
    """The dialect of option ``broker``; None for ``auto``, which is decided when the broker has answered."""
    require_known_broker(values)
    return None if values["broker"] == "auto" else _DIALECTS[protocol_of(values)][values["broker"]]


# --- what a broker, or its protocol, cannot do -------------------------------------------------------------


def require_readable(values: Mapping[str, Any]) -> None:
    """For option topic of a read."""
    if values["topic"] is not None and protocol_of(values) == "amqp" and (dialect := _named(values)) is not None:
        amqp_refusals.require_readable(dialect, DestinationKind.TOPIC)


def require_streams(values: Mapping[str, Any]) -> None:
    """For option streamOffset."""
    if protocol_of(values) == "stomp" or values["topic"] is not None:
        raise UnsupportedError(
            "Option streamOffset is given, and only queues are streams, and only over AMQP.",
            "Use brokerUrl amqp://HOST:5672 and option queue, or remove streamOffset.",
        )
    if (dialect := _named(values)) is not None:
        amqp_refusals.require_streams(dialect)


def require_durable(values: Mapping[str, Any], durable: DurableSubscription) -> None:
    dialect = _named(values)
    if dialect is not None and protocol_of(values) == "amqp":
        dialect.refused_subscriptions.check(values["topic"], durable)
    elif dialect is not None:
        stomp_refusals.require_durable(dialect, values["topic"], durable, selected=values["selector"] is not None)


def require_connections(values: Mapping[str, Any]) -> None:
    """For option connections."""
    if protocol_of(values) == "amqp" and (dialect := _named(values)) is not None:
        amqp_refusals.require_connections(dialect, values["connections"])


def require_exactly_once_reads(values: Mapping[str, Any], given: Sequence[str]) -> None:
    """``given``: the options that say where the messages of a batch are kept, and by whom."""
    dialect = _named(values)
    if protocol_of(values) == "amqp":
        if "journalLocation" in given:
            amqp_refusals.refuse_journal()
        if dialect is not None:
            amqp_refusals.require_staging(dialect)
        return
    if dialect is not None:
        stomp_refusals.require_stable_ids(dialect)
    stomp_refusals.require_journal(given)


def require_exactly_once_writes(values: Mapping[str, Any]) -> None:
    if protocol_of(values) == "stomp":
        stomp_refusals.refuse_exactly_once_writes()
    if (dialect := _named(values)) is not None:
        amqp_refusals.require_register(dialect)


def require_transactions(values: Mapping[str, Any]) -> None:
    refusals: Any = amqp_refusals if protocol_of(values) == "amqp" else stomp_refusals
    if (dialect := _named(values)) is not None:
        refusals.require_transactions(dialect)
