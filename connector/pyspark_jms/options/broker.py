"""Options ``brokerUrl`` and ``broker`` → the protocol, and the dialects that are possible. Nothing connects here."""

from collections.abc import Mapping

from pyspark_jms.amqp.dialects import DIALECTS as AMQP_DIALECTS
from pyspark_jms.errors import OptionConflictError
from pyspark_jms.jms.dialect import BrokerDialect, Target
from pyspark_jms.network.address import Protocol
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import DIALECTS as STOMP_DIALECTS

__all__ = ["BROKERS", "dialect_of", "target_of"]

_DIALECTS: Mapping[Protocol, Mapping[str, BrokerDialect]] = {"stomp": STOMP_DIALECTS, "amqp": AMQP_DIALECTS}

BROKERS = tuple(dict.fromkeys(name for dialects in _DIALECTS.values() for name in dialects))
"""The values of option ``broker`` beside ``auto``."""


def dialect_of(protocol: Protocol, broker: str) -> BrokerDialect:
    return _DIALECTS[protocol][broker]


def target_of(settings: ConnectionSettings) -> Target:
    """Raise an ``OptionConflictError`` if the broker does not speak the protocol of ``brokerUrl``."""
    protocol, broker = settings.protocol, settings.broker
    dialects = _DIALECTS[protocol]
    if broker == "auto":
        return Target(protocol, tuple(dialects.values()))
    if broker not in dialects:
        raise OptionConflictError(
            f"Option broker={broker} is not a broker that this release reads over {protocol.upper()}.",
            f"Over {protocol.upper()}: {', '.join(('auto', *dialects))}.",
        )
    return Target(protocol, (dialects[broker],))
