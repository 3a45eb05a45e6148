"""Rows that this sink and other clients sent, over one protocol or the other: selected, read, and written again."""

import base64
import itertools

import proton
import pyarrow as pa
import pytest
import stomp
from amqp_sending import put_encoded
from broker_rows import access_over, read_batches, read_rows, write_batch, write_rows
from chosen_brokers import NO_TRANSFORMER, skip_as
from every_protocol import proton_send, qpid
from rhea_messages import RHEA
from streaming import PROTOCOL_PAIRS

from pyspark_jms.errors import SelectorResidualError
from pyspark_jms.testing import EmbeddedClassic, JmsClient, Typed

pytestmark = pytest.mark.broker

PROTOCOLS = ("stomp", "amqp")


@pytest.fixture(scope="module", params=["artemis", pytest.param("classic", marks=pytest.mark.deep)])
def running(request):
    return request.getfixturevalue(request.param)


# --- selectors on properties with types ----------------------------------------------------------------

VALUES = {
    "boolean": (True, "true", "TRUE"),
    "byte": (-9, "-9", "-9"),
    "short": (300, "300", "300"),
    "int": (70_000, "70000", "70000"),
    "long": (5_000_000_000, "5000000000", "5000000000"),
    "float": (1.5, "1.5", "1.5"),
    "double": (1e10, "1.0E10", "1e10"),
    "string": ("a", "a", "'a'"),
}
"""By JMS type: a value, its text in a row, and its literal in a selector."""


@pytest.mark.parametrize(("written", "read"), PROTOCOL_PAIRS)
def test_a_selector_on_a_property_of_this_sink_compares_what_the_broker_has(running, queue, written, read):
    """Over STOMP the broker has the text, over AMQP the type; the row is compared likewise."""
    if (written, read) == ("amqp", "stomp"):
        skip_as("classic-as-run", NO_TRANSFORMER)
    target, source = access_over(running, written), access_over(running, read)
    types = pa.schema([("n", pa.int32()), ("text", pa.string())])
    write_batch(target, queue, pa.record_batch([[9], ["column"]], types), propertyColumns="n")
    write_rows(
        target,
        queue,
        [{"text": kind, "properties": {"p": {"type": kind, "value": text}}} for kind, (_, text, _) in VALUES.items()],
    )

    def selected(selector):
        return [row["text"] for row in read_rows(source, queue, selector=selector)]

    assert selected("n = '9'" if written == "stomp" else "n = 9") == ["column"]
    for kind, (_, text, literal) in VALUES.items():
        assert selected(f"p = '{text}'" if written == "stomp" else f"p = {literal}") == [kind]


# --- rows are written as they were read ------------------------------------------------------------------


def send_stomp(broker, queue):
    connection = stomp.Connection12([(broker.host, broker.port)], vhost="/")
    connection.connect(broker.user, broker.password, wait=True)
    on_classic = isinstance(broker, EmbeddedClassic)
    address, kind = (f"/queue/{queue}", {}) if on_classic else (queue, {"destination-type": "ANYCAST"})
    headers = {"n": "1", "s": "text", "type": "order", "correlation-id": "c", "persistent": "true"}
    connection.send(address, "text", receipt="last", **headers, **kind)
    connection.disconnect()


def by_java(connect):
    def send(broker, queue):
        properties = {"n": 1, "d": Typed("double", 1e10), "b": True, "s": "text"}
        with connect(broker) as client:
            client.send(queue, "text", properties=properties, type="order", correlation_id="c")
            client.send(queue, b"\x01\x02", properties=properties)

    return send


def send_proton(broker, queue):
    """With annotations, and without: Artemis then keeps only the message-id."""
    properties = {"n": proton.int32(1), "b": True, "s": "text"}
    for id, annotations in (("plain", None), ("with", {proton.symbol("x-opt-a"): "v"})):  # noqa: A001 - Proton's name
        parts = {"id": id, "body": "text", "durable": True, "properties": properties, "annotations": annotations}
        proton_send(broker, queue, proton.Message(**parts))


def send_rhea(broker, queue):
    """What rhea encoded, without what STOMP does not carry."""
    put_encoded(broker, queue, [RHEA[name] for name in ("text", "json", "bytes")])


TYPED = [
    {"text": "typed", "properties": {"n": 1, "d": {"type": "double", "value": "1.5"}, "s": "text"}},
    {"map": {"a": {"type": "short", "value": "7"}, "b": None}, "properties": {"n": 1}},
    {"stream": [{"type": "char", "value": "x"}, {"type": "bytes", "value": "AAE="}]},
    {"body_type": "object", "bytes": base64.b64encode(b"\xac\xed\x00\x05t\x00\x01a").decode()},
    {"body_type": "message"},
    {"body_type": "text", "text": '{"map":[]}'},
]


def send_typed(broker, queue):
    """With this sink over STOMP: the types of properties and bodies travel in an envelope."""
    write_rows(access_over(broker, "stomp"), queue, TYPED)


PRODUCERS = {
    "stomp.py": send_stomp,
    "core": by_java(JmsClient),
    "qpid": by_java(qpid),
    "proton": send_proton,
    "rhea": send_rhea,
    "this sink": send_typed,
}
SMALL = {
    ("rhea", "amqp", "amqp"),
    ("this sink", "amqp", "stomp"),
    ("this sink", "amqp", "amqp"),
    ("proton", "stomp", "amqp"),
    ("qpid", "amqp", "stomp"),
}


def legs():
    for leg in itertools.product(PRODUCERS, PROTOCOLS, PROTOCOLS):
        yield pytest.param(*leg, marks=[] if leg in SMALL else pytest.mark.deep)


SENT = ("body_type", "text", "bytes", "map", "stream", "JMSType", "JMSCorrelationID", "JMSDeliveryMode", "JMSPriority")


def what_was_sent(row):
    """What the producer set. A broker adds a delivery count over AMQP, and STOMP has no types. Classic adds property
    transformation to a message that a STOMP consumer had.
    """
    added = {"JMSXDeliveryCount", "transformation"}
    properties = {name: value for name, value in row.get("properties", {}).items() if name not in added}
    return {name: row.get(name) for name in SENT} | {"properties": properties}


@pytest.mark.parametrize(("producer", "read", "written"), list(legs()))
def test_rows_can_be_written_as_they_were_read(running, queue, producer, read, written):
    """As rows of Spark, and as the lines of ``peek --json | send --json-lines``. Each message has an id of its own."""
    source, target = access_over(running, read), access_over(running, written)
    PRODUCERS[producer](running, queue)
    batches, rows = read_batches(source, queue), read_rows(source, queue)
    for row in rows:
        assert [name for name in row.get("properties", ()) if name.startswith(("JMS_AMQP_", "NATIVE_MESSAGE_ID"))] == []
    for batch in batches:
        write_batch(target, f"{queue}.out", batch)
    write_rows(target, f"{queue}.out", rows)
    found = read_rows(target, f"{queue}.out")
    assert [what_was_sent(row) for row in found] == [what_was_sent(row) for row in rows] * 2
    assert len(found) == 2 * len(rows) > 0
    named = [row["delivery_id"] for row in found if "/~" not in row["delivery_id"]]  # equal messages have one digest
    assert len(set(named)) == len(named)
    assert named or written == "amqp"
    known = [row["JMSMessageID"] for row in (*rows, *found) if "JMSMessageID" in row]
    assert len(set(known)) == len(known)


def test_rows_of_this_sink_are_the_same_over_both_protocols(running, queue):
    send_typed(running, queue)
    over = {protocol: read_rows(access_over(running, protocol), queue) for protocol in PROTOCOLS}
    assert [what_was_sent(row) for row in over["amqp"]] == [what_was_sent(row) for row in over["stomp"]]
    assert [row.get("body_type") for row in over["amqp"]] == ["text", "map", "stream", "object", "message", "text"]
    found = read_rows(access_over(running, "amqp"), queue, selector="n = '1'")
    assert [row["body_type"] for row in found] == ["text", "map"]


@pytest.mark.parametrize("written", PROTOCOLS)
def test_what_a_broker_added_to_a_stored_row_is_not_sent(running, queue, written):
    added = {"JMS_AMQP_MA_x-opt-jms-dest": "0", "JMS_AMQP_NATIVE": "true", "NATIVE_MESSAGE_ID": "ID:first"}
    target = access_over(running, written)
    typed = {name: {"type": "string", "value": value} for name, value in ({"n": "1"} | added).items()}
    write_rows(target, queue, [{"text": "a", "properties": typed}, {"text": "b", "properties": {"n": "1"} | added}])
    for protocol in PROTOCOLS:
        rows = read_rows(access_over(running, protocol), queue)
        assert [row["properties"]["n"] for row in rows] == ["1", "1"]
        assert not {*added} & {name for row in rows for name in row["properties"]}
        assert len({row["delivery_id"] for row in rows}) == 2


@pytest.mark.parametrize("read", PROTOCOLS)
def test_a_selector_on_what_a_broker_added_is_the_brokers_business_alone(running, queue, read):
    send_proton(running, queue)
    source = access_over(running, read)
    assert len(read_rows(source, queue, selector="NATIVE_MESSAGE_ID IS NULL OR n = 1")) == 2
    with pytest.raises(SelectorResidualError, match=r"NATIVE_MESSAGE_ID, and rows do not have"):
        read_rows(source, queue, selector="NATIVE_MESSAGE_ID = 'x' OR n / 2 = 3", selectorInSpark="residual")
