"""Selectors and messages with few names and values, so that they match often, and with every type and operator."""

from datetime import UTC, datetime, timedelta
from random import Random

import pyarrow as pa
from hypothesis import strategies as st

from jms_selector import EvaluationError, evaluate
from jms_selector.meaning.conversions import java_text
from jms_selector.meaning.evaluate import Message
from jms_selector.syntax.kinds import NULL, Kind, Value, to_float
from pyspark_jms.jms.model import DeliveryMode
from pyspark_jms.testing import Typed

NAMES = ("a", "b", "c", "x", "y")
HEADERS = ("JMSPriority", "JMSType", "JMSDeliveryMode", "JMSTimestamp", "JMSCorrelationID")
NUMBERS = ("JMSPriority", "JMSTimestamp")

INTEGERS = (
    0,
    1,
    2,
    5,
    7,
    -1,
    -5,
    100,
    127,
    128,
    2500,
    32768,
    (1 << 31) - 1,
    -(1 << 31),
    1 << 31,
    (1 << 63) - 1,
    -(1 << 63),
)
FLOATS = (0.0, -0.0, 0.5, 0.1, 1.0, 5.0, 7.0, -5.0, 2.5, 2500.0, 16777216.0, 1e10, float("nan"), float("inf"))
STRINGS = (
    "red",
    "blue",
    "",
    "5",
    "5.0",
    "7",
    "true",
    "false",
    "05",
    " 5",
    "a%b",
    "a_b",
    "12",
    "null",
    "é",
    "a\nb",
    "😀",
    "\ue000",
    "NaN",
    "1e3",
    "abc",
)
LITERALS = (
    "0",
    "1",
    "5",
    "7",
    "-1",
    "-5",
    "2",
    "100",
    "2500",
    "5L",
    "5.0",
    "0.5",
    "0.1",
    "7e0",
    "-0.0",
    "0x5",
    "010",
    "2147483647",
    "-2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "5f",
    "0.1f",
    "3000000000",
)
PATTERNS = ("r%", "%", "_", "5%", "%e%", "a!%b' ESCAPE '!", "a__", "__", "re_", "%d", "", "1%2", "a_b", "t%")
NESTED = {
    "parentheses": lambda depth: "(" * depth + "a = 1" + ")" * depth,
    "not": lambda depth: "NOT " * depth + "a = 1",
    "minus": lambda depth: "5 > " + "- " * depth + "a",
    "plus": lambda depth: "5 > " + "+ " * depth + "a",
    "arithmetic": lambda depth: "5 > " + "(a + " * depth + "1" + ")" * depth,
    "constants": lambda depth: "a > " + "(1 + " * depth + "1" + ")" * depth,
}
"""Kind of nesting -> function: depth -> selector."""

WRITTEN = (
    "a = b",
    "NOT (a = b)",
    "a <> b",
    "5 = a AND 1 < b",
    "a * b <> 5 OR c = 'red'",
    "x LIKE '5%' OR x NOT IN ('red', 'blue')",
    "JMSDeliveryMode LIKE 'PER%' AND JMSPriority BETWEEN 3 AND 6",
    "JMSDeliveryMode <> 'NON_PERSISTENT'",
    "JMSType = 'red' OR JMSCorrelationID IS NULL",
    "a / 2 = 3.5 AND c IS NOT NULL",
    "a > 5 OR NOT (b BETWEEN 1 AND 7)",
)
"""Selectors that are tried on running brokers, beside generated ones."""

RANGES = {Kind.BYTE: 8, Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}


def _quoted(text):
    return "'" + text.replace("'", "''") + "'"


def _numbers(leaf):
    """Arithmetic of small depth over leaves."""
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            inner.map(lambda t: f"-({t})"),
        ),
        max_leaves=3,
    )


def selectors(headers=HEADERS, names=NAMES, *, literals=LITERALS, arithmetic=True, two=True):
    """Texts of valid selectors."""
    name = st.sampled_from(names)
    any_name = st.one_of(name, name, name, st.sampled_from(headers)) if headers else name
    number = st.sampled_from(literals)
    string = st.sampled_from(STRINGS).map(_quoted)
    of_number = st.sampled_from([header for header in headers or () if header in NUMBERS] or names)
    operand = st.one_of(name, name, name, of_number, number, number)
    calculated = _numbers(operand) if arithmetic else operand
    other = st.one_of(number, string, st.sampled_from(("TRUE", "FALSE")), *((name,) if two else ()))
    ordering = st.sampled_from(("<", "<=", ">", ">="))
    equality = st.sampled_from(("=", "<>"))
    negation = st.sampled_from(("", "NOT "))
    condition = st.one_of(
        any_name,
        st.sampled_from(("TRUE", "FALSE")),
        st.tuples(any_name, equality, other).map(" ".join),
        st.tuples(any_name, equality, other).map(" ".join),
        st.tuples(any_name, ordering, number).map(" ".join),
        st.tuples(number, equality, name).map(" ".join),
        st.tuples(calculated, st.one_of(ordering, equality), calculated).map(" ".join),
        st.tuples(any_name, negation, number, number).map(lambda t: f"{t[0]} {t[1]}BETWEEN {t[2]} AND {t[3]}"),
        st.tuples(number, negation, operand, operand).map(lambda t: f"{t[0]} {t[1]}BETWEEN {t[2]} AND {t[3]}"),
        st.tuples(any_name, negation, st.sampled_from(PATTERNS)).map(lambda t: f"{t[0]} {t[1]}LIKE '{t[2]}'"),
        st.tuples(any_name, negation, st.lists(string, min_size=1, max_size=6)).map(
            lambda t: f"{t[0]} {t[1]}IN ({', '.join(t[2])})"
        ),
        st.tuples(any_name, negation).map(lambda t: f"{t[0]} IS {t[1]}NULL"),
    )
    return _joined(condition)


def joined(conditions):
    """AND, OR and NOT of the given conditions."""
    return _joined(st.sampled_from([f"({condition})" for condition in conditions]))


def _joined(condition):
    return st.recursive(
        condition,
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: "(" + " AND ".join(parts) + ")"),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: "(" + " OR ".join(parts) + ")"),
            inner.map(lambda t: f"NOT ({t})"),
        ),
        max_leaves=6,
    )


def _integral(kind):
    half = 1 << (RANGES[kind] - 1)
    return [Value(kind, number) for number in INTEGERS if -half <= number < half]


VALUES = (
    *[NULL] * 8,
    *[Value(Kind.STRING, text) for text in STRINGS] * 2,
    *[Value(Kind.BOOLEAN, truth) for truth in (True, False)] * 3,
    *[value for kind in RANGES for value in _integral(kind)],
    *[Value(Kind.FLOAT, to_float(number)) for number in FLOATS],
    *[Value(Kind.DOUBLE, number) for number in FLOATS],
)


def message(random, names):
    headers = {
        "JMSPriority": Value(Kind.INT, random.randrange(10)),
        "JMSDeliveryMode": Value(Kind.STRING, random.choice(["PERSISTENT", "NON_PERSISTENT"])),
        "JMSTimestamp": Value(Kind.LONG, random.choice([1, 5, 2500, 1_700_000_000_000])),
    }
    if random.random() < 0.7:
        headers["JMSType"] = Value(Kind.STRING, random.choice(["red", "5", ""]))
    if random.random() < 0.7:
        headers["JMSCorrelationID"] = Value(Kind.STRING, random.choice(["red", "c"]))
    properties = {name: random.choice(VALUES) for name in names}
    return Message(headers, {name: value for name, value in properties.items() if value is not NULL})


def send(java, queue, place, message):
    """Send the message with a Java client; its text is its place."""
    headers = {name: value.value for name, value in message.headers.items()}
    java.send(
        queue,
        str(place),
        properties={name: Typed(str(value.kind), value.value) for name, value in message.properties.items()},
        correlation_id=headers.get("JMSCorrelationID"),
        type=headers.get("JMSType"),
        delivery_mode=DeliveryMode[headers["JMSDeliveryMode"]],
        priority=headers["JMSPriority"],
    )


def as_strings(message):
    """What a broker has of the message if it is sent over STOMP, persistent: every property is a string."""
    texts = {name: Value(Kind.STRING, java_text(value)) for name, value in message.properties.items()}
    return Message(message.headers | {"JMSDeliveryMode": Value(Kind.STRING, "PERSISTENT")}, texts)


def stomp_message(place, message):
    """Headers and body of that SEND."""
    named = {"JMSPriority": "priority", "JMSType": "type", "JMSCorrelationID": "correlation-id"}
    headers = [(named[name], value.value) for name, value in message.headers.items() if name in named]
    return [*headers, ("persistent", "true"), *((n, v.value) for n, v in message.properties.items())], str(place)


def selects(selector, message, dialect, **how):
    """Return whether a broker delivers a message; None if it throws, and delivers nothing."""
    try:
        return evaluate(selector, message, dialect, **how) is True
    except EvaluationError:
        return None


class Messages(list):
    """Many messages; a failed test shows only their seed."""

    def __init__(self, made, seed):
        super().__init__(made)
        self.seed = seed

    def __repr__(self):
        return f"{len(self)} messages of seed {self.seed}"


def messages(count, names=NAMES):
    """Lists of ``count`` messages from one seed, so that hypothesis shrinks the selectors only."""

    def build(seed):
        random = Random(seed)
        return Messages([message(random, names) for _ in range(count)], seed)

    return st.integers(0, 1 << 32).map(build)


_COLUMNS = ("JMSMessageID", "JMSCorrelationID", "JMSType", "JMSReplyTo", "JMSDestination", "JMSPriority")


def row_of(message, *, types):
    """The message as a row of the connector's schema; ``types``: with ``property_types``."""
    row = dict.fromkeys(_COLUMNS)
    for name, value in message.headers.items():
        row[name] = value.value
    row["JMSDeliveryMode"] = {"NON_PERSISTENT": 1, "PERSISTENT": 2}[row["JMSDeliveryMode"]]
    row["JMSTimestamp"] = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=row["JMSTimestamp"])
    row |= {"JMSExpiration": None, "JMSDeliveryTime": None, "JMSRedelivered": False}
    row["properties"] = {name: java_text(value) for name, value in message.properties.items()}
    row["property_types"] = {n: str(v.kind) for n, v in message.properties.items()} if types else {}
    return row


def batch_of(rows):
    """Rows of :func:`row_of` as a batch of the connector's schema."""
    entries = [
        {column: list(value.items()) if isinstance(value, dict) else value for column, value in row.items()}
        for row in rows
    ]
    return pa.RecordBatch.from_pylist(entries, schema=SCHEMA)


_TIME = pa.timestamp("us", tz="UTC")
_MAP = pa.map_(pa.string(), pa.string())
SCHEMA = pa.schema(
    [(name, pa.string()) for name in _COLUMNS if name != "JMSPriority"]
    + [("JMSPriority", pa.int32()), ("JMSDeliveryMode", pa.int32()), ("JMSRedelivered", pa.bool_())]
    + [(name, _TIME) for name in ("JMSTimestamp", "JMSExpiration", "JMSDeliveryTime")]
    + [("properties", _MAP), ("property_types", _MAP)]
)
