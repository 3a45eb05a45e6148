from itertools import product

import pytest
import selector_strategies
from generated import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from selector_cases import cases, wrong_texts
from selector_reference import deserves
from selector_schema import push

from jms_selector.errors import EvaluationError, InvalidSelectorError, UnsupportedSelectorError
from jms_selector.meaning.evaluate import Message, evaluate
from jms_selector.syntax.dialects import DIALECTS
from jms_selector.syntax.kinds import Kind, Value
from jms_selector.syntax.parse import parse
from jms_selector.targets.text import render

PUSHED = [  # selector, dialect, text, residual
    ("a = 1 AND b / 2 = 3", "artemis", "a = 1", "b / 2 = 3"),
    ("a = 1 OR b / 2 = 3", "artemis", None, "a = 1 OR b / 2 = 3"),
    ("NOT (a = 1 OR b / 2 = 3)", "artemis", "NOT (a = 1)", "NOT (b / 2 = 3)"),
    ("a = 1 AND b / 2 = 3 OR c = 2", "artemis", "a = 1 OR c = 2", "a = 1 AND b / 2 = 3 OR c = 2"),
    ("a / 2 = 3 AND b * 2 > 5", "artemis", "b * 2 > 5", "a / 2 = 3"),
    ("a / 2 = 3 AND b * 2 > 5 OR c = 2", "artemis", None, "a / 2 = 3 AND b * 2 > 5 OR c = 2"),
    (
        "a / 2 = 3 AND b * 2 > 5 AND d = 1 OR c = 2",
        "artemis",
        "d = 1 OR c = 2",
        "a / 2 = 3 AND b * 2 > 5 AND d = 1 OR c = 2",
    ),
    ("b * 2 > 5 AND a / 2 = 3 OR c = 2", "artemis", "b * 2 > 5 OR c = 2", "b * 2 > 5 AND a / 2 = 3 OR c = 2"),
    ("NOT ((a / 2 = 3 OR b * 2 > 5) AND c = 2)", "artemis", None, "NOT ((a / 2 = 3 OR b * 2 > 5) AND c = 2)"),
    ("NOT (a = b)", "artemis", "a IS NOT NULL AND b IS NOT NULL AND a <> b", None),
    ("a > b", "artemis", "a > b", None),
    ("a = 1 AND s = 'PERSISTENT'", "artemis-amqp", "a = 1", "s = 'PERSISTENT'"),
    ("a = 1 AND s IN ('x', 'NON_PERSISTENT')", "artemis-amqp", "a = 1", "s IN ('x', 'NON_PERSISTENT')"),
    ("s LIKE 'PERSISTENT'", "artemis-amqp", None, "s LIKE 'PERSISTENT'"),
    ("s = 'PERSISTENT'", "artemis", "s = 'PERSISTENT'", None),
    ("JMSDeliveryMode = 'PERSISTENT'", "artemis-amqp", "AMQDurable = 'DURABLE'", None),
    ("a > b", "classic", None, "a > b"),
    ("a = b + 1", "artemis", "a IS NOT NULL AND b + 1 IS NOT NULL AND a = b + 1", None),
    ("a * 2 > 5", "artemis", "a * 2 > 5", None),
    ("a * 2 > 5", "classic", None, "a * 2 > 5"),
    ("-a = 1", "classic", None, "-a = 1"),
    ("x = 2 + 3", "classic", "x = 2 + 3", None),
    ("TRUE = flag", "classic", "flag = TRUE", None),
    ("5 BETWEEN a AND b", "artemis", "a <= 5 AND b >= 5", None),
    ("JMSRedelivered = TRUE", "classic", "JMSRedelivered = TRUE", None),
    ("JMSRedelivered = TRUE AND a = 1", "artemis", "a = 1", "JMSRedelivered = TRUE"),
    ("JMSDeliveryMode = 'DURABLE'", "artemis", "FALSE", None),
    ("JMSDeliveryMode <> 'x'", "artemis", None, None),
    ("JMSDeliveryMode NOT LIKE 'PER%'", "artemis", "AMQDurable = 'NON_DURABLE'", None),
    ("1 = 1", "artemis", None, None),
    ("1 = 1 AND a = 1", "artemis", "a = 1", None),
    ("a = 1 OR 1 = 2", "artemis", "a = 1 OR FALSE", None),
    ("été = 1", "artemis", '"été" = 1', None),
    ("été = 1 AND a = 1", "classic", "a = 1", "été = 1"),
    ("a = 'x\0'", "artemis", None, "a = 'x\0'"),
    (" ", "artemis", None, None),
]


@pytest.mark.parametrize(("text", "dialect", "pushed", "residual"), PUSHED)
def test_pushdown_and_residual(text, dialect, pushed, residual):
    found = push(text, dialect)
    assert found.text == pushed
    assert (found.residual and render(found.residual)) == residual
    assert bool(found.warnings) >= (residual is not None)


PREFIX = "convert_string_expressions:"
CONVERTED = [
    ("x > 5", f"{PREFIX}x > 5 OR x > 5.0", "x > 5 OR x > 5.0"),
    ("x <> 5", f"{PREFIX}x <> 5 AND x <> 5.0", "x <> 5 AND x <> 5.0"),
    ("x > 5.5", f"{PREFIX}x > 5.5", "x > 5.5"),
    ("JMSPriority > 5", f"{PREFIX}AMQPriority > 5", "JMSPriority > 5"),
    ("x > 20000000", f"{PREFIX}x > 20000000 OR x LIKE '%' AND x > 2.0E7", "x > 20000000 OR x LIKE '%' AND x > 2.0E7"),
    ("x <> 9007199254740992", f"{PREFIX}x <> 9007199254740992", "x <> 9007199254740992"),
    ("x = 'red'", f"{PREFIX}x = 'red'", "x LIKE 'red'"),
    ("x > JMSPriority", f"{PREFIX}x > AMQPriority", None),
    ("'5' = 5", None, None),
    ("NOT (x > 5)", f"{PREFIX}NOT (x > 5 OR x > 5.0)", "NOT (x > 5 OR x > 5.0)"),
]


@pytest.mark.parametrize(("text", "artemis", "classic"), CONVERTED)
def test_numbers_sent_as_strings(text, artemis, classic):
    assert push(text, "artemis", convert=True).text == artemis
    assert push(text, "classic", convert=True).text == classic


def test_reasons_name_the_condition_and_the_cause():
    found = push("a = 1 AND b / 2 = 3 AND JMSXDeliveryCount > 1", "artemis")
    assert [warning.split(" stays")[0] for warning in found.warnings] == ["b / 2 = 3", "JMSXDeliveryCount > 1"]
    assert found.residual is not None


def test_unexpected_behaviour_of_a_broker_is_a_warning():
    assert ["JMSMessageID" in warning for warning in push("JMSMessageID = 'ID:1'", "artemis").warnings] == [True]
    assert ["artemis" in warning for warning in push("a + 1 > 2", "artemis").warnings] == [True]
    assert push("JMSMessageID = 'ID:1'", "classic").warnings == ()


def test_a_string_in_double_quotes_is_refused():
    with pytest.raises(InvalidSelectorError, match=r"\[JMS_INVALID_SELECTOR\][^$]*'red'"):
        push('color = "red"', "artemis")
    assert push('"a-b" = 1', "artemis").text == '"a-b" = 1'


@pytest.mark.parametrize("dialect", ["spec", "ibm"])
def test_only_the_dialects_of_brokers_have_a_pushdown(dialect):
    with pytest.raises(UnsupportedSelectorError):
        push("a = 1", dialect)


def selects(selector, message, dialect, convert):
    """Whether the broker delivers the message; None if it throws."""
    try:
        return evaluate(selector, message, dialect, convert=convert) is True
    except EvaluationError:
        return None


sound = settings(max_examples=examples(75), suppress_health_check=[HealthCheck.too_slow])


MIXED = ("a / 2 = 1 AND b * 2 > 5", "NOT (a / 2 = 1 OR b * 2 > 5)", "b * 2 > 5", "JMSPriority < 7", "a > JMSPriority")
"""Conditions that stay in Spark, throw on a text, compare two properties, or match."""


def assert_nothing_is_lost(text, messages, dialect, convert):
    """Every deserving message is delivered, and without a residual no other message."""
    pushed = push(text, dialect, convert=convert)
    sent = parse(pushed.text, dialect=dialect) if pushed.text is not None else parse(" ")
    for message in messages:
        wanted = deserves(parse(text), message, DIALECTS[dialect], convert)
        if wanted is None:
            continue  # there is no reference result; a guard may avoid the exception
        converts = sent.convert if DIALECTS[dialect].sends_prefix else convert
        delivered = selects(sent, message, dialect, converts) is True
        assert delivered is wanted or (delivered and pushed.residual is not None), (pushed.text, message)


BROKERS = st.sampled_from(["artemis", "classic"])


@sound
@given(selector_strategies.selectors(), selector_strategies.messages(30), BROKERS, st.booleans())
def test_a_pushdown_loses_no_message_and_without_residual_adds_none(text, messages, dialect, convert):
    assert_nothing_is_lost(text, messages, dialect, convert)


@settings(sound, max_examples=examples(600))
@given(selector_strategies.joined(MIXED), selector_strategies.messages(10), st.booleans())
def test_conditions_that_throw_hide_no_message(text, messages, convert):
    assert_nothing_is_lost(text, messages, "artemis", convert)


@sound
@given(selector_strategies.selectors(), selector_strategies.messages(30), st.booleans())
def test_no_pushdown_throws_on_classic(text, messages, convert):
    """Classic stops delivering a queue to everybody when a selector throws. Over STOMP it always converts."""
    pushed = push(text, "classic", convert=convert)
    if pushed.text is not None:
        sent = parse(pushed.text, dialect="classic")
        for message in messages:
            assert evaluate(sent, message, "classic", convert=True) in {True, False, None}


def test_a_comparison_of_two_properties_does_not_throw_on_classic():
    texts = {sign: push(f"a {sign} b", "classic").text for sign in ("=", "<>")}
    numbers = [Value(kind, 0.5) for kind in (Kind.DOUBLE, Kind.FLOAT)] + [Value(Kind.DOUBLE, 0.1), Value(Kind.INT, 1)]
    for left, right in product(numbers, numbers):
        for sign, text in texts.items():
            sent = parse(text, dialect="classic")
            found = evaluate(sent, Message({}, {"a": left, "b": right}), "classic", convert=True)
            assert found is ((left.value == right.value) == (sign == "="))
    # A header has one type, so no guard is needed.
    assert push("JMSPriority = b", "classic").text == "JMSPriority IS NOT NULL AND b IS NOT NULL AND JMSPriority = b"
    assert "1.0" not in push("a = JMSPriority", "classic").text
    assert push("JMSRedelivered = 'true'", "classic").text == "JMSRedelivered LIKE 'true'"
    assert push("JMS_AMQP_FIRST_ACQUIRER = 'true'", "classic").text == "JMS_AMQP_FIRST_ACQUIRER LIKE 'true'"


def test_strings_are_compared_with_like_on_classic():
    assert push("color = 'red'", "classic").text == "color LIKE 'red'"
    assert push("color <> '50%'", "classic").text == "NOT (color LIKE '50\\%' ESCAPE '\\')"
    assert push("JMSType = 'car'", "classic").text == "JMSType = 'car'"


def test_an_unknown_amqp_broker_gets_nothing():
    pushed = push("a = 1 AND JMSType = 'x'", "amqp")
    assert (pushed.text, pushed.pushed, str(pushed.residual.text)) == (None, None, "a = 1 AND JMSType = 'x'")
    assert pushed.warnings


@pytest.mark.parametrize("dialect", ["artemis-amqp", "classic-amqp"])
def test_over_amqp_reply_to_stays_in_spark(dialect):
    pushed = push("a = 1 AND JMSReplyTo = 'queue://r'", dialect)
    assert pushed.text == "a = 1"
    assert pushed.residual.text == "a = 1 AND JMSReplyTo = 'queue://r'"


def test_classic_converts_nothing_over_amqp():
    with pytest.raises(UnsupportedSelectorError, match=r"\[JMS_UNSUPPORTED_SELECTOR\].*classic-amqp"):
        push("a = 5", "classic-amqp", convert=True)


def test_every_case_is_pushed_as_its_text():
    assert wrong_texts(cases("selector_pushdown_cases")) == (42, [])


@pytest.mark.parametrize(
    "change",
    [
        {"artemis_stomp": "a = 2"},
        {"artemis_stomp": None},
        {"selector": "a ="},
        {"selector": "a / 2 = 1", "artemis_stomp": "a = 2"},
        {"artemis_stomp": "a = 1 OR b = 1"},
    ],
)
def test_another_text_is_found(change):
    case = {"selector": "a = 1", "artemis_stomp": "a = 1", "push": "full"} | change
    assert wrong_texts([case]) == (1, [(case, "artemis")])
