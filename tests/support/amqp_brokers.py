"""The brokers that the tests of AMQP 1.0 run on."""

from broker_j import EmbeddedBrokerJ
from chosen_brokers import Artemis, Classic
from old_brokers import EmbeddedArtemis244

AMQP_BROKERS = {
    "artemis": Artemis,
    "artemis 2.44": EmbeddedArtemis244,
    "classic": Classic,
    "broker-j": EmbeddedBrokerJ,
}
