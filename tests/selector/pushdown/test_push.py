from itertools import product

import pytest
import selector_strategies
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jms_selector.errors import EvaluationError, InvalidSelectorError, UnsupportedSelectorError
from jms_selector.meaning.conversions import java_text
from jms_selector.meaning.evaluate import evaluate
from jms_selector.meaning.message import Message
from jms_selector.pushdown.push import push
from jms_selector.pushdown.rewrite import oriented
from jms_selector.syntax.dialects import DIALECTS, intended
from jms_selector.syntax.kinds import Kind, Value
from jms_selector.syntax.parse import parse
from jms_selector.targets.text import render

PUSHED = [  # selector, dialect, text, residual
    ("a = 1 AND b / 2 = 3", "artemis", "a = 1", "b / 2 = 3"),
    ("a = 1 OR b / 2 = 3", "artemis", None, "a = 1 OR b / 2 = 3"),
    ("NOT (a = 1 OR b / 2 = 3)", "artemis", "NOT (a = 1)", "NOT (b / 2 = 3)"),
    ("a = 1 AND b / 2 = 3 OR c = 2", "artemis", "a = 1 OR c = 2", "a = 1 AND b / 2 = 3 OR c = 2"),
    ("NOT (a = b)", "artemis", "a IS NOT NULL AND b IS NOT NULL AND a <> b", None),
    ("a > b", "artemis", "a > b", None),
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
def test_what_goes_and_what_stays(text, dialect, pushed, residual):
    found = push(text, dialect)
    assert found.text == pushed
    assert (found.residual and render(found.residual)) == residual
    assert bool(found.warnings) >= (residual is not None)


CONVERTED = [
    ("x > 5", "convert_string_expressions:x > 5 OR x > 5.0", "x > 5 OR x > 5.0"),
    ("x <> 5", "convert_string_expressions:x <> 5 AND x <> 5.0", "x <> 5 AND x <> 5.0"),
    ("x > 5.5", "convert_string_expressions:x > 5.5", "x > 5.5"),
    ("JMSPriority > 5", "convert_string_expressions:AMQPriority > 5", "JMSPriority > 5"),
    ("x = 'red'", "x = 'red'", "x LIKE 'red'"),
    ("NOT (x > 5)", "convert_string_expressions:NOT (x > 5 OR x > 5.0)", "NOT (x > 5 OR x > 5.0)"),
]


@pytest.mark.parametrize(("text", "artemis", "classic"), CONVERTED)
def test_numbers_sent_as_strings(text, artemis, classic):
    assert push(text, "artemis", convert=True).text == artemis
    assert push(text, "classic", convert=True).text == classic
    assert push(text, "classic", convert=True).pushed.convert


def test_reasons_name_the_condition_and_the_cause():
    found = push("a = 1 AND b / 2 = 3 AND JMSXDeliveryCount > 1", "artemis")
    assert [warning.split(" stays")[0] for warning in found.warnings] == ["b / 2 = 3", "JMSXDeliveryCount > 1"]
    assert "no JMS client" in push("JMSMessageID = 'ID:1'", "artemis").warnings[0]
    assert "logs a warning" in push("a + 1 > 2", "artemis").warnings[0]


def test_a_string_in_double_quotes_is_refused_where_it_would_match_nothing():
    with pytest.raises(InvalidSelectorError, match="single quotes: 'red'"):
        push('color = "red"', "artemis")
    assert push('"a-b" = 1', "artemis").text == '"a-b" = 1'


@pytest.mark.parametrize("dialect", ["spec", "ibm"])
def test_only_a_broker_can_be_asked(dialect):
    with pytest.raises(UnsupportedSelectorError):
        push("a = 1", dialect)


def selects(selector, message, dialect, convert):
    """None: the broker throws, and delivers nothing."""
    try:
        return evaluate(selector, message, dialect, convert=convert) is True
    except EvaluationError:
        return None


sound = settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])


@sound
@given(selector_strategies.selectors(), selector_strategies.messages(30), st.sampled_from(["artemis", "classic"]))
def test_what_is_pushed_whole_selects_just_the_messages_meant(text, messages, dialect):
    pushed = push(text, dialect)
    broker = DIALECTS[dialect]
    meant = parse(text).with_root(oriented(parse(text).root))
    sent = parse(pushed.text, dialect=dialect) if pushed.text is not None else parse(" ")
    for message in messages:
        wanted = selects(meant, message, intended(broker), convert=False)
        delivered = selects(sent, message, broker, convert=False)
        if wanted is None:
            continue  # what throws has no meaning to keep: a guard may spare the broker that
        if pushed.residual is None:
            assert delivered is wanted, pushed.text
        else:
            assert delivered or not wanted, pushed.text


@sound
@given(selector_strategies.selectors(), selector_strategies.messages(30), st.booleans(), st.booleans())
def test_nothing_pushed_to_classic_throws(text, messages, convert, text_values):
    """Classic stops delivering a queue to everybody when a selector throws. Over STOMP it always converts."""
    pushed = push(text, "classic", convert=convert, text_values=text_values)
    if pushed.text is not None:
        sent = parse(pushed.text, dialect="classic")
        for message in messages:
            assert evaluate(sent, message, "classic", convert=True) in {True, False, None}


def test_classic_is_asked_to_compare_two_properties_only_where_it_does_not_throw():
    texts = {sign: push(f"a {sign} b", "classic").text for sign in ("=", "<>")}
    numbers = [Value(kind, 0.5) for kind in (Kind.DOUBLE, Kind.FLOAT)] + [Value(Kind.DOUBLE, 0.1), Value(Kind.INT, 1)]
    for left, right in product(numbers, numbers):
        for sign, text in texts.items():
            sent = parse(text, dialect="classic")
            found = evaluate(sent, Message({}, {"a": left, "b": right}), "classic", convert=True)
            assert found is ((left.value == right.value) == (sign == "="))
    # A header has one type: nothing is to be feared of it.
    assert push("JMSPriority = b", "classic").text == "JMSPriority IS NOT NULL AND b IS NOT NULL AND JMSPriority = b"
    assert "1.0" not in push("a = JMSPriority", "classic").text
    assert push("JMSRedelivered = 'true'", "classic").text == "JMSRedelivered LIKE 'true'"
    assert push("JMS_AMQP_FIRST_ACQUIRER = 'true'", "classic").text == "JMS_AMQP_FIRST_ACQUIRER LIKE 'true'"


def test_classic_is_asked_for_strings_by_like():
    assert push("color = 'red'", "classic").text == "color LIKE 'red'"
    assert push("color <> '50%'", "classic").text == "NOT (color LIKE '50\\%' ESCAPE '\\')"
    assert push("JMSType = 'car'", "classic").text == "JMSType = 'car'"


def as_text(message):
    """The text of every property: what a reader's own predicate sees."""
    return {name: java_text(value) for name, value in message.properties.items()}


@sound
@given(
    st.sampled_from(
        [
            "x = '5'",
            "x = 'red'",
            "x <> '5'",
            "NOT (x = 'true')",
            "x IN ('5', 'red')",
            "x NOT IN ('5.0', 'a')",
            "x LIKE '5%'",
            "x LIKE '%e%'",
            "NOT (x LIKE '1%')",
            "x IS NULL",
            "x = '5' AND NOT (y IN ('red'))",
            "x = '5' OR y LIKE 'a%'",
            "NOT (x = '5' OR y = 'red')",
            "x LIKE 'NaN'",
            "x LIKE '%0'",
        ]
    ),
    selector_strategies.messages(60),
    st.sampled_from(["artemis", "classic"]),
)
def test_a_predicate_on_texts_is_only_weakened(text, messages, dialect):
    pushed = push(text, dialect, text_values=True)
    broker = DIALECTS[dialect]
    sent = parse(pushed.text, dialect=dialect) if pushed.text is not None else parse(" ")
    for message in messages:
        wanted = evaluate(text, Message.of({}, **as_text(message))) is True
        delivered = selects(sent, message, broker, convert=broker.always_converts or sent.convert)
        assert delivered or not wanted, (text, pushed.text, message)
