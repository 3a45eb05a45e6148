"""Errors, logs, ``body_error`` and so ``spark_jms_error`` never have the content of a row or a message.

A secret is put into each place of a row, and of a message, together with what makes the place wrong. A name is shown
only if it is a usual one: an identifier of reasonable length.
"""

import contextlib

import amqp_messages as amqp
import pyarrow as pa
import pytest
from generated import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_decoder import block_of as frames_of
from plain_decoder import message as frame

from pyspark_jms.amqp.columns.decode import decode as decode_amqp
from pyspark_jms.amqp.columns.encode import encode as encode_amqp
from pyspark_jms.amqp.dialects import AMQP
from pyspark_jms.amqp.dialects import ARTEMIS as ARTEMIS_OVER_AMQP
from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.model import Destination
from pyspark_jms.stomp.columns.decode import decode as decode_stomp
from pyspark_jms.stomp.columns.encode import encode as encode_stomp
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC, RABBITMQ

SECRET = "s3cret"
QUEUE = Destination.parse("queue://q")
TYPED = pa.struct([("type", pa.binary()), ("value", pa.binary())])
TEXTS = dict.fromkeys(
    ("text", "bytes", "JMSType", "JMSCorrelationID", "content_type", "body_type", "destination"), pa.binary()
)
TYPES = TEXTS | {
    "properties": pa.map_(pa.binary(), pa.binary()),
    "property_types": pa.map_(pa.binary(), pa.binary()),
    "map": pa.map_(pa.binary(), TYPED),
    "stream": pa.list_(TYPED),
}

# What holds the secret, and is wrong in some place: no identifier, too long, not UTF-8, changed by a broker, no number.
secrets = st.sampled_from(
    [
        f"{SECRET} with blanks",
        SECRET * 20,
        f"{SECRET}\0",
        f"{SECRET}\U0001f418",
        f"1{SECRET}",
        f"spark_jms_{SECRET * 10}",
        f"JMSX{SECRET * 10}",
        f"_AMQ_{SECRET * 10}",
        f"ID:AMQP_UUID:{SECRET}",
        f"ftp://{SECRET}",
    ]
).map(str.encode) | st.just(SECRET.encode() + b" \xff")
harmless = st.sampled_from([b"a", b"int", b"string", b"1", b""])
texts = secrets | harmless
elements = st.fixed_dictionaries({"type": st.none() | texts, "value": st.none() | texts})
rows = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(TEXTS, texts),
        "properties": st.lists(st.tuples(texts, st.none() | texts), max_size=2),
        "property_types": st.lists(st.tuples(texts, texts), max_size=2),
        "map": st.lists(st.tuples(texts, elements), max_size=2),
        "stream": st.lists(elements, max_size=2),
    },
)


def batch_of(row):
    names = list(row) or ["text"]
    arrays = [_texts(pa.array([row.get(name)], TYPES[name])) for name in names]
    return pa.record_batch(arrays, names)


def _texts(array):
    """The same bytes as strings, UTF-8 or not, but for the column ``bytes``."""
    kind = array.type
    if pa.types.is_binary(kind):
        return array.view(pa.string())
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays([_texts(child) for child in array.flatten()], names=["type", "value"])
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(array.offsets, _texts(array.keys), _texts(array.items))
    return pa.ListArray.from_arrays(array.offsets, _texts(array.values))


@contextlib.contextmanager
def no_secret_in_errors():
    """Whether a row is refused, and why, is not checked here."""
    text = ""
    try:
        yield
    except JMSError as error:
        text = str(error)
    assert SECRET not in text


@pytest.mark.parametrize("dialect", [ARTEMIS, CLASSIC, RABBITMQ], ids=lambda dialect: dialect.name)
@settings(max_examples=examples(150))
@given(row=rows)
def test_a_row_over_stomp(dialect, row):
    with no_secret_in_errors():
        encode_stomp(
            batch_of(row), dialect=dialect, destination=QUEUE, transaction=None, now_ms=1, max_frame_bytes=1 << 20
        )


@pytest.mark.parametrize("dialect", [AMQP, ARTEMIS_OVER_AMQP], ids=lambda dialect: dialect.name)
@settings(max_examples=examples(150))
@given(row=rows)
def test_a_row_over_amqp(dialect, row):
    with no_secret_in_errors():
        encode_amqp(
            batch_of(row),
            dialect=dialect,
            destination=QUEUE,
            property_columns=(),
            now_ms=1,
            message_id_prefix="ID:x",
            max_message_bytes=1 << 20,
        )


HEADERS = ["priority", "timestamp", "expires", "reply-to", "correlation-id", "content-type", "spark_jms_body"]
headers = st.tuples(st.sampled_from(HEADERS).map(str.encode) | secrets, texts | st.just(b"\\" + SECRET.encode()))
BODIES = ['{"map": [{"name": "%s", "type": "int", "value": "%s"}]}', '{"stream": [{"type": "%s", "value": "%s"}]}']
bodies = secrets | st.sampled_from([(body % (SECRET, SECRET)).encode() for body in BODIES])


@pytest.mark.parametrize("dialect", [ARTEMIS, CLASSIC, RABBITMQ], ids=lambda dialect: dialect.name)
@settings(max_examples=examples(150))
@given(st.lists(headers, max_size=4), bodies, st.sampled_from(["map", "stream", "text", None]))
def test_a_message_over_stomp(dialect, given, body, marker):
    lines = [b":".join(pair).replace(b"\0", b" ") for pair in given]
    lines += [f"spark_jms_body:{marker}".encode()] if marker else []
    block = frames_of([frame(*lines, body=body.replace(b"\0", b" "))])
    found = decode_stomp(block, dialect=dialect, source=QUEUE, first_sequence=0, body_type="auto")
    assert SECRET not in (found.column("body_error")[0].as_py() or "")


def encoded(data):
    return [
        amqp.variable(0xA1, data),
        amqp.variable(0xA3, data),
        amqp.variable(0xA0, data),
        b"\x84" + data[:8].ljust(8),
    ]


values = secrets.flatmap(lambda data: st.sampled_from(encoded(data))) | st.just(amqp.TRUE)
pairs = st.lists(st.tuples(values, values | st.just(b"\x56\x07")), max_size=3)
sections = st.fixed_dictionaries(
    {},
    optional={
        0x70: st.lists(values, max_size=5).map(lambda found: amqp.list_(*found)),
        0x72: pairs.map(amqp.map_),
        0x73: st.lists(values, max_size=13).map(lambda found: amqp.list_(*found, wide=True)),
        0x74: pairs.map(lambda found: amqp.map_(found * 2, wide=True)) | pairs.map(amqp.map_),
        0x77: values | pairs.map(amqp.map_) | st.lists(values, max_size=3).map(lambda found: amqp.list_(*found)),
    },
)


@settings(max_examples=examples(400))
@given(sections, st.integers(0, 3))
def test_a_message_over_amqp(parts, cut):
    message = b"".join(amqp.section(code, parts[code]) for code in sorted(parts)) or amqp.section(0x77, amqp.NULL)
    block = amqp.block_of([message[: len(message) - cut] or message])
    found = decode_amqp(block, dialect=ARTEMIS_OVER_AMQP, source=QUEUE, first_sequence=0, body_type="auto")
    assert found.schema == ARROW_SCHEMA
    assert SECRET not in (found.column("body_error")[0].as_py() or "")
