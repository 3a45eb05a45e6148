"""The rules of which breaking one loses messages. That a broker reads them so, tests/brokers shows."""

import pytest
from plain_decoder import block_of

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.stomp.columns.decode import decode
from pyspark_jms.stomp.dialects import CLASSIC

FIRST = b"ID\\cvm-6\\c1,ID\\cvm-5\\c2\\c-1\\c1\\c1"


@pytest.mark.parametrize("name", ["a,b", "a?consumer.prefetchSize=1", " a", "a ", "\U0001f600", "a\0"])
@pytest.mark.parametrize("sending", [True, False])
def test_a_name_the_broker_would_read_otherwise_is_refused(name, sending):
    with pytest.raises(InvalidDestinationError):
        CLASSIC.addresses.header_value(Destination.parse(f"queue://{name}"), sending=sending)


def test_a_wildcard_is_for_readers():
    news = Destination.parse("topic://news.>")
    assert CLASSIC.addresses.header_value(news, sending=False) == "/topic/news.>"
    with pytest.raises(InvalidDestinationError, match="wildcard"):
        CLASSIC.addresses.header_value(news, sending=True)


def test_an_answer_goes_to_the_temporary_queue_of_who_asked():
    temporary = Destination.parse("queue://ID:vm-1-2:1:1")
    assert CLASSIC.addresses.header_value(temporary, sending=True) == "/remote-temp-queue/ID:vm-1-2:1:1"


def test_ack_takes_the_one_id_and_recognition_the_other():
    assert CLASSIC.ack_id(FIRST) == b"ID\\cvm-6\\c1"
    assert CLASSIC.stable_id(FIRST) == b"ID\\cvm-5\\c2\\c-1\\c1\\c1"


@pytest.mark.parametrize(
    "refused",
    ["ID\\cx\\c1\\c1", "ID\\cAMQP_ULONG\\c7", "ID\\c", "ID\\cx\\c1\\c1\\c1-1", "ID\\cx\\c1\\c1\\c", "x"],
)
def test_an_id_that_does_not_end_in_three_numbers_is_not_acknowledged(refused):
    assert CLASSIC.unacknowledgeable([FIRST]) is None
    assert CLASSIC.unacknowledgeable([FIRST, b"ID\\c1," + refused.encode()]) == refused.replace("\\c", ":")


def test_an_id_with_a_comma_in_it_is_whole():
    assert CLASSIC.stable_id(b"ID\\c1,forged,id") == b"forged,id"


def test_the_window_is_told_in_messages():
    assert CLASSIC.window(128 << 20) == 32_768
    assert CLASSIC.window(1) == 1, "0 would be no message at all"
    assert CLASSIC.window(1 << 60) == (1 << 31) - 1
    assert CLASSIC.window(1, messages=10) == 10


@pytest.mark.parametrize("name", ["amq-msg-type", "message-id", "timestamp", "AMQ_SCHEDULED_CRON"])
def test_a_property_that_would_steer_the_broker_is_reserved(name):
    assert name in CLASSIC.reserved_properties


def row(*headers, body="", body_type="auto"):
    frame = "\n".join(["MESSAGE", "message-id:ID\\c5", *headers]).encode() + b"\n\n" + body.encode() + b"\0\n"
    (found,) = decode(
        block_of([frame]),
        dialect=CLASSIC,
        source=Destination.parse("queue://q"),
        first_sequence=0,
        body_type=body_type,
    ).to_pylist()
    return found


def test_the_message_id_is_that_of_jms():
    found = row()
    assert (found["JMSMessageID"], found["delivery_id"]) == ("ID:5", "q/ID:5")


@pytest.mark.parametrize(
    ("headers", "body_type"),
    [
        ([], "text"),
        (["content-length:2"], "bytes"),
        (["content-length:2", "amq-msg-type:text"], "text"),
        (["transformation:jms-xml"], "text"),
        (["content-length:2", "spark_jms_body:object"], "object"),
    ],
)
def test_what_kind_of_message_it_is(headers, body_type):
    found = row(*headers, body="ab")
    assert found["body_type"] == body_type
    assert found["properties"] == []
    assert found["body_error"] is None


MAP = "<map><entry><string>n</string><int>7</int></entry></map>"


def test_a_java_map_has_its_content():
    found = row("transformation:jms-map-xml", body=MAP)
    assert (found["body_type"], found["map"]) == ("map", [("n", {"type": "int", "value": "7"})])


def test_body_type_text_reads_no_map():
    found = row("transformation:jms-map-xml", body=MAP, body_type="text")
    assert (found["body_type"], found["text"], found["map"]) == ("text", MAP, None)


@pytest.mark.parametrize(
    ("wire", "jms"),
    [
        ("/queue/a", "queue://a"),
        ("/topic/a", "topic://a"),
        ("/remote-temp-queue/ID\\c1", "temp-queue://ID:1"),
        ("/temp-topic/x", "temp-topic://x"),
    ],
)
def test_where_answers_go(wire, jms):
    assert row(f"reply-to:{wire}")["JMSReplyTo"] == jms


@pytest.mark.parametrize(
    "name",
    [
        "ActiveMQ.Advisory.Connection",
        "activemq.statistics.broker",
        "ActiveMQ.Scheduler.Management",
        "ActiveMQ.Agent",
        "queue://ActiveMQ.Statistics.Destination.orders",
    ],
)
def test_a_row_does_not_reach_what_the_broker_acts_on(name):
    for kind in DestinationKind:
        with pytest.raises(InvalidDestinationError, match=r"JMS_INVALID_DESTINATION.*(?i:activemq)\."):
            CLASSIC.addresses.header_value(Destination(kind, name), sending=True, by_row=True)
        CLASSIC.addresses.header_value(Destination(kind, name), sending=True)


def test_a_row_may_go_to_the_dead_letter_queue():
    dead = Destination(DestinationKind.QUEUE, "ActiveMQ.DLQ")
    assert CLASSIC.addresses.header_value(dead, sending=True, by_row=True) == "/queue/ActiveMQ.DLQ"
