"""A plain message of each protocol that a broker speaks, read and written over STOMP and AMQP: nothing is added.

Fails when a new version of a broker adds a property: name it in connector/pyspark_jms/jms/added_names.py.
"""

import os
import uuid
from pathlib import Path

import pytest
from broker_rows import access_over, read_batches, write_batch
from broker_stage import require_rabbitmq
from every_protocol import (
    BODY,
    FULL,
    PRODUCERS,
    Artemis,
    Classic,
    Rabbit,
    Rabbit3,
    make_queue,
    mqtt_publish,
    mqtt_subscriber,
    openwire,
    pika_send,
)
from paho.mqtt.client import MQTTv5
from rabbit4 import require_rabbit4
from waiting import wait_until

from pyspark_jms.columns.schema import ARROW_SCHEMA, IGNORED_BY_SINK
from pyspark_jms.jms.model import OCTET_STREAM
from pyspark_jms.testing import JmsClient

pytestmark = [pytest.mark.broker]

BROKERS = {"artemis": Artemis, "classic": Classic, "rabbitmq 3": Rabbit3, "rabbitmq 4": Rabbit}
NOT_OF_RABBITMQ_3 = {"AMQP 1.0", "MQTT 5"}
CASES = [
    (name, protocol)
    for name in BROKERS
    for protocol in PRODUCERS[name.partition(" ")[0]]
    if name != "rabbitmq 3" or protocol not in NOT_OF_RABBITMQ_3
]
ADDED = {"JMSXDeliveryCount", "JMSXGroupSeq", "original-destination"}
"""Rows have these: a provider's own, the group sequence 0 that Artemis gives each message of an OpenWire client, and
the topic from which Classic has put the message into the queue.
"""


@pytest.fixture(scope="module")
def running():
    """``running(name)`` starts a broker and ends the one before."""
    now = {}

    def running(name):
        if name not in now:
            for broker in now.values():
                broker.kill()
            now.clear()
            if name.startswith("rabbitmq"):
                require_rabbit4("sid") if name == "rabbitmq 4" else require_rabbitmq()
            now[name] = BROKERS[name]()
            now[name].start()
        return now[name]

    yield running
    for broker in now.values():
        broker.kill()


def queue_on(broker):
    # On Classic, a queue gets what is published to a topic as the consumer of a virtual topic.
    name = f"q{uuid.uuid4().hex[:8]}"
    queue = f"Consumer.test.VirtualTopic.{name}" if broker.dialect == "classic" else name
    make_queue(broker, queue)
    return queue


def protocols_of(broker):
    return ["stomp", *(["amqp"] if hasattr(broker, "amqp_url") else [])]


def sent_columns(batch):
    """What the sink sends of the only row, with its defaults. The provider's own properties are not sent."""
    (row,) = batch.to_pylist()
    found = {name: row[name] for name in ARROW_SCHEMA.names if name not in IGNORED_BY_SINK}
    found |= {"JMSPriority": 4 if row["JMSPriority"] is None else row["JMSPriority"]}
    found |= {"content_type": None if row["content_type"] == OCTET_STREAM else row["content_type"]}
    for name in ("properties", "property_types"):
        found[name] = {key: value for key, value in row[name] or () if key not in ADDED}
    return found


def body_of(row):
    return row["text"] if row["text"] is not None else (row["bytes"] or b"").decode()


@pytest.mark.parametrize(("name", "protocol"), [pytest.param(*case, marks=pytest.mark.deep) for case in CASES])
def test_a_plain_message_has_no_properties_and_is_written_as_it_was_read(running, name, protocol):
    broker = running(name)
    queue = queue_on(broker)
    PRODUCERS[broker.dialect][protocol](broker, queue)
    for read_over in protocols_of(broker):
        (batch,) = read_batches(access_over(broker, read_over), queue)
        row = sent_columns(batch)
        assert (row["properties"], batch["body_error"].to_pylist(), body_of(row)) == ({}, [None], BODY)
        for write_over in protocols_of(broker):
            copies = queue_on(broker)
            write_batch(access_over(broker, write_over), copies, batch, **unconfirmed(broker))
            (copy,) = read_batches(access_over(broker, write_over), copies)
            assert sent_columns(copy) == row, (read_over, write_over)


def unconfirmed(broker):
    return {"transaction": "none"} if broker.dialect == "rabbitmq" else {}


@pytest.mark.deep
def test_two_copies_of_an_openwire_message_on_artemis_are_two_messages_to_an_openwire_consumer(running):
    broker = running("artemis")
    queue, copies = queue_on(broker), queue_on(broker)
    PRODUCERS["artemis"]["OpenWire"](broker, queue)
    for protocol in protocols_of(broker):
        (batch,) = read_batches(access_over(broker, protocol), queue)
        write_batch(access_over(broker, protocol), copies, batch)
    with openwire(broker, "failover:(tcp://{})") as session:
        consumer = session.createConsumer(session.createQueue(copies))
        assert [consumer.receive(5000).getText() for _ in range(2)] == [BODY] * 2


@pytest.mark.deep
def test_a_browse_over_stomp_adds_nothing_to_messages_of_classic(running):
    broker = running("classic")
    queue = queue_on(broker)
    PRODUCERS["classic"]["OpenWire"](broker, queue)
    read_batches(access_over(broker, "stomp"), queue)
    with JmsClient(broker) as java:
        assert {*java.receive(queue).properties} <= {"JMSXDeliveryCount"}


@pytest.mark.deep
@pytest.mark.parametrize("name", ["rabbitmq 3", "rabbitmq 4"])
def test_the_encoding_that_celery_and_kombu_state_is_no_property(running, name):
    broker = running(name)
    queue, copies = queue_on(broker), queue_on(broker)
    pika_send(broker, queue, content_type="application/json", content_encoding="utf-8", cluster_id="c", delivery_mode=2)
    for protocol in protocols_of(broker):
        (batch,) = read_batches(access_over(broker, protocol), queue)
        assert sent_columns(batch)["properties"] == {}
        write_batch(access_over(broker, protocol), copies, batch, transaction="none")
        with Artemis() as other:
            write_batch(access_over(other, protocol), copies, batch)


USER_PROPERTIES = [("region", "EU"), ("region", "US"), ("x-trace", "t")]
PARTS = {
    "mqtt.content.type": "application/json",
    "mqtt.ordered.user.property.0.region": "EU",
    "mqtt.ordered.user.property.1.region": "US",
    "mqtt.ordered.user.property.2.x-trace": "t",
    "mqtt.response.topic": "an/swers",
    "mqtt.user.property.exists": "3",
}


@pytest.mark.deep
@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_the_parts_of_an_mqtt_5_message_are_in_the_row_and_in_its_copy(running, protocol):
    broker = running("artemis")
    queue, copies = queue_on(broker), queue_on(broker)
    given = {"ContentType": "application/json", "ResponseTopic": "an/swers", "UserProperty": USER_PROPERTIES}
    mqtt_publish(broker, queue, MQTTv5, CorrelationData=b"c", **given)
    (batch,) = read_batches(access_over(broker, protocol), queue)
    properties = sent_columns(batch)["properties"]
    assert properties.pop("mqtt.correlation.data", "Yw==") == "Yw==", "over AMQP; it is not sent"
    assert properties == PARTS
    write_batch(access_over(broker, protocol), copies, batch)
    (copy,) = read_batches(access_over(broker, protocol), copies)
    assert sent_columns(copy)["properties"] == PARTS
    topic = f"{queue}.topic"
    with mqtt_subscriber(broker, topic) as received:
        write_batch(access_over(broker, protocol), None, batch, topic=topic)
        wait_until(lambda: received, what="the copy")
    assert (received[0].payload, received[0].properties.UserProperty) == (BODY.encode(), USER_PROPERTIES)


# --- the tables of docs/typed-messages.md -----------------------------------------------------------------

PAGE = Path(__file__).resolve().parents[2] / "docs" / "typed-messages.md"
TITLES = {"artemis": "Artemis 2.55", "classic": "Classic 6.3", "rabbitmq 4": "RabbitMQ 4.3"}
COLUMNS = ("JMSType", "JMSXGroupID", "JMSPriority", "JMSCorrelationID", "JMSReplyTo", "content_type")
HEAD = ("from", "row over", "body", *COLUMNS, "time, expiry", "properties")
BY_PROVIDER = {"JMSXDeliveryCount", "JMSXGroupSeq", "JMSXGroupID", "JMSXUserID"}


def fences(name):
    return f"<!-- {name} protocols, written by tests/brokers/test_every_protocol.py -->\n", f"<!-- end of {name} -->\n"


def line_of(protocol, over, batch):
    (row,) = batch.to_pylist()
    properties, types = dict(row["properties"] or ()), dict(row["property_types"] or ())
    found = row | {"JMSXGroupID": properties.get("JMSXGroupID")}
    given = [
        f"`{key}`: {types.get(key, '')} `{value}`".replace(":  ", ": ") if value is not None else f"`{key}`: null"
        for key, value in sorted(properties.items())
        if key not in BY_PROVIDER
    ]
    times = ", ".join("yes" if row[name] else "-" for name in ("JMSTimestamp", "JMSExpiration"))
    body = f"`{row['body_type']}`" + (", `body_error`" if row["body_error"] else "")
    cells = [protocol, over, body, *(f"`{found[name]}`" if found[name] is not None else "-" for name in COLUMNS)]
    return "| " + " | ".join([*cells, times, "; ".join(given) or "-"]) + " |\n"


@pytest.mark.deep
@pytest.mark.parametrize("name", list(TITLES))
def test_what_arrives_of_each_protocol_is_what_the_page_says(running, name):
    broker = running(name)
    lines = [f"| {' | '.join(HEAD)} |\n", "|---" * len(HEAD) + "|\n"]
    for protocol, send in FULL[broker.dialect].items():
        queue = queue_on(broker)
        send(broker, queue)
        for over in protocols_of(broker):
            (batch,) = read_batches(access_over(broker, over), queue)
            lines.append(line_of(protocol, over.upper(), batch))
    begin, end = fences(name)
    before, _, rest = PAGE.read_text().partition(begin)
    written, _, after = rest.partition(end)
    if os.environ.get("WRITE_TABLE"):
        PAGE.write_text(before + begin + "\n" + "".join(lines) + end + after)
        return
    assert written.strip() == "".join(lines).strip()
