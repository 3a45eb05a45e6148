"""Every cell of both tables: as the specification has it, as Java's classes do it, and a JMS provider's messages."""

import base64
import math
import re
import struct
import sys
import unicodedata
from pathlib import Path

import pytest
from generated import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from jms_selector.syntax.kinds import to_float
from pyspark_jms.errors import JMSError, MessageFormatError, NullValueError, NumberFormatError
from pyspark_jms.jms.conversions import BASE64, READABLE_AS, ValueType, convert, parse, render
from pyspark_jms.tools.testing.jars import ARTEMIS_PACKAGES, resolve
from pyspark_jms.tools.testing.java import JavaMachine

TYPES = [*ValueType]
PROPERTY_TYPES = TYPES[:8]
ELEMENT_CELLS = [(written, read) for written in TYPES for read in TYPES]
PROPERTY_CELLS = [(written, read) for written in PROPERTY_TYPES for read in PROPERTY_TYPES]
INTEGERS = {"byte": 8, "short": 16, "int": 32, "long": 64}

# JMS 3.1 §3.11.3, and without char and bytes §3.5.4. Written as the row, readable as the columns of TYPES.
SPECIFIED = {
    "boolean": "x . . . . . . x . .",
    "byte":    ". x x x x . . x . .",
    "short":   ". . x x x . . x . .",
    "int":     ". . . x x . . x . .",
    "long":    ". . . . x . . x . .",
    "float":   ". . . . . x x x . .",
    "double":  ". . . . . . x x . .",
    "string":  "x x x x x x x x . .",
    "char":    ". . . . . . . x x .",
    "bytes":   ". . . . . . . . . x",
}  # fmt: skip

# Written as this text; what it is as its own type; what it is read as where that is something else.
SAMPLES = {
    "boolean": [("true", True, {"string": "true"}), ("FALSE", False, {"string": "false"})],
    "byte": [("-128", -128, {"string": "-128"}), ("+7", 7, {"string": "7"}), ("-0", 0, {"string": "0"})],
    "short": [("-32768", -32768, {"string": "-32768"}), ("007", 7, {"string": "7"})],
    "int": [("2147483647", 2147483647, {"string": "2147483647"})],
    "long": [("-9223372036854775808", -(1 << 63), {"string": "-9223372036854775808"})],
    "float": [
        ("0.1", 0.10000000149011612, {"string": "0.1"}),
        ("1E10", 1e10, {"string": "1.0E10"}),
        ("-0.0", -0.0, {"string": "-0.0"}),
        ("Infinity", math.inf, {"string": "Infinity"}),
        (" 16777217f", 16777216.0, {"string": "1.6777216E7"}),
    ],
    "double": [
        ("0.1", 0.1, {"string": "0.1"}),
        ("1e10d", 1e10, {"string": "1.0E10"}),
        ("-Infinity", -math.inf, {"string": "-Infinity"}),
        ("0x1p-3", 0.125, {"string": "0.125"}),
        ("100", 100.0, {"string": "100.0"}),
    ],
    "string": [
        (
            "7",
            "7",
            {"boolean": False, "byte": 7, "short": 7, "int": 7, "long": 7, "float": 7.0, "double": 7.0},
        ),
    ],
    "char": [("c", "c", {}), ("\0", "\0", {}), ("\uffff", "\uffff", {})],
    "bytes": [("", b"", {}), ("AP8=", b"\0\xff", {})],
}  # fmt: skip


def same(a, b):
    """Equal with type and sign; a NaN equals a NaN."""
    if type(a) is float is type(b):
        return struct.pack("d", a) == struct.pack("d", b) or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


# --- the tables ---------------------------------------------------------------------------------


def test_the_table_is_the_specified_one():
    marks = {written: zip(TYPES, row.split(), strict=True) for written, row in SPECIFIED.items()}
    drawn = {written: {read for read, mark in row if mark == "x"} for written, row in marks.items()}
    assert drawn == READABLE_AS


def test_the_page_documents_the_table():
    page = Path(__file__).resolve().parents[3] / "docs" / "typed-messages.md"
    drawn = ["| written as | can be read as |", "|---|---|"]
    drawn += [
        f"| {written} | {', '.join(read for read in TYPES if read in READABLE_AS[written])} |" for written in TYPES
    ]
    assert "\n\n" + "\n".join(drawn) + "\n\n" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(("written", "read"), ELEMENT_CELLS)
def test_conversions_of_values(written, read):
    readable = SPECIFIED[written].split()[TYPES.index(read)] == "x"
    for text, own, others in SAMPLES[written]:
        if readable:
            assert same(convert(text, written, read), others.get(read, own))
        else:
            with pytest.raises(MessageFormatError, match=rf"^\[JMS_MESSAGE_FORMAT\].* {written} .* {read}\b"):
                convert(text, written, read)


NULLS = {
    "boolean": False,
    "byte": NumberFormatError,
    "short": NumberFormatError,
    "int": NumberFormatError,
    "long": NumberFormatError,
    "float": NullValueError,
    "double": NullValueError,
    "string": None,
    "char": NullValueError,
    "bytes": None,
}


@pytest.mark.parametrize("written", [*TYPES, None, "whatever"])
@pytest.mark.parametrize("read", TYPES)
def test_conversions_of_null(written, read):
    expected = NULLS[read]
    if expected in {False, None}:
        assert convert(None, written, read) is expected
    else:
        with pytest.raises(expected) as caught:
            convert(None, written, read)
        assert isinstance(caught.value, ValueError)


NO_INTEGERS = ["", "x", "1.0", " 1", "1 ", "1_0", "0x1", "+", "--1", "1L", "\u00b2", "9" * 30, "\0001"]
NO_DOUBLES = ["", "x", "inf", "nan", "1e", "0x1", "1_0", "1.0ff", "\u00a01", "١", "1 1"]


@pytest.mark.parametrize("read", [*INTEGERS, "float", "double"])
def test_a_string_that_is_not_a_number(read):
    for text in NO_INTEGERS if read in INTEGERS else NO_DOUBLES:
        for written in ("string", None, read):
            with pytest.raises(NumberFormatError) as caught:
                convert(text, written, read)
            assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("type_", "bits"), INTEGERS.items())
def test_ranges(type_, bits):
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    for written in (type_, "string"):
        assert [convert(str(n), written, type_) for n in (low, high)] == [low, high]
        for beyond in (low - 1, high + 1):
            with pytest.raises(NumberFormatError, match=rf"\[JMS_NUMBER_FORMAT\].* {type_} "):
                convert(str(beyond), written, type_)
    with pytest.raises(NumberFormatError):
        convert(str(high + 1), type_, "string")  # a written int cannot have this text


def test_digits_of_other_scripts_are_read_in_strings_only():
    assert [convert("-٣7", written, "int") for written in ("string", None)] == [-37, -37]
    for written in INTEGERS:  # Java prints no such number
        with pytest.raises(NumberFormatError):
            convert("٣", written, "long")


def test_every_other_string_is_false():
    texts = ["true", "TRUE", "tRuE", "false", "1", "yes", "", " true", "true "]
    assert [convert(text, "string", "boolean") for text in texts] == [True] * 3 + [False] * 6


def test_texts_that_are_not_a_char_or_not_base64():
    for text in ("", "ab", "\U0001f4b0"):
        with pytest.raises(MessageFormatError, match=r"\[JMS_MESSAGE_FORMAT\].* char "):
            convert(text, "char", "string")
    for text in ("A", "AAAA====", "AA=A", "AA-_", "AAAA\n", "é"):
        with pytest.raises(MessageFormatError, match=r"\[JMS_MESSAGE_FORMAT\].* base64"):
            convert(text, "bytes", "bytes")


@pytest.mark.parametrize(("written", "read"), [("Integer", "int"), ("int", "Integer"), ("int", ""), ("null", "int")])
def test_types_that_jms_does_not_have(written, read):
    with pytest.raises(MessageFormatError, match=rf"\[JMS_MESSAGE_FORMAT\].* {', '.join(TYPES)}\."):
        convert("1", written, read)


def test_an_error_has_the_possible_types_and_never_the_value():
    with pytest.raises(MessageFormatError, match=r"\[JMS_MESSAGE_FORMAT\].* long .* int.* long, string\.$"):
        convert("12345", "long", "int")
    for written, read in (("string", "int"), ("int", "int"), ("float", "double"), ("char", "char"), ("bytes", "bytes")):
        with pytest.raises(JMSError) as caught:
            convert("s3cret!", written, read)
        assert "s3cret" not in str(caught.value)


# --- texts --------------------------------------------------------------------------------------


def finite(bits):
    return st.floats(width=bits, allow_nan=False)


VALUES = {
    "boolean": st.booleans(),
    **{t: st.integers(-(1 << b - 1), (1 << b - 1) - 1) for t, b in INTEGERS.items()},
    "float": finite(32),
    "double": finite(64),
    "string": st.text(),
    "char": st.characters(max_codepoint=0xFFFF),
    "bytes": st.binary(),
}


@given(st.data())
def test_every_value_is_parsed_from_its_text(data):
    type_ = data.draw(st.sampled_from(TYPES))
    value = data.draw(VALUES[type_])
    assert same(parse(render(value, type_), type_), value)


def test_nan_is_parsed_from_its_text():
    for type_ in ("float", "double"):
        assert math.isnan(parse(render(math.nan, type_), type_))


@given(st.one_of(st.text("AB+/=", max_size=12), st.binary().map(lambda data: base64.b64encode(data).decode())))
def test_base64_agrees_with_python(text):
    if re.fullmatch(BASE64, text):
        assert len(parse(text, ValueType.BYTES)) == len(text) // 4 * 3 - text.count("=")


# --- Java itself --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def jvm(tmp_path_factory):
    machine = JavaMachine(resolve(ARTEMIS_PACKAGES), log=tmp_path_factory.mktemp("java") / "java.log").connect()
    yield machine.jvm
    machine.kill()


def outcome(action):
    """What came of it: a value, or the name of what Java throws, or of what our error stands for."""
    try:
        return action()
    except Py4JJavaError as error:
        return str(error.java_exception.getClass().getSimpleName())
    except JMSError as error:
        return re.match(r"``(\w+)``", type(error).__doc__)[1]


DIGITS = "".join(c for c in map(chr, range(sys.maxunicode)) if unicodedata.category(c) == "Nd")
BOUNDS = [n + d for bits in INTEGERS.values() for n in (-(1 << bits - 1), 1 << bits - 1) for d in (-1, 0, 1)]
_number_like = st.one_of(
    st.text("0123456789+-.eE fFdDxXpPaA_\t\n\0\u00a0", max_size=12),
    st.text(DIGITS + "+-", max_size=6),
    st.text(max_size=4),
    st.integers(-(1 << 65), 1 << 65).map(str),
    st.sampled_from(BOUNDS).map(str),
    st.from_regex(r"\A[ \t\0]?[+-]?(NaN|Infinity|[0-9]{0,30}\.?[0-9]{0,30}([eE][+-]?[0-9]{1,3})?)[fFdD]?\s?\Z"),
    st.from_regex(r"\A[+-]?0[xX][0-9a-fA-F]{0,20}\.?[0-9a-fA-F]{0,20}[pP][+-]?[0-9]{1,4}[fFdD]?\Z"),
    st.floats().map(repr),
    st.floats(width=32).map(lambda f: format(math.nextafter(f, math.inf), ".40e")),
)
JAVA_CLASSES = {"byte": "Byte", "short": "Short", "int": "Integer", "long": "Long"}


@settings(max_examples=examples(100))
@given(_number_like)
def test_integers_are_read_as_java_reads_them(jvm, text):
    for type_, name in JAVA_CLASSES.items():
        java = getattr(jvm.java.lang, name)
        assert outcome(lambda: convert(text, "string", type_)) == outcome(lambda: java.valueOf(text)), type_  # noqa: B023


@settings(max_examples=examples(100))
@given(_number_like)
def test_floats_and_doubles_are_read_as_java_reads_them(jvm, text):
    java = jvm.java.lang
    ours, theirs = outcome(lambda: convert(text, "string", "double")), outcome(lambda: java.Double.valueOf(text))
    assert same(ours, theirs)
    ours, theirs = outcome(lambda: convert(text, "string", "float")), outcome(lambda: java.Float.valueOf(text))
    assert same(ours, to_float(theirs) if isinstance(theirs, float) else theirs)


@settings(max_examples=examples(100))
@given(st.one_of(st.text(max_size=5), st.sampled_from(["true", "TRUE", "tRue", "trüe", "ＴＲＵＥ", " true"])))
def test_booleans_are_read_as_java_reads_them(jvm, text):
    assert convert(text, "string", "boolean") is jvm.java.lang.Boolean.valueOf(text)


def test_every_digit_of_java_is_a_digit(jvm):
    for digit in DIGITS:
        assert outcome(lambda: convert(digit, "string", "byte")) == outcome(lambda: jvm.java.lang.Byte.valueOf(digit))  # noqa: B023


_powers = st.integers(-1074, 1023).map(lambda exponent: 2.0**exponent)
_prices = st.floats(1e-5, 1e9).map(lambda number: round(number, 2))


@settings(max_examples=examples(75))
@given(st.one_of(st.floats(), _powers, _prices))
def test_numbers_are_printed_as_this_java_does(jvm, value):
    java = jvm.java.lang
    bits = struct.unpack("q", struct.pack("d", value))[0]
    single = struct.unpack("i", struct.pack("f", to_float(value)))[0]
    printed = {
        "double": java.Double.toString(java.Double.longBitsToDouble(bits)),
        "float": java.Float.toString(java.Float.intBitsToFloat(single)),
    }
    for type_, theirs in printed.items():
        ours = render(value, type_)
        if java.Runtime.version().feature() >= 19:
            assert ours == theirs
        else:  # JDK-4511638: sometimes a digit too many, never another number
            assert ours == theirs or (len(ours) <= len(theirs) and same(parse(ours, type_), parse(theirs, type_)))


# --- a JMS provider -----------------------------------------------------------------------------

NAMES = {t: t.capitalize() for t in TYPES}

# Where Artemis' messages do otherwise than JMS 3.1: §3.11.3 has readBytes return -1 for a null.
DEVIATIONS = {("StreamMessage", None, "bytes"): "MessageFormatException"}


class Property:
    """A message that holds one property, as Artemis' client has it."""

    types = PROPERTY_TYPES

    def __init__(self, jvm):
        core = jvm.org.apache.activemq.artemis.core.client.impl.ClientMessageImpl(0, True, 0, 0, 4, 64)
        self.message = jvm.org.apache.activemq.artemis.jms.client.ActiveMQMessage(core, None)
        self.message.clearProperties()

    def write(self, type_, value):
        getattr(self.message, f"set{NAMES[type_]}Property")("x", value)

    def write_null(self):
        self.message.setObjectProperty("x", None)

    def read(self, type_):
        return getattr(self.message, f"get{NAMES[type_]}Property")("x")


class StreamMessage:
    """The elements of a map are converted alike: JMS 3.1 §3.11.3 has one table for both."""

    types = TYPES

    def __init__(self, jvm):
        self.message = jvm.org.apache.activemq.artemis.jms.client.ActiveMQStreamMessage()

    def write(self, type_, value):
        getattr(self.message, f"write{NAMES[type_]}")(value)

    def write_null(self):
        self.message.writeObject(None)

    def read(self, type_):
        self.message.reset()
        if type_ != "bytes":
            return getattr(self.message, f"read{NAMES[type_]}")()
        count = self.message.readBytes(bytearray(16))  # into a copy of ours: Java keeps the bytes
        self.message.reset()
        data = bytes(self.message.readObject())
        assert len(data) == count
        return data


VENDOR_CELLS = [(kind, w, r) for kind in (Property, StreamMessage) for w in kind.types for r in kind.types]
STRINGS = ["7", "true", "1e3", "", "x", " 5", "128", "99999999999999999999", "NaN", "-0", "+1", "0x1p1", "٣"]


def provided(kind, jvm, written, value, read):
    message = kind(jvm)
    if written is None:
        message.write_null()
    else:
        message.write(written, value)
    found = outcome(lambda: message.read(read))
    return to_float(found) if read == "float" and isinstance(found, float) else found


@pytest.mark.parametrize(("kind", "written", "read"), VENDOR_CELLS)
def test_a_conversion_agrees_with_a_jms_provider(jvm, kind, written, read):
    samples = [(text, own) for text, own, _ in SAMPLES[written]]
    for text, value in samples + [(s, s) for s in STRINGS if written == "string"]:
        assert same(outcome(lambda: convert(text, written, read)), provided(kind, jvm, written, value, read)), text  # noqa: B023


@pytest.mark.parametrize(("kind", "read"), [(k, r) for k in (Property, StreamMessage) for r in k.types])
def test_a_null_agrees_with_a_jms_provider(jvm, kind, read):
    ours, theirs = outcome(lambda: convert(None, None, read)), provided(kind, jvm, None, None, read)
    deviation = DEVIATIONS.get((kind.__name__, None, read))
    assert theirs == (deviation or ours)
    assert deviation is None or ours is None


def test_an_absent_value_is_a_null(jvm):
    for read in Property.types:
        absent = Property(jvm)
        assert outcome(lambda: absent.read(read)) == outcome(lambda: convert(None, None, read))  # noqa: B023
