"""A running ActiveMQ Classic decides as the ``classic`` evaluator says, and nothing that is pushed can jam a queue.

A selector that throws stops a queue of Classic for all consumers. So the first tests ask the broker's own selector
classes, message by message; the last ones are real subscriptions, of selectors that are pushed.
"""

from itertools import product
from math import inf, nan
from random import Random

import pyarrow as pa
import pytest
import selector_strategies
from amqp_sending import subscription_to
from connection_settings import settings_over
from generated import generated
from py4j.protocol import Py4JJavaError
from selector_schema import keep, push

from jms_selector import InvalidSelectorError, evaluate, parse
from jms_selector.meaning.evaluate import Message
from jms_selector.syntax.kinds import NULL, NUMERIC, Kind, Value, to_float
from jms_selector.syntax.tree import names
from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.jms.model import Destination
from pyspark_jms.source.end_of_queue import blocks_until
from pyspark_jms.stomp.columns.decode import decode
from pyspark_jms.stomp.dialects import CLASSIC
from pyspark_jms.stomp.source import StompSourceLink
from pyspark_jms.testing import EmbeddedClassic, JmsClient

pytestmark = [pytest.mark.broker, pytest.mark.deep]

PREFIX = "convert_string_expressions:"
"""Classic's STOMP puts it before every selector."""

VALUES = [
    *[Value(kind, 5.0 if kind in {Kind.FLOAT, Kind.DOUBLE} else 5) for kind in sorted(NUMERIC)],
    *[Value(kind, value) for kind in (Kind.FLOAT, Kind.DOUBLE) for value in (-0.5, -0.0, inf, nan)],
    Value(Kind.FLOAT, to_float(0.1)),
    Value(Kind.DOUBLE, to_float(0.1)),
    Value(Kind.DOUBLE, 0.1),
    Value(Kind.LONG, 2**53),
    Value(Kind.LONG, 2**53 + 1),
    Value(Kind.STRING, "5.0"),
    Value(Kind.STRING, "NaN"),
    Value(Kind.STRING, "true"),
    Value(Kind.BOOLEAN, value=False),
    Value(Kind.INT, 6),
    Value(Kind.BOOLEAN, value=True),
    Value(Kind.STRING, "5"),
    Value(Kind.STRING, "x"),
    NULL,
]
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
LITERALS = ("5", "5.0", "5f", "4.5", "1e3", "9999999999", "1e400", "-1e400", "1e309", "1e-400", "TRUE", "'5'")
HEADERS = (
    "JMSXDeliveryCount = 1",
    "JMSXDeliveryCount IS NULL",
    "JMSXDeliveryCount > 0",
    "JMSXDeliveryCount = 0",
    "JMSXGroupSeq IS NULL",
    "JMSXGroupSeq = 0",
    "JMSXGroupID IS NULL",
    "JMSXUserID IS NULL",
    "JMSRedelivered",
    "NOT JMSRedelivered",
    "JMSRedelivered IS NULL",
    "JMSRedelivered = FALSE",
    "JMSReplyTo IS NULL",
)


@pytest.fixture(scope="module")
def classic():
    with EmbeddedClassic() as broker:
        yield broker


class Judge:
    """The broker's own selector classes, on one message."""

    def __init__(self, classic):
        self.jvm = classic.jvm
        self.queue = self.jvm.org.apache.activemq.command.ActiveMQQueue("q")
        self.parsed = {}

    def __call__(self, text, message, *, redeliveries=0):
        """Whether the message is selected; None: it throws."""
        if text not in self.parsed:
            self.parsed[text] = self.jvm.org.apache.activemq.selector.SelectorParser.parse(PREFIX + text)
        context = self.jvm.org.apache.activemq.filter.NonCachedMessageEvaluationContext()
        context.setMessageReference(self.message(message, redeliveries))
        context.setDestination(self.queue)
        try:
            return self.parsed[text].matches(context)
        except Py4JJavaError as error:
            if "ClassCastException" not in str(error):
                raise
            return None

    def message(self, message, redeliveries):
        made = self.jvm.org.apache.activemq.command.ActiveMQMessage()
        made.setRedeliveryCounter(redeliveries)
        for name, value in message.properties.items():
            if value is not NULL:
                getattr(made, f"set{value.kind.capitalize()}Property")(name, value.value)
        return made


@pytest.fixture(scope="module")
def judge(classic):
    return Judge(classic)


def evaluated(text, message):
    return selector_strategies.selects(parse(text, dialect="classic"), message, "classic", convert=True)


def test_two_properties_of_every_type_compare_as_there(judge):
    throws = set()
    for left, right, sign in product(VALUES, VALUES, OPERATORS):
        message = Message({}, {"a": left, "b": right})
        found = judge(f"a {sign} b", message)
        assert found == evaluated(f"a {sign} b", message), (left, sign, right)
        if found is None:
            throws.add((left.kind, right.kind))
    assert throws == {(Kind.DOUBLE, Kind.FLOAT), (Kind.BOOLEAN, Kind.STRING)}


def test_two_properties_are_equal_in_what_is_pushed_as_in_the_selector(judge):
    """Where the plain comparison throws, the pushed one says what it says the other way round."""
    texts = [push(text, "classic").text for text in ("a = b", "a <> b")]
    for left, right in product(VALUES, VALUES):
        message = Message({}, {"a": left, "b": right})
        found = [judge(text, message) for text in texts]
        assert None not in found
        if NULL in (left, right):
            assert found == [False, False], (left, right)
        elif Kind.BOOLEAN not in {left.kind, right.kind}:
            there = judge("a = b", message)
            equal = judge("b = a", message) if there is None else there
            assert found == [equal, not equal], (left, right)


def test_a_property_and_a_literal_compare_as_there(judge):
    for value, literal, sign in product(VALUES, LITERALS, OPERATORS):
        message = Message({}, {"a": value})
        for text in (f"a {sign} {literal}", f"{literal} {sign} a"):
            try:
                parse(text, dialect="classic")
            except InvalidSelectorError:  # 5f, and a string or a boolean with an order
                continue
            assert judge(text, message) == evaluated(text, message), (text, value)


@pytest.mark.parametrize("text", HEADERS)
def test_headers_that_a_message_does_not_state_are_what_they_are_there(judge, text):
    assert judge(text, Message()) == evaluated(text, Message())


def test_the_delivery_count_is_one_more_than_the_redeliveries(judge):
    for redeliveries in range(3):
        message = Message.of({"JMSXDeliveryCount": redeliveries + 1})
        for text in ("JMSXDeliveryCount = 2", "JMSXDeliveryCount >= 2", "JMSXDeliveryCount <> 1"):
            assert judge(text, Message(), redeliveries=redeliveries) == evaluated(text, message)


# --- what is pushed ------------------------------------------------------------------------------------

SELECTORS = 150
HEADER_NAMES = ("JMSPriority", "JMSType", "JMSCorrelationID", "JMSRedelivered")
WRITTEN = (
    "a = b",
    "NOT (a = b)",
    "a = JMSPriority",
    "JMSPriority <> b",
    "JMSRedelivered = b",
    "JMSRedelivered = 'true'",
    "JMSXFlag = 'red'",
    "JMS_AMQP_FIRST_ACQUIRER <> 'true'",
    "a > 4.5 AND 5.0 = b",
    "5.0 BETWEEN a AND 6",
    "a <> 1e3 OR NOT (c = 'red')",
)


def drawn():
    return generated(selector_strategies.selectors(headers=HEADER_NAMES), SELECTORS, 21)


def test_nothing_that_is_pushed_throws(judge):
    messages = [
        Message({}, {"a": left, "b": right, "c": left, "JMSXFlag": right, "JMS_AMQP_FIRST_ACQUIRER": left})
        for left, right in product(VALUES, VALUES)
    ]
    some = Random(21).sample(messages, 25)
    pushed = {push(text, "classic").text for text in drawn()} - {None}
    assert len(pushed) > SELECTORS / 3
    for text in pushed:
        assert [message for message in some if judge(text, message) is None] == [], text
    for text in WRITTEN:
        chosen = messages if text == "NOT (a = b)" else messages[::7]
        assert [message for message in chosen if judge(push(text, "classic").text, message) is None] == [], text


QUEUE = "typed"
UNSTATED = {"JMSDestination", "JMSReplyTo", "JMSExpiration", "JMSTimestamp"}
"""Headers that the broker sets, and the messages as the test made them do not have."""

IN_HEADERS = (
    *WRITTEN,
    "JMSXDeliveryCount < 3",
    "JMSXDeliveryCount = 2",
    "JMSXGroupID = 'g'",
    "JMSXGroupID <> 'g' OR a = 5",
    "JMSXGroupSeq = 0",
    "JMSXUserID IS NULL",
    "JMSRedelivered = FALSE",
    "JMSDestination = 'queue://typed'",
    "JMSReplyTo = 'queue://answers' OR JMSReplyTo IS NULL",
    "JMSExpiration = 0 AND JMSTimestamp > 1e3",
    "NOT JMSRedelivered AND JMSDeliveryMode = 'PERSISTENT'",
)


@pytest.fixture(scope="module")
def sent(classic):
    """Fewer messages than a selective consumer of Classic sees (200)."""
    random = Random(21)
    messages = [selector_strategies.message(random, selector_strategies.NAMES) for _ in range(150)]
    with JmsClient(classic) as java:
        for place, message in enumerate(messages):
            if place % 3 == 0:
                message.properties["JMSXGroupID"] = Value(Kind.STRING, "gh"[place % 2])
            message.headers["JMSDeliveryMode"] = Value(Kind.STRING, "PERSISTENT")
            selector_strategies.send(java, QUEUE, place, message)
    return messages


def browsed(classic, selector):
    """The rows of all messages that a selector lets through; they stay where they are."""
    source = Destination.parse(f"queue://{QUEUE}")
    link = StompSourceLink(settings_over(classic))
    link.subscribe(subscription_to(QUEUE, window_bytes=1 << 24, browse=True, selector=selector))
    try:
        blocks = list(blocks_until(link, link.connection.condition, lambda _: False))
    finally:
        link.connection.drop()
    batches = [decode(block, dialect=CLASSIC, source=source, first_sequence=0, body_type="auto") for block in blocks]
    return pa.Table.from_batches(batches, ARROW_SCHEMA).combine_chunks()


def test_the_broker_delivers_what_the_evaluator_says_and_nothing_of_it_is_dropped(classic, sent, report):
    tried = delivered = 0
    for text in (*IN_HEADERS, *drawn()):
        pushed = push(text, "classic")
        if pushed.text is None:
            continue
        rows = browsed(classic, pushed.text)
        found = {int(place) for place in rows["text"].to_pylist()}
        expected = {n for n, m in enumerate(sent) if evaluate(pushed.pushed, m, "classic", convert=True) is True}
        if not set(names(pushed.pushed.root)) & UNSTATED:
            assert found == expected, (text, pushed.text)
        kept = keep(pushed.pushed, rows, "classic").to_pylist()
        assert all(kept), (text, pushed.text)
        tried += 1
        delivered += len(found)
    report(f"selectors on Classic: {tried} subscriptions, {delivered} deliveries as evaluated")
    assert tried > SELECTORS / 2
    assert delivered > 1000
