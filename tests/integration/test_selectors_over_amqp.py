"""What a running broker delivers over AMQP for a pushed selector is what the evaluator of its dialect says.

Messages come from a Java client of the broker, from Qpid JMS and from this sink, with every type of property, and over
STOMP, where all are strings. The re-evaluation of the rows has the same result.
"""

import contextlib
from random import Random

import generated
import pyarrow as pa
import pytest
import selector_strategies
from amqp_brokers import AMQP_BROKERS
from amqp_messages import TRUE, list_, properties, section, string, timestamp, ubyte
from amqp_sending import put_encoded, subscription_to
from broker_rows import read_rows, read_texts
from hypothesis import strategies as st
from rawstomp import RawStomp
from selector_schema import keep, push
from streaming import access
from waiting import wait_until

from jms_selector import parse
from jms_selector.meaning.evaluate import Message
from jms_selector.syntax.dialects import DIALECTS
from jms_selector.syntax.kinds import Kind, Value
from pyspark_jms.amqp.sink import AmqpSinkLink
from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import SelectorResidualError
from pyspark_jms.jms.model import DeliveryMode, Destination
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.testing import JmsClient

pytestmark = pytest.mark.broker

EACH = 80
"""Messages of each producer."""

HEADERS = ("JMSPriority", "JMSType", "JMSDeliveryMode", "JMSCorrelationID")
WRITTEN = (*selector_strategies.WRITTEN, "JMSTimestamp > 5")


@pytest.mark.parametrize(
    ("name", "selectors"),
    [
        pytest.param("artemis", generated.examples(40), marks=pytest.mark.examples),
        pytest.param("classic", generated.examples(40), marks=pytest.mark.deep),
        pytest.param("artemis", 400, marks=pytest.mark.slow),
        pytest.param("classic", 400, marks=pytest.mark.slow),
    ],
)
def test_the_broker_delivers_what_the_evaluator_says_and_the_rows_agree(name, selectors, report):
    with AMQP_BROKERS[name]() as broker:
        messages = made_messages()
        send_all(broker, messages)
        wait_until(lambda: broker.message_count("q") == len(messages))
        rows, places = as_rows(browsed(broker, None), name)
        assert sorted(places) == [*range(len(messages))]
        tried = delivered = surplus = 0
        for text, convert in cases(name, selectors):
            pushed = push(parse(text), f"{name}-amqp", convert=convert)
            if pushed.text is None:
                continue
            found = set(as_rows(browsed(broker, pushed.text), name)[1])
            dialect = DIALECTS[f"{name}-amqp"]
            outcomes = [selector_strategies.selects(pushed.pushed, timed(message), dialect) for message in messages]
            assert found == {place for place, result in enumerate(outcomes) if result}, (text, pushed.text)
            kept = keep(pushed.pushed, rows, f"{name}-amqp").to_pylist()
            for place, stays in zip(places, kept, strict=True):
                # A row is kept where the broker throws, and where calculations have too many properties.
                assert stays or not outcomes[place], (text, pushed.text, messages[place])
                surplus += bool(stays) and outcomes[place] is False
            tried += 1
            delivered += len(found)
    assert surplus < delivered // 20
    rows_kept = f"rows: none dropped, {surplus} kept too many"
    report(f"selectors over AMQP on {name}: {tried} subscriptions, {delivered} deliveries as evaluated; {rows_kept}")
    assert tried > selectors // 2
    assert delivered > 1_000


# --- messages ------------------------------------------------------------------------------------------


def made_messages():
    random = Random(20)
    made = [selector_strategies.message(random, selector_strategies.NAMES) for _ in range(4 * EACH)]
    for message in made:
        message.headers.pop("JMSTimestamp")  # the producer's own
    return [
        selector_strategies.as_strings(message) if place >= 3 * EACH else message for place, message in enumerate(made)
    ]


def send_all(broker, messages):
    with JmsClient(broker) as native, JmsClient(broker.amqp_url, broker.user, broker.password) as qpid:
        for place, message in enumerate(messages[: 2 * EACH]):
            selector_strategies.send(qpid if place % 2 else native, "q", place, message)
    send_rows(broker, messages[2 * EACH : 3 * EACH])
    with RawStomp(broker) as stomp:
        queue = "q" if "Artemis" in type(broker).__name__ else "/queue/q"
        stomp.send(queue, [selector_strategies.stomp_message(n, messages[n]) for n in range(3 * EACH, 4 * EACH)])


def send_rows(broker, messages):
    strings = pa.map_(pa.string(), pa.string())
    rows = {name: [] for name in ("text", "properties", "property_types", *HEADERS)}
    for place, message in enumerate(messages, 2 * EACH):
        headers = {name: value.value for name, value in message.headers.items()}
        rows["text"].append(str(place))
        java_text = selector_strategies.java_text
        rows["properties"].append([(name, java_text(value)) for name, value in message.properties.items()])
        rows["property_types"].append([(name, str(value.kind)) for name, value in message.properties.items()])
        for name in HEADERS:
            value = headers.get(name)
            rows[name].append(int(DeliveryMode[value]) if name == "JMSDeliveryMode" else value)
    types = {"properties": strings, "property_types": strings, "JMSPriority": pa.int32(), "JMSDeliveryMode": pa.int32()}
    batch = pa.record_batch({name: pa.array(of, types.get(name, pa.string())) for name, of in rows.items()})
    options = SinkOptions.parse(access(broker, "amqp") | {"queue": "q"})
    assert send_at_least_once(AmqpSinkLink, options, iter([batch])) == (len(messages), 0)


# --- selectors and deliveries --------------------------------------------------------------------------


def cases(name, count):
    """Selectors, and whether strings are converted: over AMQP Classic cannot."""
    every = [(text, convert) for text in WRITTEN for convert in (False, True)] + generated.generated(
        st.tuples(selector_strategies.selectors(headers=HEADERS), st.booleans()), count, 2026
    )
    return [(text, convert and name == "artemis") for text, convert in every]


def timed(message):
    """With a time, which the producer has set."""
    return Message(message.headers | {"JMSTimestamp": Value(Kind.LONG, 1_800_000_000_000)}, message.properties)


def browsed(broker, text):
    """Everything that the broker shows for a selector: until a proof that there is no more."""
    source = AmqpSource()
    with contextlib.closing(
        source.connect(SourceOptions.parse(access(broker, "amqp") | {"queue": "q"}).connection, StateCondition())
    ) as link:
        link.subscribe(subscription_to("q", window_bytes=64 << 20, browse=True, selector=text))
        seen, blocks = 0, []
        while True:
            link.has_receipt(link.probe(), wait=True)
            taken = link.take()
            if not taken:
                break
            blocks += taken
            seen += sum(map(len, taken))
        return blocks


def as_rows(blocks, name):
    """The rows of the blocks, each message once, and their places."""
    batches = [
        AmqpSource().decode(
            block, dialect=name, source=Destination.parse("queue://q"), first_sequence=0, body_type="auto"
        )
        for block in blocks or [MessageBlock()]
    ]
    rows = pa.concat_batches(batches)
    places = [int(text) for text in rows.column("text").to_pylist()]
    first = sorted({place: index for index, place in reversed([*enumerate(places)])}.values())
    return rows.take(pa.array(first, pa.int64())), [places[index] for index in first]


# --- values that a row cannot show as the broker compares them -----------------------------------------


HEADER = section(0x70, list_(TRUE))
ODD = {
    "priority": (section(0x70, list_(TRUE, ubyte(200))) + properties(), "JMSPriority = 9"),
    "creation-time": (HEADER + properties(creation_time=timestamp(1 << 62)), "JMSTimestamp > 1000"),
    "expiry": (HEADER + properties(absolute_expiry_time=timestamp(1 << 60)), "JMSExpiration > 0"),
}


@pytest.mark.parametrize(
    ("protocol", "what"),
    [("amqp", "priority"), ("amqp", "creation-time"), ("stomp", "creation-time"), ("stomp", "expiry")],
)
def test_a_header_beyond_its_column_may_match(broker, queue, protocol, what):
    message, selector = ODD[what]
    put_encoded(broker, queue, [message + section(0x77, string("odd"))])
    [row] = read_rows(access(broker, protocol), queue, selector=selector)
    assert (row["text"], row["JMSPriority"]) == ("odd", 9 if what == "priority" else 4)


@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_a_property_that_a_java_client_set_to_null_is_null_to_selectors(broker, queue, protocol):
    with JmsClient(broker) as java:
        java.send(queue, "null", properties={"region": None})
    found = read_texts(access(broker, protocol), queue, selector="region = 'EU' OR region IS NULL")
    assert found == ["null"]


def test_a_text_that_artemis_replaces_in_selectors_is_compared_in_spark(broker, queue):
    if not hasattr(broker, "amqp_url"):
        pytest.skip("needs an embedded broker")
    with JmsClient(broker) as java:
        for text in ("PERSISTENT", "DURABLE"):
            java.send(queue, text, properties={"s": text})
    access = {"user": broker.user, "password": broker.password, "selector": "s = 'PERSISTENT'", "idleTimeout": "300ms"}
    for url, more in ((broker.url, {}), (broker.amqp_url, {"selectorInSpark": "residual"})):
        assert [row["text"] for row in read_rows(access | {"brokerUrl": url}, queue, **more)] == ["PERSISTENT"]
    with pytest.raises(SelectorResidualError, match="replaces the text 'PERSISTENT' by 'DURABLE'"):
        read_rows(access | {"brokerUrl": broker.amqp_url}, queue)
