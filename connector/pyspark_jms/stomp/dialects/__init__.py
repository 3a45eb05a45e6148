"""The differences between the brokers' STOMP, as data. Does not know sockets, Arrow and Spark.

The only folder that distinguishes brokers: elsewhere there is no ``if broker == …``.
"""

from pyspark_jms.errors import UnknownBrokerError
from pyspark_jms.stomp.dialects.artemis import ARTEMIS
from pyspark_jms.stomp.dialects.base import Dialect
from pyspark_jms.stomp.dialects.classic import CLASSIC
from pyspark_jms.stomp.dialects.rabbitmq import RABBITMQ

__all__ = ["ARTEMIS", "CLASSIC", "DIALECTS", "RABBITMQ", "Dialect", "dialect_of_server"]

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (ARTEMIS, CLASSIC, RABBITMQ)}
"""Every dialect by its name, which is a value of option ``broker``. The options check the value."""


def dialect_of_server(server: str | None) -> Dialect:
    """The dialect for the ``server`` header of CONNECTED (STOMP 1.2 "CONNECTED Frame")."""
    for dialect in DIALECTS.values():
        if server and server.startswith(dialect.server_prefix):
            return dialect
    raise UnknownBrokerError(
        f"The broker's CONNECTED frame has the server {server or 'nothing'!r}, which this release does not support.",
        f"Supported brokers: {', '.join(DIALECTS)}. If it is one of them, set option broker.",
    )
