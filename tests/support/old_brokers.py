"""Old releases that are still run: Artemis 2.44, published under another group of packages, and 2.19, the last one for
Java 8, Classic 5.18, which Amazon MQ offers, and Qpid Broker-J 9.
"""

from broker_j import EmbeddedBrokerJ

from pyspark_jms.testing import EmbeddedArtemis, EmbeddedClassic
from pyspark_jms.tools.testing.jars import resolve

ARTEMIS_244, ARTEMIS, CLASSIC, BROKER_J = "2.44.0", "2.19.1", "5.18.6", "9.2.1"

_JAKARTA = ("jakarta.jms:jakarta.jms-api:3.1.0", "org.slf4j:slf4j-jdk14:2.0.17")
_JAVAX = ("jakarta.jms:jakarta.jms-api:2.0.3", "org.slf4j:slf4j-jdk14:1.7.36")
"""Of releases whose packages are still ``javax.jms``."""


def _jars(version, modules, more):
    return resolve((*(f"org.apache.activemq:{module}:{version}" for module in modules), *more))


def _artemis(version, client, api):
    modules = ("server", "stomp-protocol", "amqp-protocol", client)
    return _jars(version, [f"artemis-{module}" for module in modules], api)


class EmbeddedArtemis244(EmbeddedArtemis):
    def _classpath(self):
        return _artemis(ARTEMIS_244, "jakarta-client", _JAKARTA)


class OldArtemis(EmbeddedArtemis):
    def _classpath(self):
        return _artemis(ARTEMIS, "jms-client", _JAVAX)


class OldClassic(EmbeddedClassic):
    def _classpath(self):
        modules = ("broker", "client", "jaas", "stomp", "amqp", "kahadb-store")
        more = ("com.thoughtworks.xstream:xstream:1.4.21", "org.codehaus.jettison:jettison:1.5.4", *_JAVAX)
        return _jars(CLASSIC, [f"activemq-{module}" for module in modules], more)


class OldBrokerJ(EmbeddedBrokerJ):
    version = BROKER_J
