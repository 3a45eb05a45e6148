"""Old releases that are still run: Artemis 2.44, published under another group of packages, and 2.19, the last one for
Java 8, Classic 5.18, which Amazon MQ offers, and Qpid Broker-J 9.
"""

from broker_j import EmbeddedBrokerJ, packages_of

from pyspark_jms.testing import EmbeddedArtemis, EmbeddedClassic

ARTEMIS_244, ARTEMIS, CLASSIC, BROKER_J = "2.44.0", "2.19.1", "5.18.6", "9.2.1"

_JAKARTA = ("jakarta.jms:jakarta.jms-api:3.1.0", "org.slf4j:slf4j-jdk14:2.0.17")
_JAVAX = ("jakarta.jms:jakarta.jms-api:2.0.3", "org.slf4j:slf4j-jdk14:1.7.36")
"""Of releases whose packages are still ``javax.jms``."""


def _of_activemq(version, modules, more):
    return (*(f"org.apache.activemq:{module}:{version}" for module in modules), *more)


def _artemis(version, client, api):
    modules = ("server", "stomp-protocol", "amqp-protocol", client)
    return _of_activemq(version, [f"artemis-{module}" for module in modules], api)


class EmbeddedArtemis244(EmbeddedArtemis):
    _packages = _artemis(ARTEMIS_244, "jakarta-client", _JAKARTA)


class OldArtemis(EmbeddedArtemis):
    _packages = _artemis(ARTEMIS, "jms-client", _JAVAX)


class OldClassic(EmbeddedClassic):
    _packages = _of_activemq(
        CLASSIC,
        [f"activemq-{module}" for module in ("broker", "client", "jaas", "stomp", "amqp", "kahadb-store")],
        ("com.thoughtworks.xstream:xstream:1.4.21", "org.codehaus.jettison:jettison:1.5.4", *_JAVAX),
    )


class OldBrokerJ(EmbeddedBrokerJ):
    _packages = packages_of(BROKER_J)
