"""Real brokers for demos, notebooks and tests. They need Python and Java only."""

from pyspark_jms.tools.testing.config import PERMISSIONS, AddressSettings, Tls, User
from pyspark_jms.tools.testing.embedded import EmbeddedArtemis, broker
from pyspark_jms.tools.testing.embedded_classic import EmbeddedClassic
from pyspark_jms.tools.testing.jms_client import JmsClient, JmsMessage, Typed
from pyspark_jms.tools.testing.operations import Broker, DeadLetter, ExternalBroker

__all__ = [
    "PERMISSIONS",
    "AddressSettings",
    "Broker",
    "DeadLetter",
    "EmbeddedArtemis",
    "EmbeddedClassic",
    "ExternalBroker",
    "JmsClient",
    "JmsMessage",
    "Tls",
    "Typed",
    "User",
    "broker",
]
