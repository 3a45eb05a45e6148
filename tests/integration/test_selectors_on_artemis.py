"""What a running Artemis delivers for a pushed selector is what the ``artemis`` evaluator says.

Messages come from a Java JMS client, with every type of property, and over STOMP, where all are strings.
Every selector is a real SUBSCRIBE; a sentinel after all messages shows when the broker has sent the last.
"""

from datetime import UTC, datetime
from random import Random

import pyarrow as pa
import pytest
import selector_strategies
from generated import generated
from hypothesis import strategies as st
from rawstomp import RawStomp, frame
from selector_reference import deserves
from selector_schema import keep, push

from jms_selector import parse
from jms_selector.syntax.dialects import ARTEMIS
from jms_selector.syntax.kinds import Kind, Value
from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.testing import JmsClient

pytestmark = pytest.mark.broker

SELECTORS = 320
TYPED = 260
STRINGS = 80
HEADERS = ("JMSPriority", "JMSType", "JMSDeliveryMode", "JMSCorrelationID")
PREFIX = "convert_string_expressions:"
WRITTEN = (
    *selector_strategies.WRITTEN,
    "NOT a > 1",
    "NOT a IS NULL",
    "a + 1 > 5",
    "x = 'é' OR x = '😀' OR y LIKE 'a!%b' ESCAPE '!'",
    "été = 5 OR \"a-b\" = 'v'",
    "a > JMSPriority OR a = '5'",
    "a BETWEEN b AND JMSPriority",
    "a / 2 = 3 AND b * 2 > 5 OR c = 'red'",
)


@pytest.fixture
def messages():
    random = Random(20)
    made = [selector_strategies.message(random, selector_strategies.NAMES) for _ in range(TYPED + STRINGS)]
    for message in made:
        message.headers.pop("JMSTimestamp")  # the broker's own
        if random.random() < 0.2:
            message.properties["été"] = Value(Kind.INT, 5)
    strings = [selector_strategies.as_strings(message) for message in made[TYPED:]]
    for message in strings:
        message.properties["a-b"] = Value(Kind.STRING, "v")  # no name for a JMS client
    return made[:TYPED] + strings


@pytest.fixture
def preloaded(broker, queue, messages):
    with JmsClient(broker) as java:
        for place, message in enumerate(messages[:TYPED]):
            selector_strategies.send(java, queue, place, message)
    with RawStomp(broker) as stomp:
        strings = enumerate(messages[TYPED:], TYPED)
        stomp.send(queue, [selector_strategies.stomp_message(place, message) for place, message in strings])
        stomp.send(queue, [([("sentinel", "end"), ("priority", "0")], "end")])
    return queue


def test_the_broker_delivers_what_the_evaluator_says_and_nothing_of_it_is_dropped(
    broker, preloaded, messages, report, examples
):
    cases = [(text, convert) for text in WRITTEN for convert in (False, True)] + generated(
        st.tuples(selector_strategies.selectors(headers=HEADERS), st.booleans()), examples(SELECTORS), 2026
    )
    with RawStomp(broker, timeout=60) as stomp:
        batch = _as_rows(_delivered(stomp, preloaded, None), len(messages))
        tried = delivered = whole = 0
        for text, convert in cases:
            selector = parse(text)
            pushed = push(selector, "artemis", convert=convert)
            if pushed.text is None:
                continue
            found = {int(message.body) for message in _delivered(stomp, preloaded, pushed.text)}
            selected = {n for n, m in enumerate(messages) if selector_strategies.selects(pushed.pushed, m, ARTEMIS)}
            assert found == selected, (text, pushed.text)
            meant = [deserves(selector, message, ARTEMIS, convert) for message in messages]
            lost = {place for place, wanted in enumerate(meant) if wanted} - found
            added = {place for place in found if meant[place] is False}
            assert not lost, (text, pushed.text)
            assert pushed.residual is not None or not added, (text, pushed.text)
            whole += pushed.residual is None
            kept = keep(pushed.pushed, batch, "artemis").to_pylist()
            assert [place for place in found if not kept[place]] == [], (text, pushed.text)
            tried += 1
            delivered += len(found)
    report(f"selectors on Artemis: {tried} subscriptions ({whole} pushed whole), {delivered} deliveries as evaluated")
    assert tried >= examples(300)
    assert delivered > examples(1000)


def _delivered(stomp, queue, text):
    """Everything the broker sends for a selector; given back by UNSUBSCRIBE, which costs no delivery attempt."""
    headers = [("id", "s"), ("destination", queue), ("subscription-type", "ANYCAST")]
    headers += [("ack", "client-individual"), ("consumer-window-size", "-1")]
    if text is not None:
        prefix = PREFIX if text.startswith(PREFIX) else ""
        headers.append(("selector", f"{prefix}({text.removeprefix(prefix)}) OR sentinel = 'end'"))
    stomp.write(frame("SUBSCRIBE", headers))
    found = []
    while (message := stomp.receive()).headers.get("sentinel") != "end":
        assert message.command == "MESSAGE", message
        found.append(message)
    stomp.request("UNSUBSCRIBE", [("id", "s")])
    return found


_COLUMN_OF = {"priority": "JMSPriority", "type": "JMSType", "correlation-id": "JMSCorrelationID"}


def _as_rows(received, count):
    """The messages as the source shows them, in the order they were sent."""
    rows = {}
    for message in received:
        row = dict.fromkeys(ARROW_SCHEMA.names)
        for name, value in message.headers.items():
            if name in _COLUMN_OF:
                row[_COLUMN_OF[name]] = int(value) if name == "priority" else value
        row["JMSDeliveryMode"] = 2 if message.headers["persistent"] == "true" else 1
        row["JMSTimestamp"] = datetime.fromtimestamp(int(message.headers["timestamp"]) / 1000, UTC)
        row["properties"] = [
            pair for pair in message.headers.items() if pair[0] in {*selector_strategies.NAMES, "été", "a-b"}
        ]
        row["property_types"] = []
        rows[int(message.body)] = row
    assert sorted(rows) == list(range(count))
    return pa.RecordBatch.from_pylist([rows[place] for place in range(count)], schema=ARROW_SCHEMA)
