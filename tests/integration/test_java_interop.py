"""A real Java JMS client on the other side: what its messages are to the source (docs/typed-messages.md)."""

import time

import pyarrow as pa
import pytest
from broker_rows import read_batches
from rawstomp import RawStomp, frame
from streaming import access
from waiting import await_value, wait_until

from pyspark_jms.jms.model import BodyType, DeliveryMode
from pyspark_jms.testing import Typed

pytestmark = pytest.mark.broker

LARGE = 300_000


@pytest.fixture
def rows(broker, queue):
    """``rows()``: what the source makes of the test's queue, which keeps it."""
    return lambda: pa.concat_batches(read_batches(access(broker), queue, idleTimeout="1s")).to_pylist()


# --- Java to source: bodies --------------------------------------------------------------------------

TEXTS = ["héllo", "", "a\0b\n\r\t😀", "\ufeff", "x" * LARGE, "é" * LARGE]
BYTES = [b"\0\xff", b"\0", b"text", b"\n\0\n", bytes(range(256)), b"\xff" * LARGE]


def test_texts_and_bytes_come_as_they_are(java, queue, rows):
    for body in TEXTS + BYTES:
        java.send(queue, body)
    found = rows()
    assert [row["body_type"] for row in found] == ["text"] * len(TEXTS) + ["bytes"] * len(BYTES)
    assert [row["text"] for row in found[: len(TEXTS)]] == TEXTS
    assert [row["bytes"] for row in found[len(TEXTS) :]] == BYTES
    assert {row["body_error"] for row in found} == {None}


def test_a_null_text_comes_as_an_empty_one(java, queue, rows):
    java.send(queue, body_type=BodyType.TEXT)
    (row,) = rows()
    assert (row["body_type"], row["text"], row["body_error"]) == ("text", "", None)


def untouched(java, queue, kind):
    """A message of that kind nobody wrote into."""
    message = getattr(java._session, f"create{kind}Message")()
    java._producer.send(java._destination(queue), message)


def seen(row):
    return row["body_type"], row["bytes"] if row["body_type"] == "bytes" else row["text"], row["body_error"]


def test_bytes_that_are_empty(java, queue, rows):
    untouched(java, queue, "Bytes")
    java.send(queue, b"")
    assert sorted(map(seen, rows()), key=str) == [("bytes", b"\0" * 4, None), ("text", "", None)]


def test_what_has_no_text_and_no_bytes_comes_as_an_empty_text(broker, java, queue, rows):
    for kind in ("Map", "Stream", "Object", ""):
        untouched(java, queue, kind)
    for body in (broker.jvm.java.util.UUID.randomUUID(), broker.jvm.java.util.HashMap(), None, {"one": 1}, {}):
        java.send(queue, body)
    assert [seen(row) for row in rows()] == [("text", "", None)] * 9


def test_a_map_comes_as_garbage_half_as_long_as_it_has_entries(java, queue, rows):
    java.send(queue, {f"name{n}": f"value{n}" for n in range(20)})
    (row,) = rows()
    assert row["body_type"] == "text"
    assert len(row["text"].encode("utf-16-le")) == 20
    assert row["body_error"] is None


def test_large_bodies_that_are_lost_are_told(broker, java, queue, rows):
    objects = broker.jvm.java.util.ArrayList()
    for _ in range(200):
        objects.add("x" * 1000)
    java.send(queue, {"a": "x" * LARGE})
    java.send(queue, objects)
    for row in rows():
        assert row["body_error"].startswith("the broker did not send the body")
        assert row["text"] is None


SMALL = {
    "boolean": True,
    "byte": 1,
    "short": 1,
    "float": 1.5,
    "double": 1.5,
    "char": "c",
    "string": "hello",
}


def test_streams_that_come_and_streams_that_never_do(broker, java, queue, rows):
    """Artemis reads a text out of the stream's first bytes, or fails to, and then sends nothing at all."""
    never = [[Typed(kind, value), 7] for kind, value in SMALL.items()] + [[None, 7], [Typed("int", -1), 7], [7]]
    for body in never:
        java.send(queue, body)
    arriving = [[1, 7], [Typed("long", 7)], [Typed("bytes", b"\1\2"), 7], [3, "abc"]]
    for body in arriving:
        java.send(queue, body)
    found = rows()
    assert [row["body_type"] for row in found] == ["text"] * len(arriving)
    assert [row["text"] == "" for row in found] == [True, True, False, False]
    for body in never + arriving:  # for a Java client they are all there
        message = java.receive(queue)
        assert (message.body_type, message.body) == (BodyType.STREAM, [v if v is None else Typed.of(v) for v in body])


def test_messages_never_put_on_the_wire_stay_in_delivery_and_come_back(broker, java, queue):
    java.send(queue, ["never"])
    java.send(queue, "text")
    with RawStomp(broker) as client:
        how = [("id", "1"), ("destination", queue), ("subscription-type", "ANYCAST"), ("ack", "client-individual")]
        client.write(frame("SUBSCRIBE", how))
        came = client.receive()
        assert came.body == b"text"
        wait_until(lambda: broker.delivering_count(queue) == 2)
        client.write(frame("ACK", [("id", came.headers["message-id"]), ("receipt", "acknowledged")]))
        assert client.receive().command == "RECEIPT"
        await_value(lambda: (broker.message_count(queue), broker.delivering_count(queue)), (1, 1))
        client.request("UNSUBSCRIBE", [("id", "1")])
    wait_until(lambda: broker.delivering_count(queue) == 0)
    await_value(lambda: broker.delivery_counts(queue), [0])
    assert java.receive(queue).body == [Typed("string", "never")]


# --- Java to source: properties and headers ----------------------------------------------------------

SHOWN = {
    "boolean_true": (Typed("boolean", True), "true"),
    "boolean_false": (Typed("boolean", False), "false"),
    "byte_least": (Typed("byte", -128), "-128"),
    "byte_most": (Typed("byte", 127), "127"),
    "short_least": (Typed("short", -32768), "-32768"),
    "short_most": (Typed("short", 32767), "32767"),
    "int_least": (Typed("int", -(2**31)), "-2147483648"),
    "int_most": (Typed("int", 2**31 - 1), "2147483647"),
    "long_least": (Typed("long", -(2**63)), "-9223372036854775808"),
    "long_most": (Typed("long", 2**63 - 1), "9223372036854775807"),
    "float_least": (Typed("float", 2.0**-149), "1.4E-45"),
    "float_most": (Typed("float", (2 - 2.0**-23) * 2.0**127), "3.4028235E38"),
    "float_nan": (Typed("float", float("nan")), "NaN"),
    "double_least": (Typed("double", 5e-324), "4.9E-324"),
    "double_most": (Typed("double", 1.7976931348623157e308), "1.7976931348623157E308"),
    "double_infinite": (Typed("double", float("-inf")), "-Infinity"),
    "double_zero": (Typed("double", -0.0), "-0.0"),
    "double_ten": (Typed("double", 1e10), "1.0E10"),
    "string": (Typed("string", "é\0:\\\n\r😀"), "é\0:\\\n\r😀"),
    "string_empty": (Typed("string", ""), ""),
    "null": (None, ""),
    "JMSXGroupID": (Typed("string", "g 1"), "g 1"),
    "JMSXGroupSeq": (Typed("int", 7), "7"),
    "$_ä9": (Typed("int", 1), "1"),
}


def test_properties_are_their_texts(java, queue, rows):
    java.send(queue, "x", properties={name: value for name, (value, _) in SHOWN.items()})
    (row,) = rows()
    assert dict(row["properties"]) == {name: text for name, (_, text) in SHOWN.items()}
    assert row["property_types"] is None


def test_headers(broker, java, queue, rows):
    broker.create_queue(f"{queue}.t", topic=True)
    before = time.time() * 1000
    java.send(
        queue,
        "all of them",
        correlation_id="c:1\\\n",
        type="kind: ä",
        reply_to=f"topic://{queue}.t",
        delivery_mode=DeliveryMode.NON_PERSISTENT,
        priority=9,
        time_to_live=3_600_000,
        delivery_delay=500,
    )
    wait_until(lambda: broker.delivery_counts(queue) == [0], what="the delivery")
    (row,) = rows()
    milliseconds = {name: to_ms(row[name]) for name in ("JMSTimestamp", "JMSExpiration", "JMSDeliveryTime")}
    assert before - 1 <= milliseconds["JMSTimestamp"] <= time.time() * 1000
    assert milliseconds["JMSExpiration"] == milliseconds["JMSTimestamp"] + 3_600_000
    assert before + 499 <= milliseconds["JMSDeliveryTime"] <= time.time() * 1000
    assert {name: row[name] for name in HEADERS} == {
        "JMSMessageID": None,
        "JMSDestination": f"queue://{queue}",
        "JMSCorrelationID": "c:1\\\n",
        "JMSType": "kind: ä",
        "JMSReplyTo": f"topic://{queue}.t",
        "JMSDeliveryMode": 1,
        "JMSPriority": 9,
        "JMSRedelivered": False,
        "content_type": None,
    }
    assert row["properties"] in (None, [])


HEADERS = [
    "JMSMessageID", "JMSDestination", "JMSCorrelationID", "JMSType", "JMSReplyTo", "JMSDeliveryMode", "JMSPriority",
    "JMSRedelivered", "content_type",
]  # fmt: skip


def to_ms(moment):
    return round(moment.timestamp() * 1000)


def test_headers_nobody_set(java, queue, rows):
    java.send(queue, "none of them")
    (row,) = rows()
    for name in ("JMSCorrelationID", "JMSType", "JMSReplyTo", "JMSExpiration", "JMSDeliveryTime"):
        assert row[name] is None
    assert (row["JMSDeliveryMode"], row["JMSPriority"], row["JMSRedelivered"]) == (2, 4, False)


@pytest.mark.parametrize("correlation", ["", "ID:414d51", "é🐘\u2028", "a:b\\c\n\r", "x" * 10_000])
def test_correlation_ids(java, queue, rows, correlation):
    java.send(queue, "x", correlation_id=correlation, type=correlation)
    (row,) = rows()
    assert (row["JMSCorrelationID"], row["JMSType"]) == (correlation, correlation)


def test_a_correlation_id_of_bytes_is_lost(broker, java, queue, rows):
    message = java._session.createTextMessage("x")
    message.setJMSCorrelationIDAsBytes(b"\1\2\3")
    java._producer.send(java._destination(queue), message)
    (row,) = rows()
    assert row["JMSCorrelationID"].startswith("[B@")


def test_every_place_to_reply_to(java, queue, rows):
    own = java.temporary_queue()
    places = [f"queue://{queue}.r", f"topic://{queue}.t", own, "queue://a b:c\\ä"]
    for place in places:
        java.send(queue, "x", reply_to=place)
    message = java._session.createTextMessage("x")
    topic = java._session.createTemporaryTopic()
    message.setJMSReplyTo(topic)
    java._producer.send(java._destination(queue), message)
    assert [row["JMSReplyTo"] for row in rows()] == [*places, f"temp-topic://{topic.getTopicName()}"]


def test_a_message_that_was_delivered_before(broker, java, queue, rows):
    java.send(queue, "x")
    client = RawStomp(broker)
    how = [("id", "1"), ("destination", queue), ("subscription-type", "ANYCAST"), ("ack", "client-individual")]
    client.write(frame("SUBSCRIBE", how))
    client.receive()
    client._socket.close()
    wait_until(lambda: broker.delivering_count(queue) == 0 and broker.consumer_count(queue) == 0)
    (row,) = rows()
    assert row["JMSRedelivered"] is True
