"""The rules of which breaking one loses messages. That a broker reads them so, tests/brokers shows."""

import pytest
from plain_decoder import block_of

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import Destination
from pyspark_jms.stomp.columns.decode import decode
from pyspark_jms.stomp.dialects import RABBITMQ


@pytest.mark.parametrize(
    ("destination", "wire"),
    [
        ("queue://a/b%c", "/queue/a%2Fb%25c"),
        ("topic://t.x", "/topic/t.x"),
        ("queue://amq.gen-x", "/reply-queue/amq.gen-x"),
        ("topic:///exchange/e/k", "/exchange/e/k"),
    ],
)
def test_destinations(destination, wire):
    assert RABBITMQ.addresses.header_value(Destination.parse(destination), sending=True) == wire


def test_a_queue_that_may_be_missing_is_not_sent_to():
    existing = Destination.parse("queue:///amq/queue/orders")
    assert RABBITMQ.addresses.header_value(existing, sending=False) == "/amq/queue/orders"
    with pytest.raises(InvalidDestinationError, match=r"JMS_INVALID_DESTINATION.*/amq/queue/"):
        RABBITMQ.addresses.header_value(existing, sending=True)


def test_the_window_is_never_without_bound():
    assert RABBITMQ.window(1 << 40) == 65_535
    assert RABBITMQ.window(1) == 1


@pytest.mark.parametrize("name", ["message-id", "CC", "BCC", "expiration", "timestamp", "user-id"])
def test_a_property_that_would_steer_the_broker_is_reserved(name):
    assert name in RABBITMQ.reserved_properties


def row(*headers, body="", source="queue://q"):
    first = [
        "MESSAGE",
        "subscription:1",
        "destination:/queue/q",
        "message-id:T_1@@session-x@@1",
        "ack:T_1@@session-x@@1",
    ]
    frame = "\n".join([*first, *headers]).encode() + b"\n\n" + body.encode() + b"\0\n"
    (found,) = decode(
        block_of([frame]),
        dialect=RABBITMQ,
        source=Destination.parse(source),
        first_sequence=0,
        body_type="auto",
    ).to_pylist()
    return found


@pytest.mark.parametrize(
    ("headers", "body_type"),
    [
        ([], "text"),
        (["content-type:text/plain"], "text"),
        (["content-type:application/octet-stream"], "bytes"),
        (["spark_jms_body:bytes"], "bytes"),
        (["content-type:application/octet-stream", "spark_jms_body:text"], "text"),
    ],
)
def test_what_kind_of_message_it_is(headers, body_type):
    found = row(*headers, "content-length:2", body="ab")
    assert (found["body_type"], found["properties"], found["body_error"]) == (body_type, [], None)


def test_no_id_that_would_stay():
    assert row()["delivery_id"] is None
    assert row()["JMSMessageID"] is None
    assert row("amqp-message-id:m1")["JMSMessageID"] == "m1"


def test_times():
    found = row("timestamp:1700000000", "expiration:60000")
    assert found["JMSTimestamp"].timestamp() == 1_700_000_000
    assert found["JMSExpiration"] is None
    assert found["properties"] == [("JMS_AMQP_TTL", "60000")]


def test_what_the_producer_set_beside_the_broker_s_own():
    found = row("receipt:r", "transaction:t", "ack:mine", "app-id:a", "user-id:u")
    assert found["properties"] == [("ack", "mine"), ("JMSXAppID", "a"), ("JMSXUserID", "u")]


@pytest.mark.parametrize(
    ("wire", "jms"), [("/reply-queue/amq.gen-x", "temp-queue://amq.gen-x"), ("/queue/a%2Fb", "queue://a/b")]
)
def test_where_answers_go(wire, jms):
    assert row(f"reply-to:{wire}")["JMSReplyTo"] == jms


def test_a_topic_tells_what_was_sent_to():
    found = row("destination:x", source="topic://t.*")
    assert found["JMSDestination"] == "topic:///queue/q"


def test_a_row_names_no_exchange():
    exchange = Destination.parse("topic:///exchange/amq.fanout/k")
    with pytest.raises(InvalidDestinationError, match=r"JMS_INVALID_DESTINATION.*amq.fanout/k.*exchange.*option topic"):
        RABBITMQ.addresses.header_value(exchange, sending=True, by_row=True)
    assert RABBITMQ.addresses.header_value(exchange, sending=True) == "/exchange/amq.fanout/k"


@pytest.mark.parametrize("name", ["x-first-death-queue", "JMS_AMQP_TTL"])
def test_what_it_sets_is_left_out(name):
    assert name in RABBITMQ.set_by_broker
