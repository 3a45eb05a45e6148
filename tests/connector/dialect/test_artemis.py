"""The rules of which breaking one loses messages. That a broker reads them so, test_consumer and test_producer show."""

import pytest

from pyspark_jms.dialect.artemis import ARTEMIS
from pyspark_jms.model import DestinationKind


def test_the_routing_type_is_always_said():
    assert ARTEMIS.subscribe_headers[DestinationKind.QUEUE] == {"subscription-type": "ANYCAST"}
    assert ARTEMIS.subscribe_headers[DestinationKind.TOPIC] == {"subscription-type": "MULTICAST"}
    assert ARTEMIS.send_types[DestinationKind.QUEUE] == {"destination-type": "ANYCAST"}
    assert ARTEMIS.send_types[DestinationKind.TOPIC] == {"destination-type": "MULTICAST"}


def test_the_broker_s_id_is_what_follows_the_consumer_s():
    assert "27,31".partition(ARTEMIS.stable_id_separator)[2] == "31"


@pytest.mark.parametrize(
    "name", ["_AMQ_ROUTE_TO", "_AMQ_ROUTING_TYPE", "AMQ_SCHEDULED_DELAY", "persistent", "priority", "destination-type"]
)
def test_a_property_that_would_steer_the_broker_is_reserved(name):
    assert name in ARTEMIS.reserved_properties


def test_groups_have_their_jms_names():
    assert ARTEMIS.property_names == {"_AMQ_GROUP_ID": "JMSXGroupID", "_AMQ_GROUP_SEQUENCE": "JMSXGroupSeq"}
