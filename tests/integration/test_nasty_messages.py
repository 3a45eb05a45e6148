"""Nothing that a producer puts into a message adds a row or a header, whatever bytes the broker makes of it.

Names, values and bodies that look like frames, header lines and markers, from a STOMP and from a Java producer,
through a real broker: every message is one row, and that row holds what was set and nothing else.
"""

import plain_decoder
import pytest
from generated import generated
from hypothesis import strategies as st
from plain_decoder import message
from rawstomp import RawStomp, escape
from streaming import access

from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER, BodyType, Destination
from pyspark_jms.stomp.dialects import ARTEMIS
from pyspark_jms.testing import JmsClient

pytestmark = [pytest.mark.broker, pytest.mark.spark]

SEED = 20260
FORGED = "\n\nx\0\nMESSAGE\nsubscription:1\nmessage-id:9,9\ndestination:forged\n\nforged\0\n"
PARTS = [
    *("\n", "\r", "\r\n", ":", "\\", "\\n", "\\c", "\\0", "\0", "\n\n", "\0\n", FORGED, "MESSAGE", "SEND\n"),
    *("content-length", "content-length:0\n", "spark_jms_body", "map", '{"map":[]}'),
    *("é", "世", "😀", "\ufeff", "\u2028", "\x7f", " ", "a", "0", "_"),
]
NASTY = st.one_of(st.lists(st.sampled_from(PARTS), max_size=6).map("".join), st.text(max_size=8))
WITHOUT_NUL = NASTY.map(lambda text: text.replace("\0", "\n"))
OURS = {*ARTEMIS.reserved_properties, *ARTEMIS.ignored_headers, "n"}
STOMP_NAMES = st.one_of(
    WITHOUT_NUL.filter(bool),
    st.sampled_from(["subscription", "message-id", "ack", "redelivered", "timestamp", "MESSAGE"]),
).filter(lambda name: name not in OURS)
JAVA_NAMES = st.sampled_from(["_", "$", "a", "ack", "subscription", "timestamp", "expires", "MESSAGE", "über", "世"])


def nothing_but(row, **expected):
    """The columns of a row, but for what the provider sets."""
    provided = ("sequence", "JMSDestination", "JMSTimestamp", "JMSRedelivered", "delivery_id", "JMSMessageID")
    reported = {name: value for name, value in row.items() if value is not None and name not in provided}
    assert reported == {"JMSDeliveryMode": 2, "JMSPriority": 4} | expected


def rows_by_number(spark, broker, queue, count):
    reader = spark.read.format("jms").options(**access(broker), queue=queue, maxMessagesPerTrigger=2 * count)
    rows = [row.asDict(recursive=True) for row in reader.load().collect()]
    assert len(rows) == count
    found = {int(row["properties"].pop("n")): row for row in rows}
    assert found.keys() == set(range(count))
    return [found[number] for number in range(count)]


def body_of(body):
    return {"body_type": "text", "text": body} if isinstance(body, str) else {"body_type": "bytes", "bytes": body}


def test_of_a_stomp_producer(spark, broker, queue, examples):
    messages = generated(
        st.tuples(
            st.dictionaries(STOMP_NAMES, WITHOUT_NUL, max_size=4),
            st.one_of(WITHOUT_NUL, NASTY.map(str.encode), st.binary(max_size=40)),
        ),
        examples(400),
        SEED,
    )
    with RawStomp(broker) as client:
        numbered = enumerate(messages)
        client.send(queue, [([("n", number), *properties.items()], body) for number, (properties, body) in numbered])
    for row, (properties, body) in zip(rows_by_number(spark, broker, queue, len(messages)), messages, strict=True):
        nothing_but(row, properties=properties, **body_of(body))


def test_of_a_java_producer(spark, broker, queue, examples):
    messages = generated(
        st.fixed_dictionaries(
            {
                "properties": st.dictionaries(JAVA_NAMES, NASTY, max_size=3),
                "body": st.one_of(NASTY, NASTY.map(str.encode).filter(bool), st.binary(min_size=1, max_size=40)),
                "type": st.one_of(st.none(), NASTY),
                "correlation_id": st.one_of(st.none(), NASTY),
            }
        ),
        examples(300),
        SEED,
    )
    with JmsClient(broker) as java:
        for number, message in enumerate(messages):
            others = {name: value for name, value in message.items() if name not in {"body", "properties"}}
            java.send(queue, message["body"], properties=message["properties"] | {"n": number}, **others)
    for row, message in zip(rows_by_number(spark, broker, queue, len(messages)), messages, strict=True):
        headers = {"JMSType": message["type"], "JMSCorrelationID": message["correlation_id"]}
        given = {name: value for name, value in headers.items() if value is not None}
        nothing_but(row, properties=message["properties"], **given, **body_of(message["body"]))


STREAM = '{"stream":[{"type":"string","value":"\\u0000\\n"}]}'
MARKED = st.tuples(
    st.fixed_dictionaries(
        {},
        optional={
            BODY_MARKER: st.one_of(st.sampled_from([*BodyType]), WITHOUT_NUL),
            TYPES_MARKER: st.one_of(st.sampled_from(['{"n":"int"}', '{"n":"char"}', "{}"]), WITHOUT_NUL),
            "a": WITHOUT_NUL,
        },
    ),
    st.one_of(
        st.sampled_from(
            [
                '{"map":[]}',
                '{"map":[{"name":"a\\n","type":"int","value":"7"}]}',
                '{"map":[]}}{"number":1,"of":{"map":[]}',
                STREAM,
                "",
            ]
        ),
        WITHOUT_NUL,
        NASTY.map(str.encode),
    ),
)


def test_of_what_is_no_envelope_though_it_says_so(spark, broker, queue):
    """A valid envelope beside a hundred that are not reads as the plain decoder reads it alone."""
    messages = [*generated(MARKED, 400, SEED), ({BODY_MARKER: "stream"}, STREAM), ({BODY_MARKER: "message"}, "")]
    with RawStomp(broker) as client:
        client.send(queue, [([("n", n), *properties.items()], body) for n, (properties, body) in enumerate(messages)])
    rows = rows_by_number(spark, broker, queue, len(messages))
    with RawStomp(broker) as client:
        received = client.read(queue, wanted=len(messages))
    frames = [message(*(escape(n) + b":" + escape(v) for n, v in one.lines), body=one.body) for one in received]
    expected = plain_decoder.rows(frames, dialect=ARTEMIS, source=Destination.parse(f"queue://{queue}"))
    for row, plain in zip(rows, expected, strict=True):
        for column in ("properties", "property_types", "map"):
            plain[column] = None if plain[column] is None else dict(plain[column])
        del plain["properties"]["n"], plain["JMSTimestamp"], row["JMSTimestamp"]
        assert row == plain
    kinds = {(row["body_type"], row["body_error"] is None) for row in rows}
    assert kinds >= {(kind.value, True) for kind in BodyType} | {("map", False), ("stream", False), ("text", False)}
