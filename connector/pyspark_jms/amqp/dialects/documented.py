"""Brokers that no test of this project has run: from their documentation, each fact with its source.

``pyspark-jms check --conformance`` compares them with a broker. What their documentation does not state is as for an
unknown broker: no selectors, and a batch read receives messages and gives them back.
"""

from functools import partial

from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.amqp.dialects.cannot import NO_TRANSACTIONS, ONE_ENTITY, OTHER_BROKER, OVER_AMQP, no_topics
from pyspark_jms.amqp.dialects.send_rules import SendRules
from pyspark_jms.jms.features import Feature

__all__ = ["AZURE_SERVICE_BUS", "IBM_MQ", "SOLACE"]

_documented = partial(Dialect, tested_versions="none", selector_dialect=None, browses=False)

AZURE_SERVICE_BUS = _documented(
    name="azure-service-bus",
    hosts=(".servicebus.windows.net",),
    cannot=OTHER_BROKER
    | {
        # A subscription is an entity with an address of its own:
        # https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-request-response
        Feature.TOPICS: no_topics(
            "Azure Service Bus has no durable subscriptions of JMS over plain AMQP.",
            "Read the subscription as a queue: option queue=TOPIC/Subscriptions/NAME.",
        ),
        # "Local transactions cannot span multiple top-level entities":
        # https://github.com/jmstoolbox/jmstoolbox/issues/137, https://github.com/Azure/azure-sdk-for-java/issues/39046
        Feature.RELAY: ONE_ENTITY,
    },
    # A message in delivery is locked for at most 5 minutes, by default for 1:
    # https://learn.microsoft.com/dotnet/api/azure.messaging.servicebus.administration.createqueueoptions.lockduration
    # Afterwards it has one attempt more and is delivered again:
    # https://learn.microsoft.com/dotnet/api/azure.messaging.servicebus.servicebusreceivedmessage.lockeduntil
    # So a large prefetch window loses locks: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-prefetch
    max_unacknowledged=200,
    send=SendRules(
        # It schedules by x-opt-scheduled-enqueue-time: https://github.com/Azure/azure-sdk-for-net/issues/42316
        delays_delivery=False,
    ),
)

SOLACE = _documented(
    name="solace",
    # docs.solace.com, "AMQP Client Support": neither local nor XA transactions are supported.
    # https://docs.solace.com/API/AMQP/AMQP-Protocol-Conformance.htm, section 2.1.2: no state of a link outlives its
    # connection, and a durable subscription over AMQP is such a state.
    cannot=OVER_AMQP
    | NO_TRANSACTIONS
    | {
        Feature.TOPICS: no_topics(
            "Over AMQP, Solace keeps no state of a link after its connection, and so no durable subscription.",
            "Add the topic as a subscription of a queue at the broker, and read that queue: option queue.",
        )
    },
)

IBM_MQ = _documented(
    name="ibm-mq",
    # https://www.ibm.com/support/knowledgecenter/SSFKSJ_9.2.0/com.ibm.mq.dev.doc/amqp_support.html: an attach to a
    # coordinator and a declare are rejected; a container id has letters, digits and % / . _, at most 256 of them; the
    # name of a link is the topic that it subscribes to; queues need the capability queue, which this connector sends.
    cannot=OVER_AMQP
    | NO_TRANSACTIONS
    | {
        Feature.TOPICS: no_topics(
            "The AMQP channel of IBM MQ takes the name of a link for the topic of its subscription.",
            "Define an administrative subscription that puts the topic's messages on a queue, and read that queue:"
            " option queue.",
        )
    },
    refused_in_container_ids=r"[^A-Za-z0-9%/._]",
)
