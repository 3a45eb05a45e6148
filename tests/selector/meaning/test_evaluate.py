import pytest
from selector_cases import cases, wrong_verdicts

from jms_selector.errors import EvaluationError
from jms_selector.meaning.evaluate import Message, evaluate
from jms_selector.syntax.kinds import Kind, Value
from jms_selector.syntax.parse import parse
from pyspark_jms.jms.headers import SELECTOR_SCHEMA

MESSAGE = Message.of(
    {"JMSPriority": 7, "JMSDeliveryMode": "PERSISTENT", "JMSRedelivered": False, "JMSTimestamp": 5},
    a=5,
    s="x",
    n="5",
    t=True,
    f=False,
    by=Value(Kind.BYTE, 5),
)
HEADERS = [  # selector, spec, artemis
    ("JMSPriority > 4", True, True),
    ("JMSRedelivered = FALSE", True, None),
    ("AMQPriority > 4", None, True),
    ("AMQDurable = 'DURABLE'", None, True),
    ("JMSDeliveryMode = 'PERSISTENT'", True, True),
]


@pytest.mark.parametrize(("text", "spec", "artemis"), HEADERS)
def test_headers_have_the_names_and_words_of_the_dialect(text, spec, artemis):
    assert evaluate(text, MESSAGE) is spec
    assert evaluate(text, MESSAGE, "artemis") is artemis


@pytest.mark.parametrize("text", ["s * 2 = 4", "t + 1 = 2", "-by = 1", "a - s = 1", "u OR s * 2 = 1"])
def test_arithmetic_on_other_types_throws_at_a_broker(text):
    assert evaluate(text, MESSAGE) in {True, False, None}
    for dialect in ("artemis", "classic"):
        with pytest.raises(EvaluationError, match=rf"\[JMS_SELECTOR_EVALUATION\] {dialect} "):
            evaluate(text, MESSAGE, dialect)


@pytest.mark.parametrize(("text", "expected"), [("t OR s * 2 = 1", True), ("f AND s * 2 = 1", False)])
def test_operands_after_the_deciding_one_are_not_evaluated(text, expected):
    assert evaluate(text, MESSAGE, "artemis") is expected


CONVERTED = [  # selector, result on artemis; classic throws if a boolean is on the left
    ("n = 5", True),
    ("5 = n", True),
    ("n > 4.5", True),
    ("n - 1 = 4", True),
    ("n + 1 = '51'", True),
    ("-n = -5", None),
    ("NOT (s > 1)", True),
    ("t = 'TRUE'", True),
]


@pytest.mark.parametrize(("text", "expected"), CONVERTED)
def test_conversion(text, expected):
    assert evaluate(text, MESSAGE, "artemis", convert=True) is expected
    assert evaluate(parse(f"convert_string_expressions:{text}", dialect="artemis"), MESSAGE, "artemis") is expected


def test_classic_cannot_compare_a_boolean_with_a_string():
    assert evaluate("t = 'true'", MESSAGE, "classic") is False
    with pytest.raises(EvaluationError):
        evaluate("t = 'true'", MESSAGE, "classic", convert=True)


def test_a_message_to_classic_always_has_a_delivery_count():
    assert evaluate("JMSXDeliveryCount = 1", MESSAGE, "classic") is True
    assert evaluate("JMSXDeliveryCount = 3", Message.of({"JMSXDeliveryCount": 3}), "classic") is True
    assert evaluate("JMSXDeliveryCount = 1", MESSAGE) is None
    assert evaluate("JMSXDeliveryCount IS NULL", MESSAGE, "artemis") is True


def test_ibm():
    zero = "JMSMessageID = 'ID:" + "0" * 48 + "'"
    assert evaluate(zero, Message(), "ibm") is True
    assert evaluate(zero, Message()) is None
    assert evaluate("u NOT BETWEEN 1 AND 2", MESSAGE, "ibm") is True
    for text in ("s = 1 OR TRUE", "TRUE OR s = 1", "NOT (u + 1 = 2)", "NOT (s * 2 = 1)", "NOT (a LIKE 'x')"):
        assert evaluate(text, MESSAGE, "ibm") is False
    assert evaluate("NOT (u = 1)", MESSAGE, "ibm") is None


def test_a_blank_selector_selects_every_message():
    assert evaluate("  ", Message()) is True


@pytest.mark.parametrize(
    ("dialect", "compared"),
    [(None, 868), ("spec", 600), ("lenient", 600), ("artemis", 653), ("classic", 631), ("ibm", 6)],
)
def test_every_case_has_its_verdict(dialect, compared):
    assert wrong_verdicts(cases("selector_cases"), dialect) == (compared, [])


def test_every_case_that_was_measured_has_its_verdict():
    assert wrong_verdicts(cases("measured_cases")) == (43, [])


def test_another_verdict_is_found():
    case = {"selector": "a = 1", "message": {"properties": {"a": {"type": "int", "value": 1}}}, "expect": False}
    assert wrong_verdicts([case])[1] == [(None, "spec", "a = 1", False, True)]


def test_a_message_from_plain_values():
    message = Message.of(
        {"JMSTimestamp": 5, "JMSPriority": 4},
        SELECTOR_SCHEMA,
        a=1,
        b=1 << 40,
        c=True,
        d=1.5,
        e="x",
        f=Value(Kind.BYTE, 1),
    )
    assert message.headers == {"JMSTimestamp": Value(Kind.LONG, 5), "JMSPriority": Value(Kind.INT, 4)}
    assert [v.kind for v in message.properties.values()] == ["int", "long", "boolean", "double", "string", "byte"]
    with pytest.raises(TypeError, match="list"):
        Message.of(a=[1])
