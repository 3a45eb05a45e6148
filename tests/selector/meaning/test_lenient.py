from datetime import UTC, datetime

import pytest
import selector_strategies
from hypothesis import given
from hypothesis import strategies as st
from selector_schema import candidates, may_match, outcomes

from jms_selector.errors import EvaluationError, UnsupportedSelectorError
from jms_selector.meaning.evaluate import evaluate
from jms_selector.meaning.lenient import MAX_NAMES, Outcomes
from jms_selector.syntax.dialects import ARTEMIS, CLASSIC, SPEC
from jms_selector.syntax.kinds import NULL, Kind, Value
from jms_selector.syntax.parse import parse
from jms_selector.syntax.tree import names, postorder


def row(types=None, **properties):
    return {
        "JMSPriority": 7,
        "JMSDeliveryMode": 2,
        "JMSTimestamp": datetime(1970, 1, 1, 0, 0, 5, 1999, tzinfo=UTC),
        "properties": properties,
        "property_types": types,
    }


KEPT = [  # messages that a broker delivers, and that an evaluation of the texts as strings would drop
    ("rank > 5", {"rank": "7"}, "artemis"),
    ("NOT (s > 1)", {"s": "x"}, "artemis"),
    ("s <> 1", {"s": "x"}, "artemis"),
    ("NOT (price = 0.1)", {"price": "0.1"}, "artemis"),
    ("x NOT LIKE '1%'", {"x": "12"}, "artemis"),
    ("NOT flag", {"flag": "true"}, "artemis"),
    ("x IS NULL", {"x": ""}, "artemis"),
    ("x IS NULL", {"x": "null"}, "classic"),
    ("a = b", {}, "artemis"),
    ("JMSMessageID = 'ID:1'", {}, "artemis"),
    ("AMQUserID = 'ID:1'", {}, "artemis"),
    ("AMQSize > 100", {}, "artemis"),
    ("destination = 'q'", {}, "artemis"),
    ("a < b", {"a": "10", "b": "9"}, "artemis"),
    ("AMQPriority = 7 AND AMQDurable = 'DURABLE'", {}, "artemis"),
    ("JMSTimestamp = 5001", {}, "classic"),
    ("JMSXDeliveryCount < 3 AND JMSXGroupID = 'g' AND JMSXGroupSeq > 5", {}, "classic"),
    ("JMSExpiration = 0", {}, "classic"),
    ("a + b + c = 1", {}, "spec"),
    ("weight > 2500", {"weight": "3000"}, "spec"),
]
DROPPED = [
    ("color = 'red'", {"color": "blue"}, "artemis"),
    ("color = 'red'", {}, "artemis"),
    ("weight > 2500", {"weight": "2500"}, "artemis"),
    ("weight > 2500", {"weight": "03000"}, "artemis"),
    ("JMSPriority < 7", {}, "artemis"),
    ("AMQDurable = 'NON_DURABLE'", {}, "artemis"),
    ("x IS NULL", {"x": ""}, "spec"),
    ("x LIKE 'com.%'", {"x": "5"}, "artemis"),
    ("JMSMessageID = 'ID:1'", {}, "spec"),
    ("s <> 1", {"s": "x"}, "spec"),
]


@pytest.mark.parametrize(("text", "properties", "dialect"), KEPT)
def test_a_row_that_may_match_is_kept(text, properties, dialect):
    assert may_match(text, row(**properties), dialect)


@pytest.mark.parametrize(("text", "properties", "dialect"), DROPPED)
def test_a_row_that_cannot_match_is_dropped(text, properties, dialect):
    assert not may_match(text, row(**properties), dialect)


def test_a_stated_type_is_the_only_candidate():
    assert may_match("n <> 5", row({"n": "string"}, n="5"), "artemis")
    assert not may_match("n <> 5", row({"n": "int"}, n="5"), "artemis")
    assert may_match("n = 5", row({"n": "odd"}, n="5"))


@pytest.mark.parametrize("text", ["p = 'x'", "NOT (p = '7')", "p > 7", "p IS NOT NULL", "p IS NULL"])
@pytest.mark.parametrize(("kind", "value"), [("uint", "7"), ("uuid", "7"), ("list", None)])
def test_a_type_that_only_amqp_has_allows_every_outcome_where_the_broker_has_types(text, kind, value):
    """Each broker converts such a value in its own way; a list is null in the row and not at the broker."""
    for dialect in ("artemis-amqp", "classic-amqp"):
        assert outcomes(text, row({"p": kind}, p=value), dialect) == Outcomes(true=True, false=True, unknown=True)
    assert outcomes(text, row({"p": kind}, p=value)) == outcomes(text, row(p=value))


def test_conversion_adds_outcomes():
    assert may_match("n > 5", row({"n": "string"}, n="7"), "artemis", convert=True)
    assert not may_match("n > 5", row({"n": "string"}, n="7"), "artemis")
    assert may_match(
        parse("convert_string_expressions:n > 5", dialect="artemis"), row({"n": "string"}, n="7"), "artemis"
    )


def test_outcomes_are_sets():
    assert outcomes("n <> 5", row(n="5"), "artemis") == Outcomes(true=True, false=True, unknown=False)
    assert outcomes("n = 5 AND u = 1", row(n="5")) == Outcomes(true=False, false=True, unknown=True)
    assert outcomes(" ", row()) == Outcomes(true=True, false=False, unknown=False)


def test_candidates():
    found = candidates(row(n="5"), "n", SPEC)
    assert {value.kind for value in found} == {"string", "byte", "short", "int", "long"}
    assert NULL in candidates(row(n=""), "n", ARTEMIS)
    assert candidates(row(), "JMSDeliveryMode", CLASSIC) == (Value(Kind.STRING, "PERSISTENT"),)
    assert candidates(row(), "AMQDurable", ARTEMIS) == (Value(Kind.STRING, "DURABLE"),)
    assert candidates(row(), "JMSCorrelationID", ARTEMIS) is None


def test_the_ibm_dialect_cannot_evaluate_texts():
    with pytest.raises(UnsupportedSelectorError, match=r"\[JMS_UNSUPPORTED_SELECTOR\].* ibm "):
        may_match("a = 1", row(), "ibm")


@given(
    selector_strategies.selectors(),
    selector_strategies.messages(10),
    st.sampled_from(["spec", "artemis", "classic"]),
    st.booleans(),
    st.booleans(),
)
def test_the_result_for_the_typed_message_is_among_the_outcomes(text, messages, dialect, types, convert):
    selector = parse(text)
    exact = types and all(len(names(node)) <= MAX_NAMES for node in postorder(selector.root) if not node.children[1:])
    for message in messages:
        try:
            truth = evaluate(selector, message, dialect, convert=convert)
        except EvaluationError:
            continue
        found = outcomes(selector, selector_strategies.row_of(message, types=types), dialect, convert=convert)
        assert dict(zip((True, False, None), found, strict=True))[truth], (message, exact)
