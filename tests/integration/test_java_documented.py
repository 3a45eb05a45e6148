"""What the sink writes, to a real Java JMS client: its classes, and envelopes opened by the documented lines."""

import base64
import os
import re
import struct
import subprocess
from pathlib import Path

import pytest
from broker_rows import read_texts, write_batch
from column_types import batch_of
from streaming import access

from pyspark_jms.tools.testing.java import find_java, spark_jars

pytestmark = [pytest.mark.broker, pytest.mark.deep]

PAGE = Path(__file__).parents[2] / "docs" / "typed-messages.md"
HARNESS = """
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import jakarta.jms.*;
import java.util.*;
import java.util.function.Function;

public class Documented {
%s
    /** Name, class and value of each element: bytes in base64, floating-point numbers by their bits. */
    public static String reported(TextMessage message) throws Exception {
        StringBuilder reported = new StringBuilder();
        for (Map.Entry<Object, Object> entry : values(message).entrySet()) {
            Object value = entry.getValue();
            reported.append(base64(entry.getKey())).append(' ')
                .append(entry.getKey().getClass().getSimpleName()).append(' ')
                .append(value == null ? "null" : value.getClass().getSimpleName()).append(' ')
                .append(value instanceof byte[] ? Base64.getEncoder().encodeToString((byte[]) value)
                    : value instanceof Float ? "" + Float.floatToRawIntBits((Float) value)
                    : value instanceof Double ? "" + Double.doubleToRawLongBits((Double) value)
                    : base64(value)).append('\\n');
        }
        return reported.toString();
    }

    static String base64(Object value) throws Exception {
        return Base64.getEncoder().encodeToString(String.valueOf(value).getBytes("UTF-16BE"));
    }

    /** What a Python client cannot hand over: a text that is not Unicode. */
    public static void loneSurrogate(TextMessage message) throws Exception {
        message.setText("a\\ud800b");
    }
}
"""
"""A class around the lines of the documentation, which stand for ``%s``: what a test reads of their values."""


def jackson():
    """Spark brings it."""
    names = ("jackson-annotations-*.jar", "jackson-core-[0-9]*.jar", "jackson-databind-*.jar")
    return [str(jar) for name in names for jar in spark_jars().glob(name)]


def compiled(broker, name, source, folder):
    """The class ``name``, which sees Jackson and what the broker's machine sees. Without a compiler: skipped."""
    jvm = broker.jvm
    if "jdk.compiler@" not in _run_java("--list-modules").stdout:
        pytest.skip("this machine's Java has no compiler (a JDK has one)")
    file = folder / f"{name}.java"
    file.write_text(source)
    classpath = os.pathsep.join([*jackson(), str(jvm.System.getProperty("java.class.path"))])
    javac = ["--module", "jdk.compiler/com.sun.tools.javac.Main", "-proc:none"]
    reported = _run_java(*javac, "-classpath", classpath, "-d", str(folder), str(file))
    assert reported.returncode == 0, reported.stdout + reported.stderr
    urls = [jvm.java.io.File(path).toURI().toURL() for path in (*jackson(), f"{folder}/")]
    parent = jvm.ClassLoader.getSystemClassLoader()
    return jvm.java.net.URLClassLoader(_array(broker.gateway, jvm.java.net.URL, urls), parent).loadClass(name)


def _run_java(*arguments):
    return subprocess.run([find_java(), *arguments], capture_output=True, text=True, timeout=120, check=False)


def call(broker, java_class, method, argument):
    """A static method of one parameter."""
    (found,) = [m for m in java_class.getMethods() if m.getName() == method]
    return found.invoke(None, _array(broker.gateway, broker.jvm.java.lang.Object, [argument]))


def _array(gateway, of, values):
    array = gateway.new_array(of, len(values))
    for index, value in enumerate(values):
        array[index] = value
    return array


@pytest.fixture(scope="module")
def documented(broker, tmp_path_factory):
    """``documented(method, argument)`` of the class that holds the ten lines, as they stand in the documentation."""
    (lines,) = re.findall(r"^```java\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
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
