"""What the sink writes, to a real Java JMS client: its classes, and envelopes opened by the documented lines."""

import base64
import struct

import pyarrow as pa
import pytest
from java_lines import HARNESS, call, compiled, fenced
from streaming import access, left, read, run_available

from pyspark_jms.columns.schema import TYPED_VALUE
from pyspark_jms.jms.model import DeliveryMode
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.spark.batch_reader import JmsPeek
from pyspark_jms.stomp.sink import StompSinkLink
from pyspark_jms.testing import JmsClient, Typed

pytestmark = [pytest.mark.broker, pytest.mark.deep]


@pytest.fixture(scope="module")
def documented(broker, tmp_path_factory):
    """``documented(method, argument)`` of the class that holds the ten lines, as they stand in the documentation."""
    (lines,) = fenced("typed-messages.md", "java")
    assert len(lines.splitlines()) == 10
    java_class = compiled(broker, "Documented", HARNESS.replace("%s", lines), tmp_path_factory.mktemp("java"))
    return lambda method, argument: call(broker, java_class, method, argument)


def test_a_lone_surrogate_comes_as_a_question_mark(broker, java, queue, documented):
    message = java._session.createTextMessage()
    documented("loneSurrogate", message)
    java._producer.send(java._destination(queue), message)
    peek = JmsPeek(SourceOptions.parse(access(broker) | {"queue": queue, "idleTimeout": "1s"}))
    assert [batch.column("text").to_pylist() for part in peek.partitions() for batch in peek.read(part)] == [["a?b"]]


TYPES = {"properties": pa.map_(pa.string(), pa.string()), "property_types": pa.map_(pa.string(), pa.string()),
         "bytes": pa.binary(), "map": pa.map_(pa.string(), TYPED_VALUE), "stream": pa.list_(TYPED_VALUE)}  # fmt: skip


@pytest.fixture
def send(broker, queue):
    """``send(row, row, …)`` to the test's queue."""

    def send(*rows):
        names = {name for row in rows for name in row}
        columns = {name: pa.array([row.get(name) for row in rows], TYPES.get(name, pa.string())) for name in names}
        options = SinkOptions.parse(access(broker) | {"queue": queue})
        assert send_at_least_once(StompSinkLink, options, iter([pa.record_batch(columns)])) == (len(rows), 0)

    return send


def float_bits(value):
    return struct.unpack(">i", struct.pack(">f", value))[0]


def double_bits(value):
    return struct.unpack(">q", struct.pack(">d", value))[0]


ELEMENTS = [
    ("boolean", "true", "Boolean", True),
    ("boolean", "false", "Boolean", False),
    ("byte", "-128", "Byte", -128),
    ("byte", "127", "Byte", 127),
    ("short", "-32768", "Short", -32768),
    ("short", "32767", "Short", 32767),
    ("int", "-2147483648", "Integer", -(2**31)),
    ("int", "2147483647", "Integer", 2**31 - 1),
    ("long", "-9223372036854775808", "Long", -(2**63)),
    ("long", "9223372036854775807", "Long", 2**63 - 1),
    ("float", "1.4E-45", "Float", 2.0**-149),
    ("float", "-3.4028235E38", "Float", -(2 - 2.0**-23) * 2.0**127),
    ("float", "NaN", "Float", float("nan")),
    ("float", "-0.0", "Float", -0.0),
    ("float", "Infinity", "Float", float("inf")),
    ("double", "4.9E-324", "Double", 5e-324),
    ("double", "1.7976931348623157E308", "Double", 1.7976931348623157e308),
    ("double", "NaN", "Double", float("nan")),
    ("double", "-Infinity", "Double", float("-inf")),
    ("double", "-0.0", "Double", -0.0),
    ("double", "0.1", "Double", 0.1),
    ("string", "", "String", ""),
    ("string", 'é\0\n\r"\\😀\u2028\ufeff\x1f', "String", 'é\0\n\r"\\😀\u2028\ufeff\x1f'),
    ("char", "ü", "Character", "ü"),
    ("char", "\0", "Character", "\0"),
    ("char", "\uffff", "Character", "\uffff"),
    ("bytes", "", "byte[]", b""),
    ("bytes", "AAH/", "byte[]", b"\0\1\xff"),
    *[(kind, None, "null", None) for kind in ("boolean", "int", "double", "string", "char", "bytes")],
]


def as_reported(java_class, value):
    """How ``Documented.reported`` writes it."""
    match java_class:
        case "byte[]":
            return base64.b64encode(value).decode()
        case "Float":
            return str(float_bits(value))
        case "Double":
            return str(double_bits(value))
        case "Boolean" | "null":
            value = {True: "true", False: "false", None: "null"}[value]
    return base64.b64encode(str(value).encode("utf-16-be")).decode()


def opened(reported):
    """(name, class of the name, class, value) of each element."""
    entries = [line.split(" ") for line in reported.splitlines()]
    return [(base64.b64decode(name).decode("utf-16-be"), of, kind, value) for name, of, kind, value in entries]


def elements():
    return [{"type": kind, "value": text} for kind, text, _, _ in ELEMENTS]


def test_a_map_opened_by_the_documented_lines(java, queue, send, documented):
    names = [f'{n}: "{kind}"\n\0ä' for n, (kind, *_) in enumerate(ELEMENTS)]
    send({"map": list(zip(names, elements(), strict=True))})
    reported = java.receive_as(lambda message: documented("reported", message), queue)
    assert opened(reported) == [
        (name, "String", java_class, as_reported(java_class, value))
        for name, (_, _, java_class, value) in zip(names, ELEMENTS, strict=True)
    ]


def test_a_stream_opened_by_the_documented_lines(java, queue, send, documented):
    send({"stream": elements()})
    reported = java.receive_as(lambda message: documented("reported", message), queue)
    assert opened(reported) == [
        (str(n), "Integer", java_class, as_reported(java_class, value))
        for n, (_, _, java_class, value) in enumerate(ELEMENTS)
    ]


def test_envelopes_of_little(java, queue, send, documented):
    send({"map": []}, {"stream": []}, {"stream": [None]})
    reported = [java.receive_as(lambda message: documented("reported", message), queue) for _ in range(3)]
    assert [opened(text) for text in reported] == [[], [], [("0", "Integer", "null", as_reported("null", None))]]


def test_what_each_body_is_an_instance_of(java, queue, send, documented):
    bodies = {
        "text": {"text": "t"},
        "bytes": {"bytes": b"\0"},
        "map": {"map": [("a", {"type": "int", "value": "1"})]},
        "stream": {"stream": [{"type": "int", "value": "1"}]},
        "object": {"body_type": "object", "bytes": b"\xac\xed\0\5t\0\1a"},
        "message": {"body_type": "message"},
    }
    send(*bodies.values())

    def facts(message):
        marker = message.getStringProperty("spark_jms_body")
        return documented("instancesOf", message), message.getClass().getSimpleName(), marker

    found = {name: java.receive_as(facts, queue) for name in bodies}
    text, raw = ("TextMessage", "ActiveMQTextMessage"), ("BytesMessage", "ActiveMQBytesMessage")
    assert found == {
        "text": (*text, None),
        "bytes": (*raw, None),
        "map": (*text, "map"),
        "stream": (*text, "stream"),
        "object": (*raw, "object"),
        "message": (*text, "message"),
    }


PROPERTY_GETTERS = {
    "boolean": ("true", "getBooleanProperty", True),
    "byte": ("-128", "getByteProperty", -128),
    "short": ("32767", "getShortProperty", 32767),
    "int": ("-2147483648", "getIntProperty", -(2**31)),
    "long": ("9223372036854775807", "getLongProperty", 2**63 - 1),
    "float": ("3.4028235E38", "getFloatProperty", (2 - 2.0**-23) * 2.0**127),
    "double": ("4.9E-324", "getDoubleProperty", 5e-324),
    "string": ("é\n😀", "getStringProperty", "é\n😀"),
}


def test_jms_converts_properties_to_the_requested_type(java, queue, send):
    send(
        {
            "text": "t",
            "properties": [(kind, text) for kind, (text, _, _) in PROPERTY_GETTERS.items()],
            "property_types": [(kind, kind) for kind in PROPERTY_GETTERS],
        }
    )

    def read_properties(message):
        return {kind: getattr(message, getter)(kind) for kind, (_, getter, _) in PROPERTY_GETTERS.items()}

    wanted = {kind: value for kind, (_, _, value) in PROPERTY_GETTERS.items()}
    got = java.receive_as(read_properties, queue)
    # py4j hands a float over by its shortest text
    assert float_bits(got.pop("float")) == float_bits(wanted.pop("float"))
    assert got == wanted


# --- through Spark, both ways -------------------------------------------------------------------------------


@pytest.mark.spark
def test_java_to_spark_to_java(spark, broker, queue, tmp_path, documented):
    """What Java sends goes through a query to Java: texts, bytes, headers and properties as they were."""

    def facts(message):
        return documented("reported", message), message.getJMSExpiration() - message.getJMSTimestamp()

    onward = f"{queue}.onward"
    sent = {
        "text": ("héllo\n😀", {"correlation_id": "c-1", "type": "kind", "priority": 7}),
        "bytes": (b"\0\xff", {"reply_to": f"queue://{queue}.r", "delivery_mode": DeliveryMode.NON_PERSISTENT}),
        "envelope": ('{"stream":[{"type":"short","value":"7"}]}', {"time_to_live": 3_600_000}),
    }
    with JmsClient(broker) as java:
        for name, (body, headers) in sent.items():
            marker = {"spark_jms_body": "stream"} if name == "envelope" else {}
            java.send(queue, body, properties={"name": name, "n": Typed("short", 3)} | marker, **headers)
        run_available(read(spark, broker, queue=queue), tmp_path, sink="jms", queue=onward, **access(broker))
        assert left(broker, queue) == 0
        found = [java.receive(onward, selector="spark_jms_body IS NULL") for _ in range(2)]
        reported, expires = java.receive_as(facts, onward)
    assert opened(reported) == [("0", "Integer", "Short", as_reported("Short", 7))]
    assert 0 < expires <= 3_600_000
    raw, text = sorted(found, key=lambda message: message.properties["name"].value)
    assert (text.body, text.correlation_id, text.type, text.priority) == ("héllo\n😀", "c-1", "kind", 7)
    assert text.properties["n"] == Typed("string", "3")
    assert (raw.body, raw.reply_to, raw.delivery_mode) == (
        b"\0\xff", f"queue://{queue}.r", DeliveryMode.NON_PERSISTENT
    )  # fmt: skip
