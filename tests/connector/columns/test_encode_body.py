import pyarrow as pa
import pytest

from pyspark_jms.columns.encode_body import body_of
from pyspark_jms.columns.encode_columns import Rows, sink_columns
from pyspark_jms.columns.encode_octets import join_rows
from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.errors import MessageFormatError, UnsupportedError

ELEMENT = {"type": "int", "value": "1"}


def bodies_of(*rows):
    names = ["sequence", *{name for row in rows for name in row}]
    batch = pa.record_batch(
        {name: pa.array([row.get(name) for row in rows], ARROW_SCHEMA.field(name).type) for name in names}
    )
    length, body = body_of(Rows(columns=sink_columns(batch), first=3, count=len(rows)))
    return [tuple(entry.split(b"|", 1)) for entry in join_rows([*length, b"|", body]).to_pylist()]


@pytest.mark.parametrize(
    ("row", "length", "body"),
    [
        ({"text": "a"}, b"", b"a"),
        ({"text": ""}, b"", b""),
        ({"text": "é\n\n:\\"}, b"", "é\n\n:\\".encode()),
        ({"bytes": b"a\0b"}, b"\ncontent-length:3", b"a\0b"),
        ({"bytes": b""}, b"\ncontent-length:0", b""),
        ({"bytes": b"\xff" * 12}, b"\ncontent-length:12", b"\xff" * 12),
        ({}, b"", b""),
        ({"body_type": "text"}, b"", b""),
        ({"body_type": "message"}, b"", b""),
        ({"body_type": "bytes"}, b"\ncontent-length:0", b""),
        ({"body_type": "text", "text": "a"}, b"", b"a"),
        ({"body_type": "bytes", "bytes": b"\0"}, b"\ncontent-length:1", b"\0"),
        ({"body_type": "text", "text": "a", "bytes": b"b"}, b"", b"a"),
        ({"body_type": "bytes", "text": "a\0", "bytes": b"b"}, b"\ncontent-length:1", b"b"),
    ],
)
def test_a_body_is_sent_as_its_type(row, length, body):
    assert bodies_of(row) == [(length, body)]
    neighbours = ({"text": "t"}, {"bytes": b"yy"}, {})
    beside = [(b"", b"t"), (b"\ncontent-length:2", b"yy"), (b"", b"")]
    assert bodies_of(row, *neighbours) == [(length, body), *beside]
    assert bodies_of(*neighbours, row) == [*beside, (length, body)]


@pytest.mark.parametrize("text", ["\0", "a\0b", "é\0"])
def test_nul_ends_a_text_so_it_is_refused(text):
    with pytest.raises(MessageFormatError, match=r"Row 4 of the task has U\+0000 in its text.*Send it as bytes"):
        bodies_of({"text": "a"}, {"text": text})
    with pytest.raises(MessageFormatError, match="Row 4 of the task"):
        bodies_of({"bytes": b"\0"}, {"text": text}, {"body_type": "bytes", "text": "\0", "bytes": b""})


def test_a_text_that_is_not_utf8_is_refused():
    column = pa.array([b"a", "é".encode(), b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(MessageFormatError, match="Row 2 of the task has a text that is not UTF-8"):
        body_of(Rows(columns={"text": column}, first=0, count=3))


def test_a_text_that_is_not_sent_is_not_judged():
    texts = pa.array([b"a", b"\xff\0"], pa.binary()).view(pa.string())
    columns = {"text": texts, "bytes": pa.array([None, b"b"]), "body_type": pa.array(["text", "bytes"])}
    length, body = body_of(Rows(columns=columns, first=0, count=2))
    assert join_rows([*length, body]).to_pylist() == [b"a", b"\ncontent-length:1b"]


@pytest.mark.parametrize(
    "row", [{"text": "", "bytes": b""}, {"text": "a", "map": [("k", ELEMENT)]}, {"bytes": b"", "stream": []}]
)
def test_two_bodies_without_a_body_type_are_refused(row):
    with pytest.raises(MessageFormatError, match="Row 4 of the task has more than one body"):
        bodies_of({"text": "a"}, row)


@pytest.mark.parametrize(
    "row",
    [
        {"body_type": "text", "bytes": b"a"},
        {"body_type": "bytes", "text": "a"},
        {"body_type": "message", "text": ""},
        {"body_type": "message", "bytes": b""},
        {"body_type": "text", "stream": [ELEMENT]},
        {"body_type": "object", "text": "a"},
    ],
)
def test_a_body_its_type_does_not_speak_of_is_not_lost_silently(row):
    with pytest.raises(MessageFormatError, match=r"Row 4 of the task says body_type .* in another column"):
        bodies_of({"text": "a"}, row)


@pytest.mark.parametrize("body_type", ["TEXT", "", "json", "text ", "text\0"])
def test_an_unknown_body_type_is_refused(body_type):
    with pytest.raises(MessageFormatError, match="Row 4 of the task has an unknown body_type"):
        bodies_of({"body_type": None, "text": "a"}, {"body_type": body_type, "text": "a"})


@pytest.mark.parametrize(
    ("row", "body_type"),
    [
        ({"map": [("k", ELEMENT)]}, "map"),
        ({"map": []}, "map"),
        ({"stream": [ELEMENT]}, "stream"),
        ({"body_type": "map"}, "map"),
        ({"body_type": "stream", "stream": []}, "stream"),
        ({"body_type": "object", "bytes": b"\xac\xed"}, "object"),
    ],
)
def test_bodies_of_a_later_release_are_refused(row, body_type):
    with pytest.raises(UnsupportedError, match=f"Row 4 of the task has a {body_type} body"):
        bodies_of({"text": "a"}, row)
