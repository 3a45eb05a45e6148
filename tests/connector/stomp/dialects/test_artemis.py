"""The rules of which breaking one loses messages. That a broker reads them so, test_consumer and test_producer show."""

import pytest

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.stomp.dialects.artemis import ARTEMIS


def test_the_routing_type_is_always_said():
    assert ARTEMIS.subscribe_headers[DestinationKind.QUEUE] == {"subscription-type": "ANYCAST"}
    assert ARTEMIS.subscribe_headers[DestinationKind.TOPIC] == {"subscription-type": "MULTICAST"}
    assert ARTEMIS.send_destination_headers[DestinationKind.QUEUE] == {"destination-type": "ANYCAST"}
    assert ARTEMIS.send_destination_headers[DestinationKind.TOPIC] == {"destination-type": "MULTICAST"}


def test_the_broker_s_id_is_what_follows_the_consumer_s():
    assert ARTEMIS.stable_id(b"27,31") == b"31"
    assert ARTEMIS.stable_id(b"31") == b"31", "Artemis 2.19 names no consumer"


@pytest.mark.parametrize(
    "name", ["AMQ_SCHEDULED_DELAY", "_AMQ_GROUP_SEQUENCE", "persistent", "priority", "destination-type"]
)
def test_a_property_that_would_steer_the_broker_is_reserved(name):
    assert name in ARTEMIS.reserved_properties


def test_a_schedule_of_classic_is_an_ordinary_property():
    assert "AMQ_SCHEDULED_CRON" not in ARTEMIS.reserved_properties


def test_groups_have_their_jms_names():
    assert ARTEMIS.property_names == {"_AMQ_GROUP_ID": "JMSXGroupID", "_AMQ_GROUP_SEQUENCE": "JMSXGroupSeq"}


@pytest.mark.parametrize("name", ["_AMQ_ROUTE_TO", "_AMQ_OperationName", "_AMQ_DUPL_ID", "__AMQ_CID"])
def test_names_that_are_the_broker_s_own(name):
    assert name.startswith(ARTEMIS.reserved_prefixes)
    assert name not in ARTEMIS.set_by_client


@pytest.mark.parametrize(
    "name",
    [
        "activemq.management",
        "activemq.notifications",
        "activemq.management::q",
        "/queue/activemq.management",
        "x.activemq.notifications",
        "$sys.mqtt.sessions",
    ],
)
def test_a_row_does_not_reach_management(name):
    for kind in DestinationKind:
        destination = Destination(kind, name)
        with pytest.raises(InvalidDestinationError, match=r"JMS_INVALID_DESTINATION.*Artemis itself"):
            ARTEMIS.addresses.header_value(destination, sending=True, by_row=True)
        assert ARTEMIS.addresses.header_value(destination, sending=True) == name


@pytest.mark.parametrize("name", ["activemq.managements", "activemq", "management", "activemq.management.x"])
def test_names_that_only_look_like_management(name):
    assert ARTEMIS.addresses.header_value(Destination(DestinationKind.QUEUE, name), sending=True, by_row=True) == name
