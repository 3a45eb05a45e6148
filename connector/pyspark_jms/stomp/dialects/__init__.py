"""What a broker's STOMP means, as data. Knows frames and JMS, no socket, no Arrow, no Spark.

The only place that knows one broker from another: elsewhere there is no ``if broker == …``.
"""

from pyspark_jms.errors import UnknownBrokerError
from pyspark_jms.stomp.dialects.artemis import ARTEMIS
from pyspark_jms.stomp.dialects.base import Dialect
from pyspark_jms.stomp.dialects.classic import CLASSIC
from pyspark_jms.stomp.dialects.rabbitmq import RABBITMQ

__all__ = ["ARTEMIS", "CLASSIC", "DIALECTS", "RABBITMQ", "Dialect", "dialect_named", "dialect_of_server"]

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (ARTEMIS, CLASSIC, RABBITMQ)}
"""Every dialect by the name that option ``broker`` gives it."""


def dialect_named(name: str) -> Dialect:
    """The dialect of option ``broker``, which was checked before; a ``KeyError`` is a fault of ours."""
    return DIALECTS[name]


def dialect_of_server(server: str | None) -> Dialect:
    """The dialect for the ``server`` header of CONNECTED (STOMP 1.2 "CONNECTED Frame")."""
    for dialect in DIALECTS.values():
        if server and server.startswith(dialect.server_prefix):
            return dialect
    raise UnknownBrokerError(
        f"The broker calls itself {server or 'nothing'!r}, which no dialect of this release knows.",
        f"Known brokers: {', '.join(DIALECTS)}. If it is one of them, say so with option broker.",
    )
