"""What the sink writes, to a real Java JMS client: its classes, and envelopes opened by the documented lines."""

import base64
import struct

import pytest
from broker_rows import read_texts, write_batch
from column_types import batch_of
from java_lines import HARNESS, call, compiled, fenced
from streaming import access

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
    assert read_texts(access(broker), queue) == ["a?b"]


@pytest.fixture
def send(broker, queue):
    return lambda *rows: write_batch(access(broker), queue, batch_of(rows))


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
