import json

import pyarrow as pa
import pytest
from element_limit import limit_elements
from generated import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_jms.columns.envelope import (
    UnreadableValueError,
    _by_arrow,
    _odd,
    open_envelopes,
    read_elements,
    read_one,
    read_types,
    read_types_of,
)
from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.model import BODY_MARKER, TYPES_MARKER, BodyType

MAP, STREAM = BodyType.MAP, BodyType.STREAM
MANY = 40
"""More texts than are read one by one."""

NO_JSON = "body is not the JSON of a map"
NEXT = b'{"map":[]}}{"number":%d,"of":{"map":[]}'


def read(kind, texts):
    """Each text's elements, or why it has none."""
    elements = read_elements(kind, pa.array(texts, pa.binary()))
    elements.column.validate(full=True)
    assert elements.column.type == ARROW_SCHEMA.field(kind.value).type
    found = elements.column.to_pylist()
    assert all((found[row] is None) == (row in elements.reasons) for row in range(len(texts)))
    return [elements.reasons.get(row, value) for row, value in enumerate(found)]


def judged(kind, text):
    try:
        elements = read_one(kind, text)
    except UnreadableValueError as unreadable:
        return str(unreadable)
    values = [{"type": element["type"], "value": element["value"]} for element in elements]
    return [(e["name"], v) for e, v in zip(elements, values, strict=True)] if kind is MAP else values


def a_map(*elements):
    return json.dumps({"map": [dict(zip(("name", "type", "value"), element, strict=True)) for element in elements]})


GOOD = a_map(("n", "int", "3"), ("x", "bytes", "AAEC"), ("z", "string", None))
GOOD_READ = [
    ("n", {"type": "int", "value": "3"}),
    ("x", {"type": "bytes", "value": "AAEC"}),
    ("z", {"type": "string", "value": None}),
]
VALUES = {
    "boolean": "true",
    "byte": "-128",
    "short": "32767",
    "int": "-2147483648",
    "long": "9223372036854775807",
    "float": "1.4E-45",
    "double": "-0.0",
    "string": "\0 \x1f\n\r\u2028😀\ufeff",
    "char": "\uffff",
    "bytes": "AA==",
}
TABLE = [
    ("one line", GOOD, GOOD_READ),
    ("pretty", json.dumps(json.loads(GOOD), indent=4).replace("\n", "\r\n\t"), GOOD_READ),
    ("other order", '{"map":[{"value":"3","type":"int","name":"n"}]}', GOOD_READ[:1]),
    ("escapes", r'{"m\u0061p":[{"name":"\u006e","type":"i\u006Et","value":"\u0033"}]}', GOOD_READ[:1]),
    ("value left out", '{"map":[{"name":"z","type":"string"}]}', GOOD_READ[2:]),
    ("empty", '{"map":[]}', []),
    ("specials", a_map(*((kind, kind, value) for kind, value in VALUES.items())),
     [(kind, {"type": kind, "value": value}) for kind, value in VALUES.items()]),
    ("not ASCII", '{"map":[{"name":"世😀","type":"string","value":"\x7f\u2028"}]}',
     [("世😀", {"type": "string", "value": "\x7f\u2028"})]),
    ("surrogate pair", r'{"map":[{"name":"\ud83d\ude00","type":"char","value":null}]}',
     [("😀", {"type": "char", "value": None})]),
    ("no text", b"\xff", "text is not valid UTF-8"),
    ("no text in a string", b'{"map":[{"name":"\xff","type":"int"}]}', "text is not valid UTF-8"),
    ("nothing", "", NO_JSON),
    ("blank", " \n", NO_JSON),
    ("no JSON", "map", NO_JSON),
    ("cut", GOOD[:-1], NO_JSON),
    ("text after it", GOOD + "x", NO_JSON),
    ("twice", GOOD + GOOD, NO_JSON),
    ("a NUL after it", GOOD + "\0", NO_JSON),
    ("a mark before it", "\ufeff" + GOOD, NO_JSON),
    ("the next number", NEXT % 1, NO_JSON),
    ("its own number", NEXT % 0, NO_JSON),
    ("null", "null", NO_JSON),
    ("a number", "3", NO_JSON),
    ("a list", "[]", NO_JSON),
    ("no members", "{}", NO_JSON),
    ("other kind", '{"stream":[]}', NO_JSON),
    ("both kinds", '{"map":[],"stream":[]}', NO_JSON),
    ("null list", '{"map":null}', NO_JSON),
    ("object for a list", '{"map":{"n":"3"}}', NO_JSON),
    ("list twice", '{"map":[],"map":[]}', NO_JSON),
    ("member twice", '{"map":[{"name":"n","type":"int","type":"long","value":"3"}]}', NO_JSON),
    ("member too many", '{"map":[{"name":"n","type":"int","value":"3","more":null}]}', NO_JSON),
    ("null element", '{"map":[null]}', NO_JSON),
    ("text for an element", '{"map":["n"]}', NO_JSON),
    ("list for an element", '{"map":[[]]}', NO_JSON),
    ("number for a text", '{"map":[{"name":"n","type":"int","value":3}]}', NO_JSON),
    ("true for a text", '{"map":[{"name":"n","type":"boolean","value":true}]}', NO_JSON),
    ("no number", '{"map":[{"name":"n","type":"double","value":NaN}]}', NO_JSON),
    ("object for a text", '{"map":[{"name":"n","type":{},"value":"3"}]}', NO_JSON),
    ("half a pair", r'{"map":[{"name":"\ud83d","type":"int","value":"3"}]}', NO_JSON),
    ("the other half", r'{"map":[{"name":"n","type":"string","value":"\ude00"}]}', NO_JSON),
    ("control character", '{"map":[{"name":"\n","type":"int","value":"3"}]}', NO_JSON),
    ("undefined escape", r'{"map":[{"name":"\x","type":"int","value":"3"}]}', NO_JSON),
    ("comma too many", '{"map":[],}', NO_JSON),
    ("a comment", '{"map":[]/**/}', NO_JSON),
    ("too deep", '{"map":' + "[" * 100_000, NO_JSON),
    ("a name too long to be a number", '{"map":[{"value":' + "1" * 5000 + "}]}", NO_JSON),
    ("no name", '{"map":[{"type":"int","value":"3"}]}', "element 1 of the map has no name"),
    ("null name", '{"map":[{"name":null,"type":"int","value":"3"}]}', "element 1 of the map has no name"),
    ("empty name", a_map(("a", "int", "3"), ("", "int", "3")), "element 2 of the map has no name"),
    ("same names", a_map(("a", "int", "3"), ("b", "int", "3"), ("a", "int", "3")),
     "element 3 of the map has the same name as an earlier one"),
    ("no type", '{"map":[{"name":"n","value":"3"}]}', "element 1 of the map has no JMS type"),
    ("null type", a_map(("n", None, None)), "element 1 of the map has no JMS type"),
    ("unknown type", a_map(("n", "integer", "3")), "element 1 of the map has no JMS type"),
    ("unknown type of null", a_map(("n", "Int", None)), "element 1 of the map has no JMS type"),
    ("out of range", a_map(("a", "int", "3"), ("n", "byte", "128")), "element 2 of the map is not of type byte"),
    ("no base64", a_map(("n", "bytes", "AAE")), "element 1 of the map is not of type bytes"),
    ("two characters", a_map(("n", "char", "😀")), "element 1 of the map is not of type char"),
    ("two faults", a_map(("a", "int", "x"), ("", "int", "3")), "element 1 of the map is not of type int"),
]  # fmt: skip
TABLE = [(name, text.encode() if isinstance(text, str) else text, expected) for name, text, expected in TABLE]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_one_text_reads_the_same_alone_and_among_many(text, expected):
    assert judged(MAP, text) == expected
    assert read(MAP, [text]) == [expected]
    assert read(MAP, [text] * MANY) == [expected] * MANY
    good = [GOOD.encode()] * MANY
    for place in (0, 1, MANY):
        assert read(MAP, [*good[:place], text, *good[place:]]) == (
            [GOOD_READ] * place + [expected] + [GOOD_READ] * (MANY - place)
        )


def test_the_whole_table_at_once():
    texts, expected = [row[1] for row in TABLE], [row[2] for row in TABLE]
    assert read(MAP, texts * 9) == expected * 9


def test_a_stream_is_a_list_of_values():
    texts = [
        ('{"stream":[]}', []),
        ('{"stream":[{"type":"int","value":"3"},{"value":null,"type":"string"}]}',
         [{"type": "int", "value": "3"}, {"type": "string", "value": None}]),
        ('{"stream":[{"type":"int","value":"3","name":"n"}]}', "body is not the JSON of a stream"),
        ('{"stream":[{"type":"int","value":"3"},{"value":"3"}]}', "element 2 of the stream has no JMS type"),
        ('{"stream":[{"type":"short","value":"32768"}]}', "element 1 of the stream is not of type short"),
        (GOOD, "body is not the JSON of a stream"),
    ]  # fmt: skip
    for text, expected in texts:
        assert judged(STREAM, text.encode()) == expected
    for times in (1, MANY):
        encoded = [text.encode() for text, _ in texts] * times
        assert read(STREAM, encoded) == [expected for _, expected in texts] * times


def test_plain_texts_are_not_read_one_by_one():
    texts = pa.array([text for _, text, _ in TABLE[:9]] * MANY, pa.binary())
    assert not _odd(_by_arrow(MAP, texts)).any()
    assert _odd(_by_arrow(MAP, pa.array([GOOD, "{"] * MANY, pa.binary()))).all()


def test_texts_beyond_what_arrow_counts_are_read_one_by_one(monkeypatch):
    texts = pa.array([GOOD] * MANY, pa.binary())
    monkeypatch.setattr("pyspark_jms.columns.envelope._MOST_BYTES", 100)
    assert _by_arrow(MAP, texts).null_count == MANY
    assert read(MAP, texts) == [GOOD_READ] * MANY


def test_a_body_of_a_megabyte():
    value = 'ä\\"\n' * (1 << 18)
    text = a_map(("n", "string", value), ("b", "bytes", "AAEC" * (1 << 18))).encode()
    expected = [
        ("n", {"type": "string", "value": value}),
        ("b", {"type": "bytes", "value": "AAEC" * (1 << 18)}),
    ]
    assert read(MAP, [text] * 20) == [expected] * 20


def test_nothing_to_read():
    assert read(MAP, []) == []
    assert read(STREAM, []) == []


# --- any texts ----------------------------------------------------------------------------------

TEXTS = st.one_of(st.text(max_size=4), st.sampled_from([*VALUES.values(), "1", "\ud800"]))
SCALARS = st.one_of(st.none(), TEXTS, st.sampled_from([kind.value for kind in ValueType]), st.integers(), st.booleans())
ELEMENTS = st.one_of(
    st.sampled_from(list(VALUES)).flatmap(
        lambda kind: st.fixed_dictionaries(
            {"type": st.just(kind), "name": st.text(max_size=2)},
            optional={"value": st.sampled_from([VALUES[kind], "3"])},
        )
    ),
    st.dictionaries(st.sampled_from(["name", "type", "value", "x"]), SCALARS, max_size=4),
    SCALARS,
)
DOCUMENTS = st.one_of(
    st.dictionaries(st.sampled_from(["map", "stream", "map", "x"]), st.lists(ELEMENTS, max_size=4), max_size=2),
    st.lists(ELEMENTS, max_size=4).map(lambda elements: {"map": elements}),
    SCALARS,
)
JSON_TEXTS = st.builds(
    lambda document, ascii_, indent: json.dumps(document, ensure_ascii=ascii_, indent=indent).encode(errors="replace"),
    DOCUMENTS,
    st.booleans(),
    st.sampled_from([None, 0, 2]),
)
PIECES = st.lists(
    st.sampled_from(
        [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\n", b" ", b"\0", b'"map"', b'"name"', b'"type"', b'"int"',
         b'{"map":[', b"]}", b'{"number":1,"of":', b"null", b"\xff", b"\xef\xbb\xbf", b"1", b"/*", GOOD.encode()]
    ),
    max_size=8,
).map(b"".join)  # fmt: skip


@settings(max_examples=examples(75))
@given(texts=st.lists(st.one_of(JSON_TEXTS, PIECES), min_size=1, max_size=6), kind=st.sampled_from([MAP, STREAM]))
def test_any_texts_read_among_many_as_each_reads_alone(texts, kind):
    expected = [judged(kind, text) for text in texts]
    assert read(kind, texts * MANY) == expected * MANY
    for text, one in zip(texts, expected, strict=True):
        assert read(kind, [text] * MANY) == [one] * MANY


# --- property_types -----------------------------------------------------------------------------


def types_of(*texts):
    column, unreadable = read_types(pa.array(texts, pa.string()))
    column.validate(full=True)
    assert column.type == ARROW_SCHEMA.field("property_types").type
    return column.to_pylist(), unreadable.tolist()


def test_property_types_by_name():
    every = {kind.value: kind.value for kind in ValueType if kind not in {ValueType.CHAR, ValueType.BYTES}}
    texts = [json.dumps(every), None, "{}", json.dumps({"世😀": "int"}, indent=2), json.dumps(every)]
    pairs = list(every.items())
    assert types_of(*texts) == ([pairs, None, [], [("世😀", "int")], pairs], [])
    assert types_of(None, None) == ([None, None], [])
    assert types_of() == ([], [])


@pytest.mark.parametrize(
    "text",
    ["", "x", "null", "[]", "3", '"int"', '{"n":null}', '{"n":3}', '{"n":["int"]}', '{"n":{}}', '{"n":"Int"}',
     '{"n":"char"}', '{"n":"bytes"}', '{"":"int"}', '{"n":"int","n":"int"}', r'{"\ud800":"int"}', '{"n":"int"',
     '{"n":"int"}x', '{"n":NaN}', "[" * 100_000, "1" * 5000, "\ufeff{}"],
)  # fmt: skip
def test_property_types_that_cannot_be_read(text):
    assert types_of(text) == ([None], [0])
    assert types_of('{"a":"int"}', text, None, text, '{"a":"int"}') == (
        [[("a", "int")], None, None, None, [("a", "int")]],
        [1, 3],
    )


# --- very many elements --------------------------------------------------------------------------

OF_INT = '{"type": "int"}'
NAMED = '{"name": "%d", "type": "int", "value": "1"}'


def with_elements(kind, count):
    elements = [OF_INT if kind is STREAM else NAMED % number for number in range(count)]
    return '{{"{}": [{}]}}'.format(kind.value, ", ".join(elements))


@pytest.mark.parametrize("beside", [0, MANY], ids=["alone", "among others"])
@pytest.mark.parametrize("kind", [MAP, STREAM])
def test_a_text_with_too_many_elements_is_not_parsed(kind, beside, monkeypatch):
    limit_elements(monkeypatch, 10)
    texts = [with_elements(kind, count) for count in (10, 11, 10)] + [with_elements(kind, 2)] * beside
    found = read_elements(kind, pa.array(texts, pa.binary()))
    assert found.reasons == {1: f"the {kind} has more than 10 elements"}
    assert [len(elements) if elements else None for elements in found.column.to_pylist()[:3]] == [10, None, 10]


@pytest.mark.parametrize(
    "text",
    [
        '{{"stream": [{}]}}'.format(",".join(["{}"] * 50)),
        '{{"stream": [{}]}}'.format(",".join(["[]"] * 50)),
        '{{"stream": [{}]}}'.format(",".join(['""'] * 50)),
        "[" * 50,
        '{{"stream": [{}]}}'.format(",".join([r'{"\\":"\""}'] * 50)),
    ],
    ids=["objects", "arrays", "texts", "nested", "escapes"],
)
def test_a_text_is_not_parsed_when_its_values_are_too_many(text, monkeypatch):
    """Each of them would take memory before the text is found to be no envelope."""
    limit_elements(monkeypatch, 10)
    reasons = read_elements(STREAM, pa.array([text], pa.binary())).reasons
    assert reasons == {0: "the stream has more than 10 elements"}


@pytest.mark.parametrize("value", ["{[,", '\\"{[,', "\\\\", '\\\\\\"{[,:'])
def test_what_stands_in_a_value_is_not_counted(value, monkeypatch):
    """A value may be a long JSON text itself."""
    limit_elements(monkeypatch, 10)
    text = '{"stream": [{"type": "string", "value": "%s"}]}' % (value * 50)
    found = read_elements(STREAM, pa.array([text], pa.binary()))
    assert not found.reasons
    ((element,),) = found.column.to_pylist()
    assert element["value"] == json.loads(f'"{value * 50}"')


@pytest.mark.parametrize(("most", "unread"), [(10, [0]), (11, [])])
def test_types_of_too_many_properties_are_not_read(most, unread, monkeypatch):
    limit_elements(monkeypatch, most)
    text = json.dumps({f"p{number}": "int" for number in range(11)})
    assert list(read_types(pa.array([text]))[1]) == unread
    (of_one,) = read_types_of(pa.array([text]), ["p3"])
    assert of_one.null_count == len(unread)


def test_the_types_of_some_properties_are_those_of_all(monkeypatch):
    limit_elements(monkeypatch, 10)
    texts = pa.array(['{"a":"int","b":"long"}', None, "{", '{"b":"string"}', '{"a":"char"}', "{" + ":" * 20])
    every = [dict(types or ()) for types in read_types(texts)[0].to_pylist()]
    for name, found in zip("abc", read_types_of(texts, "abc"), strict=True):
        assert found.to_pylist() == [types.get(name) for types in every]


# --- rows of messages over AMQP ---------------------------------------------------------------------

# The decoder of STOMP frames is the oracle: it reads what the same sink sent.

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
