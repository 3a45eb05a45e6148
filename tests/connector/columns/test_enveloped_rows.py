"""Envelopes in rows over AMQP. The decoder of STOMP frames is the oracle: it reads what the same sink sent."""

import json

import pyarrow as pa
import pytest
from element_limit import limit_elements

from pyspark_jms.columns.enveloped_rows import open_envelopes
from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER

ITEM = {"name": "a", "type": "int", "value": "1"}


def row(body, properties, *, more=(), body_error=None):
    """As the AMQP decoder reads a message that a STOMP client sent: each property has the type of AMQP."""
    column, kind = (
        ("bytes", "bytes") if isinstance(body, bytes) else ("text", "text" if body is not None else "message")
    )
    types = [(name, "string") for name in properties] + [(name, kind) for name, kind, _ in more]
    every = [*properties.items(), *((name, text) for name, _, text in more)]
    return {
        "body_type": kind,
        column: body,
        "properties": every,
        "property_types": types,
        "body_error": body_error,
        "sequence": 7,
        "JMSMessageID": "ID:1",
    }


def opened(*rows, choice="auto"):
    found = open_envelopes(pa.RecordBatch.from_pylist(list(rows), schema=ARROW_SCHEMA), choice)
    found.validate(full=True)
    assert found.schema == ARROW_SCHEMA
    return [{name: value for name, value in each.items() if value is not None} for each in found.to_pylist()]


BODIES = [
    ("text", "hi", {"text": "hi"}),
    ("text", b"hi", {"text": "hi"}),
    ("bytes", "hi", {"bytes": b"hi"}),
    ("object", b"\xac\xed", {"bytes": b"\xac\xed"}),
    ("map", json.dumps({"map": [ITEM]}), {"map": [("a", {"type": "int", "value": "1"})]}),
    ("map", b'{"map":[]}', {"map": []}),
    ("stream", '{"stream":[{"type":"long","value":"2"}]}', {"stream": [{"type": "long", "value": "2"}]}),
    ("message", "", {}),
    ("message", None, {}),
]


@pytest.mark.parametrize(("kind", "sent", "columns"), BODIES)
def test_a_body_is_that_of_its_marker(kind, sent, columns):
    [found] = opened(row(sent, {BODY_MARKER: kind, "s": "x"}))
    assert {name: found[name] for name in found.keys() & {"text", "bytes", "map", "stream"}} == columns
    assert (found["body_type"], found["properties"]) == (kind, [("s", "x")])
    assert found["property_types"] == [("s", "string")]
    assert (found["sequence"], found["JMSMessageID"]) == (7, "ID:1")


def test_each_row_is_opened_wherever_it_stands():
    rows = [row(sent, {BODY_MARKER: kind}) for kind, sent, _ in BODIES]
    plain = row("plain", {"spark_jms_error": "why", "a_name_of_14_c": "x"})
    alone = [opened(each)[0] for each in rows]
    for some in (rows, [plain, *rows, plain], [each for one in rows for each in (one, plain)]):
        assert [each for each in opened(*some) if each.get("text") != "plain"] == alone
    batch = pa.RecordBatch.from_pylist([plain], schema=ARROW_SCHEMA)
    assert open_envelopes(batch, "auto") is batch
    whole = pa.RecordBatch.from_pylist([plain, *rows], schema=ARROW_SCHEMA).slice(1)
    assert [each["body_type"] for each in open_envelopes(whole, "auto").to_pylist()] == [kind for kind, _, _ in BODIES]


def test_types_are_those_that_the_envelope_states():
    stated = json.dumps({"n": "int", "gone": "long"})
    [found] = opened(row("hi", {"n": "9", TYPES_MARKER: stated, "s": "x"}, more=[("JMSXDeliveryCount", "int", "1")]))
    assert found["properties"] == [("n", "9"), ("s", "x"), ("JMSXDeliveryCount", "1")]
    assert dict(found["property_types"]) == {"n": "int", "s": "string", "JMSXDeliveryCount": "int"}


@pytest.mark.parametrize("stated", ["", "x", "[]", '{"n":"money"}', '{"n":1}'])
def test_types_that_cannot_be_read_stay_a_property(stated):
    sent = row("hi", {"n": "9", TYPES_MARKER: stated})
    [found] = opened(sent)
    assert found["properties"] == sent["properties"]
    assert dict(found["property_types"])["n"] == "string"


@pytest.mark.parametrize(
    ("kind", "sent", "reason"),
    [
        ("map", "x", "body is not the JSON of a map"),
        ("stream", '{"stream":[{"type":"int","value":"x"}]}', "element 1 of the stream is not of type int"),
        ("text", b"\xff", "text is not valid UTF-8"),
        ("message", "x", "a message without a body has one"),
        ("maps", "x", "property 'spark_jms_body' does not name a body type"),
    ],
)
def test_a_body_that_cannot_be_read_is_a_body_error(kind, sent, reason):
    [found] = opened(row(sent, {BODY_MARKER: kind}))
    assert found["body_error"] == reason
    assert found["bytes"] == (sent if isinstance(sent, bytes) else sent.encode())
    assert "text" not in found
    assert dict(found["properties"]) == ({BODY_MARKER: kind} if kind == "maps" else {})


@pytest.mark.parametrize("choice", ["text", "bytes"])
def test_with_one_type_for_all_messages_markers_of_bodies_are_not_read(choice):
    stated = '{"n":"int"}'
    [found] = opened(row("{}", {BODY_MARKER: "map", TYPES_MARKER: stated, "n": "9"}), choice=choice)
    assert found["text"] == "{}"
    assert found["properties"] == [(BODY_MARKER, "map"), ("n", "9")]
    assert dict(found["property_types"]) == {BODY_MARKER: "string", "n": "int"}


def test_what_is_no_envelope_stays():
    """A message that could not be read, and one whose body no STOMP client has sent."""
    unread = row(b"raw", {BODY_MARKER: "map"}, body_error="the body is odd")
    native = row(None, {BODY_MARKER: "stream"}) | {"body_type": "map", "map": [("a", {"type": "int", "value": "1"})]}
    found = opened(unread, native, native | {"properties": [(BODY_MARKER, "map")]})
    assert (found[0]["bytes"], found[0]["properties"]) == (b"raw", [(BODY_MARKER, "map")])
    assert (found[1]["body_type"], found[1]["properties"]) == ("map", [(BODY_MARKER, "stream")])
    assert (found[2]["map"], found[2]["properties"]) == (native["map"], [])


def test_an_envelope_with_too_many_elements_is_a_body_error(monkeypatch):
    """As over STOMP; the elements are counted before they are parsed."""
    limit_elements(monkeypatch, 20)
    text = json.dumps({"stream": [{"type": "int", "value": "1"}] * 30})
    rows = pa.RecordBatch.from_pylist([row(text, {BODY_MARKER: "stream"})], schema=ARROW_SCHEMA)
    [found] = open_envelopes(rows, "auto").to_pylist()
    assert "more than 20 elements" in found["body_error"]
    assert (found["body_type"], found["stream"], found["bytes"]) == ("stream", None, text.encode())
    limit_elements(monkeypatch, 30)
    [found] = open_envelopes(rows, "auto").to_pylist()
    assert len(found["stream"]) == 30
