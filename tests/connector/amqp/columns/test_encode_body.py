import numpy as np
import pyarrow as pa
import pytest
from sink_rows import rows_of

from pyspark_jms.amqp.columns.encode_body import body, content_types
from pyspark_jms.columns.row_fields import BODY_TYPES, body_types
from pyspark_jms.columns.schema import TYPED_VALUE
from pyspark_jms.columns.strings import join_rows
from pyspark_jms.errors import MessageFormatError

OBJECT = b"application/x-java-serialized-object"
NO_BODY = b"application/x-jms-message"
BYTES = b"application/octet-stream"


def joined(pieces, rows):
    if all(isinstance(piece, bytes) for piece in pieces):
        return [b"".join(pieces)] * rows.count
    return join_rows(pieces).to_pylist()


def bodies(rows, **options):
    return joined(body(rows, body_types(rows), **options), rows)


def value(kind, text):
    return {"type": kind, "value": text}


def test_a_text_is_a_value():
    assert bodies(rows_of(text=["é", ""])) == [b"\0\x53\x77\xa1\x02\xc3\xa9", b"\0\x53\x77\xa1\x00"]


def test_null_texts_are_null_values():
    assert bodies(rows_of(body_type=["text", "text"], text=["a", None])) == [b"\0\x53\x77\xa1\x01a", b"\0\x53\x77\x40"]
    assert bodies(rows_of(body_type=["text"])) == [b"\0\x53\x77\x40"]


def test_bytes_are_data():
    assert bodies(rows_of(bytes=[b"\0", b""])) == [b"\0\x53\x75\xa0\x01\0", b"\0\x53\x75\xa0\x00"]
    assert bodies(rows_of(body_type=["bytes", "bytes"], bytes=[None, b"x"])) == [
        b"\0\x53\x75\xa0\x00",
        b"\0\x53\x75\xa0\x01x",
    ]


def test_an_object_is_data_and_a_null_object_is_the_serialized_null():
    assert bodies(rows_of(body_type=["object", "object"], bytes=[b"\xac", None])) == [
        b"\0\x53\x75\xa0\x01\xac",
        b"\0\x53\x75\xa0\x05\xac\xed\0\x05\x70",
    ]


def test_a_message_without_a_body_has_no_body_section():
    assert bodies(rows_of(JMSType=["a", "b"])) == [b"", b""]


def test_a_message_without_a_body_is_a_null_where_the_broker_demands_a_section():
    found = bodies(rows_of(body_type=["message", "text"], text=[None, "x"]), needs_section=True)
    assert found == [b"\0\x53\x77\x40", b"\0\x53\x77\xa1\x01x"]
    assert bodies(rows_of(JMSType=["a"]), needs_section=True) == [b"\0\x53\x77\x40"]


def test_a_map_is_a_value_with_string_keys():
    items = pa.array([[("a", value("int", "1")), ("b", None)], []], pa.map_(pa.string(), TYPED_VALUE))
    assert bodies(rows_of(map=items)) == [
        bytes.fromhex("005377d1 00000010 00000004 a10161 7100000001 a10162 40"),
        bytes.fromhex("005377d1 00000004 00000000"),
    ]


def test_a_stream_is_a_value_with_a_list():
    elements = pa.array([[value("boolean", "true"), value("string", None)], []], pa.list_(TYPED_VALUE))
    assert bodies(rows_of(stream=elements)) == [
        bytes.fromhex("005377d0 00000006 00000002 41 40"),
        bytes.fromhex("005377d0 00000004 00000000"),
    ]


def test_bodies_of_all_types_keep_their_order():
    kinds = ["text", "map", "message", "bytes", "text", "object", "stream", "bytes"]
    rows = rows_of(
        body_type=kinds,
        text=["a", None, None, None, "b", None, None, None],
        bytes=[None, None, None, b"c", None, b"d", None, b"e"],
    )
    assert bodies(rows) == [
        b"\0\x53\x77\xa1\x01a",
        bytes.fromhex("005377d1 00000004 00000000"),
        b"",
        b"\0\x53\x75\xa0\x01c",
        b"\0\x53\x77\xa1\x01b",
        b"\0\x53\x75\xa0\x01d",
        bytes.fromhex("005377d0 00000004 00000000"),
        b"\0\x53\x75\xa0\x01e",
    ]


def test_a_text_that_is_not_utf8_is_refused():
    with pytest.raises(MessageFormatError, match=r"Row 11 .* text .*UTF-8"):
        bodies(rows_of(text=pa.array([b"a", b"\xff"]).view(pa.string())))


# --- content type --------------------------------------------------------------------------------------


def test_a_body_of_bytes_or_none_has_a_content_type():
    rows = rows_of(text=["a"] * 4)
    codes = np.array([BODY_TYPES.index(kind) for kind in ("text", "bytes", "object", "message")])
    assert joined(content_types(rows, codes), rows) == [
        b"\x40",
        b"\xa3\x18" + BYTES,
        b"\xa3\x24" + OBJECT,
        b"\xa3\x19" + NO_BODY,
    ]


@pytest.mark.parametrize(
    ("kind", "given", "sent"),
    [
        ("text", b"text/xml", b"text/xml"),
        ("bytes", b"image/png", b"image/png"),
        ("bytes", b"", b""),
        ("bytes", b"TEXT/plain; charset=latin1", BYTES),
        ("bytes", b"application/vnd.x+json", BYTES),
        ("bytes", OBJECT, BYTES),
        ("bytes", None, BYTES),
        ("object", b"image/png", OBJECT),
        ("map", b"image/png", None),
        ("message", b"image/png", NO_BODY),
    ],
)
def test_the_column_counts_where_the_body_allows_it(kind, given, sent):
    rows = rows_of(content_type=pa.array([given, b"x/y"]).view(pa.string()))
    codes = np.full(2, BODY_TYPES.index(kind))
    found = joined(content_types(rows, codes), rows)[0]
    assert found == (b"\x40" if sent is None else bytes([0xA3, len(sent)]) + sent)


def test_a_content_type_is_ascii():
    rows = rows_of(content_type=["a/b", "é", None, "é"])
    with pytest.raises(MessageFormatError, match=r"Row 11 .*content_type .*ASCII"):
        content_types(rows, np.zeros(4, np.int64))
