"""Apache ActiveMQ Classic, as measured on 6.3.1 (docs/brokers/classic.md)."""

from types import MappingProxyType

from pyspark_jms.amqp.dialects.base import ACTIVEMQ_HEADERS, IGNORED_PROPERTIES, Dialect
from pyspark_jms.amqp.dialects.cannot import OTHER_BROKER, no_exactly_once_writes
from pyspark_jms.amqp.dialects.send_rules import SendRules
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import DESTINATION_WORDS
from pyspark_jms.jms.names import CLASSIC_DESTINATIONS, CLASSIC_NAMES, SCHEDULED_PROPERTIES

__all__ = ["CLASSIC"]

CLASSIC = Dialect(
    name="classic",
    products=("ActiveMQ",),
    browse_is_limited=True,  # by maxBrowsePageSize, as soon as a policy entry matches the queue
    tested_versions="6.3.1",
    selector_dialect="classic-amqp",
    ignored_properties=IGNORED_PROPERTIES | {"content-type", "transformation"},
    ignored_stomp_headers=ACTIVEMQ_HEADERS,
    destination_prefixes=MappingProxyType({f"{word}://": word for word in DESTINATION_WORDS}),
    added_properties=("dlqDeliveryFailureCause", "originalExpiration"),
    cannot=OTHER_BROKER
    | {
        Feature.EXACTLY_ONCE_WRITE: no_exactly_once_writes(
            "admits one connection with a container id, so that only one task of a query could write at a time"
        )
    },
    send=SendRules(
        states_bytes=False,
        address_prefixes=MappingProxyType({word: f"{word}://" for word in DESTINATION_WORDS}),
        refused_names=CLASSIC_NAMES,
        refused_in_rows=(CLASSIC_DESTINATIONS,),
        # 6.3 cannot acknowledge a message that has an id of its producer over STOMP: it closes the reader's connection.
        takes_message_ids=False,
    ),
    # The broker's scheduler reads the first. The last would be a second length of the body for STOMP readers.
    reserved_properties=SCHEDULED_PROPERTIES | {"content-length"},
    set_by_broker=frozenset({"original-destination", "transformation"}),  # in messages moved to a dead-letter queue
)
