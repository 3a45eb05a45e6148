"""Apache ActiveMQ Artemis, as measured on 2.44.0 and 2.55.0 (docs/brokers/artemis.md)."""

from dataclasses import replace

from pyspark_jms.amqp.dialects.base import ACTIVEMQ_HEADERS, Dialect
from pyspark_jms.amqp.dialects.cannot import OVER_AMQP
from pyspark_jms.amqp.dialects.send_rules import SendRules
from pyspark_jms.jms.names import (
    ARTEMIS_PROPERTIES,
    ARTEMIS_QUEUES,
    JOINING_DOT,
    TWO_COLONS,
    RefusedName,
    RefusedSubscriptions,
)
from pyspark_jms.management.attributes import ARTEMIS_MANAGEMENT

__all__ = ["ARTEMIS"]

_VERTICAL_BAR = RefusedName(
    pattern=r"\|",
    reason="has a vertical bar: Artemis leaves out what follows it when it looks for the subscription",
    remedy="Use another character.",
)

_REFUSED_BY_ARTEMIS = RefusedSubscriptions(
    topics=(TWO_COLONS,),
    names=(
        TWO_COLONS,
        _VERTICAL_BAR,
        RefusedName(
            pattern=":(global|shared-volatile)$",
            reason="ends as Artemis ends the names of shared subscriptions that have no client id or are not durable",
        ),
    ),
    names_after_client_id=(JOINING_DOT,),  # without a client id, the queue is NAME:global
    client_ids=(TWO_COLONS, _VERTICAL_BAR),
)

ARTEMIS = Dialect(
    name="artemis",
    products=("apache-activemq-artemis",),
    tested_versions="2.55.0, 2.44.0",
    selector_dialect="artemis-amqp",
    ignored_stomp_headers=ACTIVEMQ_HEADERS,
    browse_shows_expired=True,
    added_annotations=("x-opt-ORIG-", "x-opt-ACTUAL-EXPIRY"),
    origin_names=("x-opt-ORIG-QUEUE", "x-opt-ORIG-ADDRESS", "_AMQ_ORIG_QUEUE", "_AMQ_ORIG_ADDRESS"),
    management=replace(ARTEMIS_MANAGEMENT, losses={}),  # all body types arrive
    send=SendRules(
        states_bytes=False,
        refused_names=(
            RefusedName(
                pattern=r"\?",
                reason="has a question mark, and over AMQP a consumer of Artemis gets the queue of the name before it",
                remedy="Read it over STOMP (stomp://), or use another name.",
                when_sending=False,
            ),
        ),
        refused_in_rows=(ARTEMIS_QUEUES,),
    ),
    # The broker executes such properties as management requests, or routes messages by them.
    reserved_prefixes=("_AMQ_", "__AMQ_"),
    set_by_broker=ARTEMIS_PROPERTIES,
    set_by_client=frozenset({"_AMQ_LVQ_NAME"}),  # the key of a last-value queue
    refuses_at_discharge=True,
    refused_subscriptions=_REFUSED_BY_ARTEMIS,
    cannot=OVER_AMQP,
)
