"""What the sink writes, as a Java JMS client has it: headers, destinations, bodies and properties."""

import base64
import datetime as dt
import json
import struct
import time

import pyarrow as pa
import pytest
from broker_rows import write_batch
from column_types import batch_of
from streaming import access
from waiting import await_count

from pyspark_jms.jms.model import BodyType, DeliveryMode
from pyspark_jms.testing import JmsClient, Typed

pytestmark = pytest.mark.broker


@pytest.fixture
def send(broker, queue):
    """``send(row, row, …)`` to the test's queue."""

    def send(*rows):
        assert write_batch(access(broker), queue, batch_of(rows)) == (len(rows), 0)

    return send


def in_ms(moment):
    return round(moment.timestamp() * 1000)


def soon(**delta):
    """A whole millisecond from now on."""
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(**delta)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


# --- headers -----------------------------------------------------------------------------------------


CORRELATIONS = ["c-1", "ID:414d5120514d312020202020202020205f2a3b4c20000102", "a:b\\c\n", "é🐘\u2028", "", None]
REPLIES = ["queue://answers", "topic://answers", "queue://a:b\\c é", "queue://a::b", None]


@pytest.mark.parametrize(
    ("column", "attribute", "value"),
    [
        *(("JMSCorrelationID", "correlation_id", each) for each in CORRELATIONS),
        *(("JMSType", "type", each) for each in ("order", "a:b\r\n", "", None)),
        *(("JMSReplyTo", "reply_to", each) for each in REPLIES),
        *(("JMSPriority", "priority", each) for each in range(10)),
    ],
)
def test_a_header_is_kept_as_it_is(send, java, queue, column, attribute, value):
    send({"text": "t", column: value})
    assert getattr(java.receive(queue), attribute) == value


def test_the_delivery_mode(send, java, queue):
    send({"text": "1", "JMSDeliveryMode": 1}, {"text": "2", "JMSDeliveryMode": 2}, {"text": "3"})
    modes = [java.receive(queue).delivery_mode for _ in range(3)]
    assert modes == [DeliveryMode.NON_PERSISTENT, DeliveryMode.PERSISTENT, DeliveryMode.PERSISTENT]


def test_when_it_expires(send, java, queue):
    at = soon(hours=3)
    before = time.time() * 1000
    send({"text": "at", "JMSExpiration": at}, {"text": "in", "time_to_live": 60_000}, {"text": "never"})
    send({"text": "first", "time_to_live": 120_000, "JMSExpiration": at}, {"text": "never", "time_to_live": 0})
    after = time.time() * 1000
    expirations = [java.receive(queue).expiration for _ in range(5)]
    assert (expirations[0], expirations[2], expirations[4]) == (in_ms(at), 0, 0)
    assert before - 1 <= expirations[1] - 60_000 <= after
    assert before - 1 <= expirations[3] - 120_000 <= after


def test_a_delayed_row_waits_and_the_others_do_not(send, java, queue):
    send({"text": "in an hour", "delivery_delay": 3_600_000}, {"text": "now", "delivery_delay": 0})
    assert (java.receive(queue).body, java.receive(queue, timeout=0.2)) == ("now", None)


def test_an_expiry_that_is_over_is_not_sent(send, java, queue):
    send({"text": "late", "JMSExpiration": soon(seconds=-5)})
    found = java.receive(queue)
    assert (found.body, found.expiration) == ("late", 0)


def test_when_it_is_delivered(send, java, queue):
    at = soon(seconds=1)
    before = time.time() * 1000
    send({"text": "at", "JMSDeliveryTime": at}, {"text": "in", "delivery_delay": 1500}, {"text": "now"})
    after = time.time() * 1000
    now, first, second = (java.receive(queue, timeout=60) for _ in range(3))
    assert (now.body, now.delivery_time) == ("now", 0)
    assert (first.body, first.delivery_time) == ("at", in_ms(at))
    assert second.body == "in"
    assert before - 1 <= second.delivery_time - 1500 <= after + 60_000  # the broker's clock, when it took the message
    assert time.time() * 1000 >= second.delivery_time


def test_what_the_provider_sets_is_not_what_a_row_says(send, java, queue):
    past = dt.datetime(2001, 1, 1, tzinfo=dt.UTC)
    before = time.time() * 1000
    reason = {"JMSMessageID": "ID:forged", "JMSTimestamp": past, "JMSDestination": "queue://elsewhere"}
    send({"text": "t", "JMSRedelivered": True} | reason)
    found = java.receive(queue)
    assert found.message_id is None  # of what came over STOMP, Artemis gives none
    assert before - 1000 <= found.timestamp <= time.time() * 1000 + 1000
    assert (found.destination, found.redelivered) == (f"queue://{queue}", False)


# --- destinations ------------------------------------------------------------------------------------


def test_rows_go_to_queues_and_topics_of_their_own(send, java, broker, queue):
    broker.create_queue(f"{queue}.t", topic=True)
    topic = java._session.createTopic(f"{queue}.t")
    listening = [java._session.createConsumer(topic) for _ in range(2)]
    names = [f"queue://{queue}.a", f"{queue}.b", f"topic://{queue}.t", None]
    send(*({"text": f"{n}", "destination": names[n % 4]} for n in range(40)))
    for k, name in enumerate((f"{queue}.a", f"{queue}.b", None, queue)):
        if name is not None:
            assert [java.receive(name).body for _ in range(10)] == [str(n) for n in range(k, 40, 4)]
    for consumer in listening:
        assert [str(consumer.receive(5000).getText()) for _ in range(10)] == [str(n) for n in range(2, 40, 4)]
        consumer.close()


def test_a_temporary_queue_of_a_java_client_is_reached_by_its_name(send, java, broker, queue):
    own = java.temporary_queue()
    java.send(queue, "request", reply_to=own)
    assert java.receive(queue).reply_to == own
    send({"text": "answer", "destination": own, "JMSCorrelationID": "1"})
    found = java.receive(own)
    assert (found.body, found.correlation_id, found.destination) == ("answer", "1", own.removeprefix("temp-"))


def test_an_answer_to_a_temporary_queue_that_is_gone_makes_a_queue_of_that_name(send, java, broker):
    """So a time to live belongs to answers (docs/schema.md)."""
    with JmsClient(broker) as gone:
        own = gone.temporary_queue()
    send({"text": "answer", "destination": own})
    await_count(broker, own.removeprefix("temp-queue://"), 1)


# --- groups and properties ---------------------------------------------------------------------------


def test_groups(send, java, queue):
    rows = [
        {"text": f"{n}", "properties": [("JMSXGroupID", f"g{n % 2}"), ("JMSXGroupSeq", str(n + 1))]} for n in range(3)
    ]
    send(*rows)
    found = [java.receive(queue).properties for _ in range(3)]
    assert [properties["JMSXGroupID"] for properties in found] == [Typed("string", f"g{n % 2}") for n in range(3)]
    assert [int(properties["JMSXGroupSeq"].value) for properties in found] == [1, 2, 3]


def test_properties_are_texts_to_java_and_their_types_are_beside_them(send, java, queue):
    """Over STOMP Artemis knows no other property; JMS reads a text as the type that the caller requests."""
    values = {
        "b": ("true", "boolean"),
        "y": ("-128", "byte"),
        "l": ("9223372036854775807", "long"),
        "d": ("1.0E300", "double"),
    }
    row = {"text": "t", "properties": [(name, text) for name, (text, _) in values.items()]}
    send(row | {"property_types": [(name, kind) for name, (_, kind) in values.items()]})
    found = java.receive(queue).properties
    assert {name: found[name] for name in values} == {name: Typed("string", text) for name, (text, _) in values.items()}
    assert json.loads(found["spark_jms_types"].value) == {name: kind for name, (_, kind) in values.items()}
    send(row)
    selected = java.receive(queue, selector="b = 'true' AND y = '-128'")
    assert "spark_jms_types" not in selected.properties


def test_numbers_are_read_back_as_the_same_numbers(send, java, broker, queue):
    doubles = [0.1, 1e7, 1.5e-5, 1e22, 4.9e-324, 1.7976931348623157e308, -0.0, float("inf"), 2.0**53 + 2, 123456789.125]
    batch = pa.record_batch(
        {"text": ["t"] * len(doubles), "d": pa.array(doubles), "f": pa.array(doubles, pa.float32())}
    )
    write_batch(access(broker), queue, batch, propertyColumns="d,f")
    parse_double, parse_float = broker.jvm.java.lang.Double.parseDouble, broker.jvm.java.lang.Float.parseFloat
    for row in batch.to_pylist():
        properties = java.receive(queue).properties
        assert repr(parse_double(properties["d"].value)) == repr(row["d"])
        assert struct.pack("f", parse_float(properties["f"].value)) == struct.pack("f", row["f"])


# --- bodies ------------------------------------------------------------------------------------------


def test_each_body_is_a_message_of_java_s(send, java, queue):
    element = {"type": "int", "value": "3"}
    send(
        {"text": "é\n🐘"},
        {"bytes": b"\0\xff"},
        {"map": [("n", element), ("z\0", None)]},
        {"stream": [element, {"type": "char", "value": '"'}]},
        {"body_type": "object", "bytes": b"\xac\xed\0\5"},
        {"body_type": "message"},
        {"body_type": "text"},
    )
    found = [java.receive(queue) for _ in range(7)]
    envelope = [message.properties.get("spark_jms_body") for message in found]
    assert [kind and kind.value for kind in envelope] == [None, None, "map", "stream", "object", "message", None]
    text, raw = BodyType.TEXT, BodyType.BYTES
    assert [message.body_type for message in found] == [text, raw, text, text, raw, text, text]
    assert [found[i].body for i in (0, 1, 4, 6)] == ["é\n🐘", b"\0\xff", b"\xac\xed\0\5", ""]
    assert found[2].body == (
        '{"map":[{"name":"n","type":"int","value":"3"},{"name":"z\\u0000","type":"string","value":null}]}'
    )
    assert found[3].body == '{"stream":[{"type":"int","value":"3"},{"type":"char","value":"\\""}]}'


def test_an_object_s_bytes_are_those_that_java_wrote(send, java, broker, queue):
    """Java reads the object back; nothing here ever does."""
    io, encoder = broker.jvm.java.io, broker.jvm.java.util.Base64.getEncoder()
    buffer = io.ByteArrayOutputStream()
    stream = io.ObjectOutputStream(buffer)
    stream.writeObject(broker.jvm.java.math.BigDecimal("12.50"))
    stream.flush()
    send({"body_type": "object", "bytes": base64.b64decode(encoder.encodeToString(buffer.toByteArray()))})
    raw = java.receive(queue).body
    assert str(io.ObjectInputStream(io.ByteArrayInputStream(raw)).readObject()) == "12.50"
