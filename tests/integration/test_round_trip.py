"""400 generated messages: from rows to the broker, to rows, to the broker and to rows again. Nothing changes.

`make test-deep` sends 1,600, `make test-all` 5,000. Text of any unicode, empty and null values, the extremes of every
number, five bodies of a megabyte; all six bodies, every header that a client sets, properties with and without types.
Left out is what cannot come back: U+0000 in the text of a text message, which the sink refuses, and null properties,
which the sink leaves out as JMS reads them.
"""

import base64
import datetime as dt
import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from generated import examples, generated
from hypothesis import strategies as st
from streaming import access, left, read

from pyspark_jms.columns.schema import ARROW_SCHEMA, IGNORED_BY_SINK
from pyspark_jms.jms.rules import sent_name_problem

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.examples]

COUNT = min(5_000, examples(1_600))
SEED = 6
MEGABYTE = 1 << 20
LARGE_EVERY = COUNT // 5
COMPARED = [name for name in ARROW_SCHEMA.names if name not in IGNORED_BY_SINK]

# --- what there is to send -----------------------------------------------------------------------

WITHOUT_NUL = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", "\0", "\x1f\x7f\x85", "\r\n", "a:b\\c\\n", "😀𝄞", "\ufeff\u2028", '"{}"', "é\u0301", "\uffff"]
    ),
)
SPECIAL = ["NaN", "Infinity", "-Infinity", "-0.0", "0.0"]
VALUES = {
    "boolean": st.sampled_from(["true", "false"]),
    **{kind: st.sampled_from([-(2 ** (bits - 1)), -1, 0, 2 ** (bits - 1) - 1]).map(str)
       for kind, bits in {"byte": 8, "short": 16, "int": 32, "long": 64}.items()},
    "float": st.sampled_from([*SPECIAL, "1.4E-45", "3.4028235E38", "-3.4028235E38", "1.17549435E-38", "0.1"]),
    "double": st.one_of(
        st.sampled_from([*SPECIAL, "4.9E-324", "1.7976931348623157E308", "2.2250738585072014E-308"]),
        st.floats().map(repr),
    ).filter(lambda text: text not in {"nan", "inf", "-inf"}),
    "string": TEXTS,
    "char": st.one_of(
        st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), st.sampled_from("\0\n\uffff\x7f")
    ),
    "bytes": st.binary(max_size=20).map(lambda raw: base64.b64encode(raw).decode()),
}  # fmt: skip
PROPERTY_TYPES = sorted(VALUES.keys() - {"char", "bytes"})


def typed(kinds):
    return st.sampled_from(kinds).flatmap(
        lambda kind: st.fixed_dictionaries(
            {"type": st.just(kind), "value": st.one_of(VALUES[kind], VALUES[kind], st.none())}
        )
    )


ELEMENTS = typed(list(VALUES))
BODIES = st.one_of(
    st.fixed_dictionaries({"body_type": st.just("text"), "text": st.text(WITHOUT_NUL, max_size=30)}),
    st.fixed_dictionaries({"body_type": st.just("bytes"), "bytes": st.binary(max_size=30)}),
    st.fixed_dictionaries(
        {"body_type": st.just("map"), "map": st.dictionaries(TEXTS.filter(bool), ELEMENTS, max_size=4)}
    ),
    st.fixed_dictionaries({"body_type": st.just("stream"), "stream": st.lists(ELEMENTS, max_size=4)}),
    st.fixed_dictionaries({"body_type": st.just("object"), "bytes": st.binary(max_size=30)}),
    st.just({"body_type": "message"}),
)
FIRST = "abzABZ_$äß世µ-.:/1 "
NAMES = st.one_of(
    st.sampled_from(["a", "b", "x-trace", "null", "subscription", "ack", "timestamp", "redelivered", "über", "世界"]),
    st.builds(lambda first, rest: first + rest, st.sampled_from(FIRST), st.text(FIRST + "09\\\n", max_size=5)),
).filter(lambda name: sent_name_problem(name) is None)  # fmt: skip
PROPERTIES = st.dictionaries(
    NAMES,
    st.one_of(
        st.tuples(st.none(), TEXTS),
        st.sampled_from(PROPERTY_TYPES).flatmap(lambda kind: st.tuples(st.just(kind), VALUES[kind])),
    ),
    max_size=4,
)
NOW = dt.datetime.now(dt.UTC).replace(microsecond=0)
LATER = st.sampled_from(
    [NOW + dt.timedelta(hours=1, milliseconds=1), dt.datetime(2199, 12, 31, 23, 59, 59, 999000, dt.UTC)]
)
DESTINATIONS = st.builds(lambda kind, name: f"{kind}://{name}", st.sampled_from(["queue", "topic"]), TEXTS.filter(bool))
HEADERS = st.fixed_dictionaries(
    {"JMSDeliveryMode": st.sampled_from([1, 2]), "JMSPriority": st.integers(0, 9)},
    optional={
        "JMSCorrelationID": TEXTS,
        "JMSType": TEXTS,
        "JMSReplyTo": DESTINATIONS,
        "JMSExpiration": LATER,
        "JMSDeliveryTime": st.sampled_from([NOW, NOW - dt.timedelta(hours=1)]),
        "content_type": TEXTS,
    },
)
GROUP = st.one_of(st.none(), st.tuples(TEXTS, st.sampled_from(["0", "1", "-1", "2147483647"])))


def row(number, body, headers, properties, group):
    """One of the sink's; ``n`` tells which."""
    texts = {name: value for name, (_, value) in properties.items()} | {"n": str(number)}
    types = {name: kind for name, (kind, _) in properties.items() if kind is not None} | {"n": "int"}
    if group is not None:
        texts |= {"JMSXGroupID": group[0], "JMSXGroupSeq": group[1]}
        types |= {"JMSXGroupSeq": "int"}
    types = types if number % 3 else {}
    return dict.fromkeys(COMPARED) | body | headers | {"properties": texts, "property_types": types or None}


def large(number):
    """A body of a megabyte, of each type in turn."""
    text, raw = ("ä:\n\\" * MEGABYTE)[:MEGABYTE], bytes(range(256)) * (MEGABYTE // 256)
    value = {"type": "string", "value": "\0" + text}
    return [
        {"body_type": "text", "text": text},
        {"body_type": "bytes", "bytes": raw},
        {"body_type": "map", "map": {"x": value, "y": {"type": "bytes", "value": base64.b64encode(raw).decode()}}},
        {"body_type": "stream", "stream": [value]},
        {"body_type": "object", "bytes": raw},
    ][number // LARGE_EVERY]


@pytest.fixture
def rows(report):
    """Each message has a body, headers and properties of its own cycle: no two cycles meet twice."""
    report(f"test_round_trip: seed {SEED}")
    parts = [
        itertools.cycle(generated(strategy, min(count, COUNT), SEED))
        for strategy, count in ((BODIES, 1999), (HEADERS, 499), (PROPERTIES, 997), (GROUP, 101))
    ]
    return [
        row(number, large(number) if number % LARGE_EVERY == 0 else body, *others)
        for number, (body, *others) in enumerate(itertools.islice(zip(*parts, strict=True), COUNT))
    ]


# --- there and back ------------------------------------------------------------------------------

SCHEMA = pa.schema([ARROW_SCHEMA.field(name) for name in COMPARED])
TIMES = ["JMSExpiration", "JMSDeliveryTime"]
MAPS = [field.name for field in SCHEMA if pa.types.is_map(field.type)]


def stored(folder):
    """The rows of a folder by their number, each column in the form in which it was given."""
    found = {}
    for file in folder.glob("*.parquet"):
        for one in pq.read_table(file).to_pylist():
            reported = one | {name: None if one[name] is None else dict(one[name]) for name in MAPS}
            reported |= {
                name: value.replace(tzinfo=dt.UTC) for name, value in one.items() if isinstance(value, dt.datetime)
            }
            number = int(reported["properties"]["n"])
            assert number not in found
            found[number] = reported
    return found


def compared(row):
    return {name: row[name] for name in COMPARED}


def receive(spark, broker, queue, folder):
    """What is on the queue, through a streaming query into files."""
    frame = read(spark, broker, queue=queue, idleTimeout="1s")
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "rows"))
    assert query.awaitTermination(400)
    assert left(broker, queue) == 0
    return stored(folder / "rows")


@pytest.mark.timeout(900)
def test_rows_come_back_as_they_were_sent(spark, broker, queue, rows, tmp_path):
    first, second = f"{queue}.first", f"{queue}.second"
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), tmp_path / "rows.parquet")
    send = {"format": "jms", **access(broker)}
    spark.read.parquet(str(tmp_path / "rows.parquet")).write.mode("append").save(queue=first, **send)
    once = receive(spark, broker, first, tmp_path / "once")
    assert once.keys() == set(range(COUNT))
    for number, sent in enumerate(rows):
        assert once[number]["body_error"] is None, number
        assert compared(once[number]) == sent, number
    spark.read.parquet(str(tmp_path / "once" / "rows")).write.mode("append").save(queue=second, **send)
    twice = receive(spark, broker, second, tmp_path / "twice")
    assert {n: compared(row) for n, row in twice.items()} == {n: compared(row) for n, row in once.items()}
