"""The brokers that the tests of AMQP 1.0 run on."""

from artemis_244 import EmbeddedArtemis244
from broker_j import EmbeddedBrokerJ

from pyspark_jms.testing import EmbeddedArtemis, EmbeddedClassic

AMQP_BROKERS = {
    "artemis": EmbeddedArtemis,
    "artemis 2.44": EmbeddedArtemis244,
    "classic": EmbeddedClassic,
    "broker-j": EmbeddedBrokerJ,
}
