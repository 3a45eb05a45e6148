"""RabbitMQ 4, which speaks AMQP 1.0 without a plugin, as measured on 4.0.5 and 4.3.6 (docs/brokers/rabbitmq.md).

It has neither transactions nor durable subscriptions, and its answer to an attach is no proof: 4.0 repeats a selector
and the distribution mode ``copy``, and delivers every message as to an ordinary consumer.
"""

from types import MappingProxyType

from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.amqp.dialects.cannot import NO_TRANSACTIONS, OVER_AMQP, no_topics
from pyspark_jms.amqp.dialects.send_rules import SendRules
from pyspark_jms.jms import added_names
from pyspark_jms.jms.added_names import ANY_BROKER
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.names import RefusedName

__all__ = ["RABBITMQ"]

_QUEUES, _EXCHANGES, _TOPICS = "/queues/", "/exchanges/", "/exchanges/amq.topic/"
_COUNTS = ("x-acquired-count", "x-delivery-count", "x-first-death-", "x-last-death-")
_BIND_A_QUEUE = "Bind a queue to the exchange (rabbitmqadmin declare binding), and read that queue: option queue."

RABBITMQ = Dialect(
    name="rabbitmq",
    products=("RabbitMQ",),
    tested_versions="4.0.5, 4.3.6",
    selector_dialect=None,
    ignored_stomp_headers=added_names.RABBITMQ.names - ANY_BROKER.names,
    destination_prefixes=MappingProxyType(
        {
            "/queues/%2Fqueue%2F": "queue",  # the broker takes what a STOMP client names for a queue of that name
            "/queues/%2Ftopic%2F": "topic",
            "/queues/%2Freply-queue%2F": "temp-queue",
            _QUEUES: "queue",
            _TOPICS: "topic",
        }
    ),
    native_kinds=MappingProxyType({_EXCHANGES: "topic"}),
    virtual_host_prefix="vhost:",
    browses=False,
    cannot={Feature.JOURNAL: OVER_AMQP[Feature.JOURNAL]}
    | NO_TRANSACTIONS
    | {
        Feature.TOPICS: no_topics(
            "Over AMQP, RabbitMQ delivers from queues only, and not from an exchange.",
            "Bind a queue to the exchange amq.topic with the topic as binding key, and read that queue: option queue in"
            " place of topic and subscriptionName.",
        )
    },
    sql_filters_since=(4, 2),
    default_redeliveries=20,
    changes_annotations=True,  # a quorum queue counts in x-acquired-count
    checks_user_id=True,
    # x-cc of a producer names further queues, which would get the dead letter too.
    added_annotations=("x-exchange", "x-routing-key", "x-cc", "x-opt-deaths", *_COUNTS),
    send=SendRules(
        address_prefixes=MappingProxyType(
            {"queue": _QUEUES, "temp-queue": _QUEUES, "topic": _TOPICS, "temp-topic": _TOPICS}
        ),
        percent_encoded=True,
        native_prefixes=(_QUEUES, _EXCHANGES),
        delays_delivery=False,
        sends_timestamps=True,  # AMQP 0.9.1 has such headers
        needs_body_section=True,  # missing_amqp_message_body, and the session ends
        refused_names=(
            RefusedName(
                pattern=f"^{_EXCHANGES}",
                reason="is an exchange, and over AMQP RabbitMQ delivers from queues only",
                when_sending=False,
                remedy=_BIND_A_QUEUE,
            ),
        ),
    ),
)
