"""Old releases that are still run: Artemis 2.19, the last one for Java 8, Classic 5.18, which Amazon MQ offers, and
Qpid Broker-J 9.
"""

from broker_j import EmbeddedBrokerJ

from pyspark_jms.testing import EmbeddedArtemis, EmbeddedClassic
from pyspark_jms.tools.testing.jars import ResolverSettings, cache_directory, resolve

ARTEMIS, CLASSIC, BROKER_J = "2.19.1", "5.18.6", "9.2.1"

_JMS = ("jakarta.jms:jakarta.jms-api:2.0.3", "org.slf4j:slf4j-jdk14:1.7.36")
"""Their packages are still ``javax.jms``."""

_ARTEMIS_PACKAGES = (
    *(
        f"org.apache.activemq:artemis-{module}:{ARTEMIS}"
        for module in ("server", "stomp-protocol", "amqp-protocol", "jms-client")
    ),
    *_JMS,
)
_CLASSIC_PACKAGES = (
    *(
        f"org.apache.activemq:activemq-{module}:{CLASSIC}"
        for module in ("broker", "client", "jaas", "stomp", "amqp", "kahadb-store")
    ),
    "com.thoughtworks.xstream:xstream:1.4.21",
    "org.codehaus.jettison:jettison:1.5.4",
    *_JMS,
)


class OldArtemis(EmbeddedArtemis):
    def _classpath(self):
        return resolve(_ARTEMIS_PACKAGES, ResolverSettings.from_environment(), cache_directory())


class OldClassic(EmbeddedClassic):
    def _classpath(self):
        return resolve(_CLASSIC_PACKAGES, ResolverSettings.from_environment(), cache_directory())


class OldBrokerJ(EmbeddedBrokerJ):
    version = BROKER_J
