"""A plain message of each protocol that a broker speaks, read and written over STOMP and AMQP.

Tables of docs/brokers have what a broker adds and what differs in the copy. Fails when a new version of a
broker adds a property: name it in connector/pyspark_jms/jms/added_names.py, or write the tables again.
"""

import os
import re
import uuid
from pathlib import Path

import pyarrow as pa
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
from pyspark_jms.jms.rules import SET_BY_PROVIDER, is_left_out
from pyspark_jms.options.broker import dialect_of
from pyspark_jms.testing import JmsClient

pytestmark = [pytest.mark.broker]

BROKERS = {"artemis": Artemis, "classic": Classic, "rabbitmq 3": Rabbit3, "rabbitmq 4": Rabbit}
NOT_OF_RABBITMQ_3 = ("AMQP 1.0", "MQTT 5")


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


def sent_columns(batch, broker, over):
    """The columns of the only row that the sink sends over a protocol."""
    (row,) = batch.to_pylist()
    dialect = dialect_of(over, broker.dialect)
    set_by_broker = dialect.set_by_broker
    found = {name: row[name] for name in ARROW_SCHEMA.names if name not in IGNORED_BY_SINK}
    sent = {key for key, value in row["properties"] or () if value is not None and not is_left_out(key, set_by_broker)}
    for name in ("properties", "property_types"):
        found[name] = {key: value for key, value in row[name] or () if key in sent}
    return found


def arrived(access, queue):
    """What a batch read has, once it has something: nobody confirms a will."""
    found = []
    wait_until(lambda: found.extend(read_batches(access, queue)) or found, what="the message")
    return found


def body_of(row):
    return row["text"] if row["text"] is not None else (row["bytes"] or b"").decode()


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
        assert sent_columns(batch, broker, protocol)["properties"] == {}
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
    properties = sent_columns(batch, broker, protocol)["properties"]
    assert properties.pop("mqtt.correlation.data", "Yw==") == "Yw==", "over AMQP; it is not sent"
    assert properties == PARTS
    write_batch(access_over(broker, protocol), copies, batch)
    (copy,) = read_batches(access_over(broker, protocol), copies)
    assert sent_columns(copy, broker, protocol)["properties"] == PARTS
    topic = f"{queue}.topic"
    with mqtt_subscriber(broker, topic) as received:
        write_batch(access_over(broker, protocol), None, batch, topic=topic)
        wait_until(lambda: received, what="the copy")
    assert (received[0].payload, received[0].properties.UserProperty) == (BODY.encode(), USER_PROPERTIES)


NAMES_OF_OTHERS = ("x-trace", "order-id", "a.b", "a b", "a:b", "1a", "null", " a ", "a\nb", "a\\", "é")


@pytest.mark.deep
@pytest.mark.parametrize("name", list(BROKERS))
def test_properties_whose_names_jms_does_not_have_are_written_as_they_were_read(running, name):
    broker = running(name)
    given = {name: str(number) for number, name in enumerate(NAMES_OF_OTHERS)}
    row = {"text": pa.array([BODY]), "properties": pa.array([[*given.items()]], pa.map_(pa.string(), pa.string()))}
    for protocol in protocols_of(broker):
        batch = pa.record_batch(row)
        for _ in range(2):
            queue = queue_on(broker)
            write_batch(access_over(broker, protocol), queue, batch, **unconfirmed(broker))
            (batch,) = read_batches(access_over(broker, protocol), queue)
            assert sent_columns(batch, broker, protocol)["properties"] == given


@pytest.mark.deep
@pytest.mark.parametrize("name", list(BROKERS))
def test_a_message_with_all_parts_is_written_as_it_was_read(running, name):
    broker, found = running(name), {}
    for protocol, send in FULL[broker.dialect].items():
        if name == "rabbitmq 3" and protocol in NOT_OF_RABBITMQ_3:
            continue
        queue = queue_on(broker)
        send(broker, queue)
        for over in protocols_of(broker):
            copies = queue_on(broker)
            (batch,) = arrived(access_over(broker, over), queue)
            write_batch(access_over(broker, over), copies, batch, **unconfirmed(broker))
            (copy,) = read_batches(access_over(broker, over), copies)
            found[protocol, over] = differing(batch, copy, broker, over)
    assert {way: each for way, each in found.items() if each} == {}


# --- the tables of docs/brokers ---------------------------------------------------------------------------

PAGES = Path(__file__).resolve().parents[2] / "docs" / "brokers"
TITLES = {"artemis": "Artemis 2.55", "classic": "Classic 6.3", "rabbitmq 4": "RabbitMQ 4.3"}
COLUMNS = ("JMSType", "JMSXGroupID", "JMSPriority", "JMSCorrelationID", "JMSReplyTo", "content_type")
HEAD = ("from", "row over", "body", *COLUMNS, "time, expiry", "properties")
BY_PROVIDER = {"JMSXDeliveryCount", "JMSXGroupSeq", "JMSXGroupID", "JMSXUserID"}


def page_of(name):
    """The page with the tables of a broker: ``rabbitmq 4`` is on docs/brokers/rabbitmq.md."""
    return PAGES / f"{name.partition(' ')[0]}.md"


def fences(name):
    return f"<!-- {name}, written by tests/brokers/test_every_protocol.py -->\n", f"<!-- end of {name} -->\n"


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
    require_written(name, "protocols", lines)


def require_written(name, table, lines):
    page = page_of(name)
    begin, end = fences(f"{name} {table}")
    before, _, rest = page.read_text().partition(begin)
    written, _, after = rest.partition(end)
    if os.environ.get("WRITE_TABLE"):
        page.write_text(before + begin + "\n" + "".join(lines) + end + after)
        return
    assert written.strip() == "".join(lines).strip()


# --- copies ------------------------------------------------------------------------------------------------

NAME = re.compile(r"q[0-9a-f]{8}")
"""Of ``queue_on``."""
COPY_HEAD = ("row over", "written over", "copy read over", "from", "the row → the copy")


def copies_of(broker, protocol):
    """Yield (row over, written over, copy over) and what differs, and without the last two what is added."""
    queue = queue_on(broker)
    PRODUCERS[broker.dialect][protocol](broker, queue)
    for read_over in protocols_of(broker):
        (batch,) = arrived(access_over(broker, read_over), queue)
        (row,) = batch.to_pylist()
        assert (row["body_error"], body_of(row)) == (None, BODY)
        added = {name: value for name, value in row["properties"] or () if name not in SET_BY_PROVIDER}
        yield (read_over, "", ""), "; ".join(f"has `{name}`: `{value}`" for name, value in sorted(added.items()))
        for write_over in protocols_of(broker):
            copies = queue_on(broker)
            write_batch(access_over(broker, write_over), copies, batch, **unconfirmed(broker))
            for over in protocols_of(broker):
                (copy,) = read_batches(access_over(broker, over), copies)
                yield (read_over, write_over, over), differing(batch, copy, broker, write_over)


def differing(batch, copy, broker, over):
    row, found = (sent_columns(each, broker, over) for each in (batch, copy))
    return "; ".join(f"{name} {shown(row[name])} → {shown(found[name])}" for name in row if row[name] != found[name])


def shown(value):
    if value is None:
        return "-"
    if isinstance(value, dict) and len(value) > 1:
        return "those of all properties"
    return f"`{value!r}`" if isinstance(value, bytes | dict) else f"`{value}`"


@pytest.mark.deep
@pytest.mark.parametrize("name", list(BROKERS))
def test_a_plain_message_is_written_as_it_was_read_but_for_what_the_page_says(running, name):
    broker, found = running(name), {}
    for protocol in PRODUCERS[broker.dialect]:
        if name != "rabbitmq 3" or not protocol.startswith(NOT_OF_RABBITMQ_3):
            for way, difference in copies_of(broker, protocol):
                if difference:
                    said = found.setdefault((*way, NAME.sub("NAME", difference)), [])
                    said.append(protocol)
    rows = ((*(each.upper() or "-" for each in way), ", ".join(said), what) for (*way, what), said in found.items())
    lines = [f"| {' | '.join(cells)} |\n" for cells in (COPY_HEAD, *rows)]
    lines.insert(1, "|---" * len(COPY_HEAD) + "|\n")
    require_written(name, "copies", lines if len(lines) > 2 else ["Nothing differs.\n"])
