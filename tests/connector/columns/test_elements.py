"""Elements of maps and streams, and the envelopes that are written of them."""

import base64
import itertools
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sink_rows import rows_of

from pyspark_jms.columns import elements as module
from pyspark_jms.columns.elements import check_names, check_values, elements_of, envelopes, json_escaped, json_text
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.schema import TYPED_VALUE
from pyspark_jms.columns.value_texts import misfits
from pyspark_jms.errors import MessageFormatError, MessageTooLargeError
from pyspark_jms.jms.conversions import ValueType

MAP, STREAM = pa.map_(pa.string(), TYPED_VALUE), pa.list_(TYPED_VALUE)


def value(kind, text):
    return {"type": kind, "value": text}


def checked(**columns):
    (name,) = columns
    elements = elements_of(rows_of(**columns), name)
    if elements.entries.names is not None:
        check_names(elements.entries, elements.entries.names)
    check_values(elements)
    return elements


def test_no_row_has_one():
    assert elements_of(rows_of(text=["a"]), "map") is None


def test_elements_of_all_rows_stand_one_after_the_other():
    items = pa.array([[("x", value("int", "9"))], [("a", value("int", "1")), ("b", None)], None, []], MAP)
    elements = checked(map=items[1:])
    assert elements.entries.bounds.tolist() == [0, 2, 2, 2]
    assert elements.entries.names.to_pylist() == [b"a", b"b"]
    assert elements.types.to_pylist() == ["int", "string"]
    assert elements.values.to_pylist() == ["1", None]


def test_elements_of_a_stream_have_no_names():
    elements = checked(stream=pa.array([[value("char", "é")]], STREAM))
    assert (elements.entries.names, elements.values.to_pylist()) == (None, ["é"])


def test_a_name_that_is_not_utf8_is_refused():
    structs = pa.StructArray.from_arrays([pa.array(["string"]), pa.array(["a"])], fields=list(TYPED_VALUE))
    names = pa.array([b"\xff"]).view(pa.string())
    with pytest.raises(MessageFormatError, match=r"name .*UTF-8"):
        checked(map=pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), names, structs))


CASES = [
    ("", ""),
    ("a b", "a b"),
    ('"', '\\"'),
    ("\\", "\\\\"),
    ("\0", "\\u0000"),
    ("\n\r\t\b", "\\u000a\\u000d\\u0009\\u0008"),
    ("\x1f \x7f\x80", "\\u001f \x7f\x80"),
    ("é\u2028雪🐘", "é\u2028雪🐘"),
    ('a"b\\c\0d', 'a\\"b\\\\c\\u0000d'),
]


def refused(index):
    raise ValueError(index)


def escaped(array, *, too_long=refused):
    return json_escaped(array, refused, too_long).to_pylist()


@pytest.mark.parametrize(("text", "inside"), CASES)
def test_what_would_end_the_string_or_the_line_is_escaped(text, inside):
    assert json_text(text) == f'"{inside}"'
    assert escaped(pa.array([text.encode()])) == [inside.encode()]


def test_neighbours_nulls_and_slices_keep_their_places():
    texts = [text.encode() for text, _ in CASES]
    wanted = [inside.encode() for _, inside in CASES]
    array = pa.array([b'"', None, *texts, None, b"\0"])
    assert escaped(array) == [b'\\"', None, *wanted, None, b"\\u0000"]
    for start in range(len(array)):
        assert escaped(array[start:]) == [b'\\"', None, *wanted, None, b"\\u0000"][start:]
    assert escaped(pa.array([], pa.binary())) == []
    assert escaped(pa.nulls(2, pa.binary())) == [None, None]


@given(st.lists(st.none() | st.text(max_size=8) | st.text(alphabet='\0\n"\\aé🐘', max_size=8)))
def test_json_reads_the_text_back(texts):
    found = escaped(pa.array([text if text is None else text.encode() for text in texts], pa.binary()))
    assert [text if text is None else json.loads(b'"' + text + b'"') for text in found] == texts
    assert all(text is None or min(text, default=32) >= 32 for text in found)
    assert [json_text(text) for text in texts if text is not None] == [
        f'"{f.decode()}"' for f in found if f is not None
    ]


def test_a_text_that_is_not_utf8_is_refused():
    with pytest.raises(ValueError, match="2"):
        escaped(pa.array([b"a", b"\xc3\xa9", b"\xff", b"\xfe"]))


def test_what_arrow_cannot_hold_is_refused_and_the_longest_named(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_TEXT", 20)
    assert escaped(pa.array([b"\0\0", b"x" * 8])) == [b"\\u0000" * 2, b"x" * 8]
    with pytest.raises(ValueError, match="1"):
        escaped(pa.array([b"\0", b"\0\0\0", b"x"]))


def rows_with(column, values, kind=None):
    found = kind or (MAP if column == "map" else STREAM)
    array = values if isinstance(values, pa.Array) else pa.array(values, found)
    return Rows(columns={column: array}, first=5, count=len(array))


def maps(*values, kind=None):
    return [text.decode() for text in envelopes(rows_with("map", list(values), kind), "map").to_pylist()]


def streams(*values, kind=None):
    return [text.decode() for text in envelopes(rows_with("stream", list(values), kind), "stream").to_pylist()]


# --- what is written ---------------------------------------------------------------------------------

NUMBER, NOTHING = value("int", "3"), value("string", None)


@pytest.mark.parametrize(
    ("value", "json_of_stream"),
    [
        (value("int", "3"), '{"type":"int","value":"3"}'),
        (value("string", None), '{"type":"string","value":null}'),
        (value("double", None), '{"type":"double","value":null}'),
        (value(None, None), '{"type":"string","value":null}'),
        (None, '{"type":"string","value":null}'),
        (value("bytes", "AAEC"), '{"type":"bytes","value":"AAEC"}'),
        (value("bytes", ""), '{"type":"bytes","value":""}'),
        (value("char", "\0"), '{"type":"char","value":"\\u0000"}'),
        (value("string", 'a"\\\n\r\té🐘\u2028'), '{"type":"string","value":"a\\"\\\\\\u000a\\u000d\\u0009é🐘\u2028"}'),
        (value("double", "-0.0"), '{"type":"double","value":"-0.0"}'),
        (value("float", "NaN"), '{"type":"float","value":"NaN"}'),
    ],
)
def test_an_element_keeps_its_type_and_its_text(value, json_of_stream):
    assert streams([value]) == [f'{{"stream":[{json_of_stream}]}}']
    assert streams([NUMBER, value], [], [value])[1:] == ['{"stream":[]}', f'{{"stream":[{json_of_stream}]}}']
    json_of_map = json_of_stream.replace("{", '{"name":"n\\"\\u000a",', 1)
    assert maps([('n"\n', value)]) == [f'{{"map":[{json_of_map}]}}']


def test_each_row_has_its_elements_in_order():
    assert maps([("b", NUMBER), ("a", NOTHING)], None, [], [("b", NUMBER)]) == [
        '{"map":[{"name":"b","type":"int","value":"3"},{"name":"a","type":"string","value":null}]}',
        '{"map":[]}',
        '{"map":[]}',
        '{"map":[{"name":"b","type":"int","value":"3"}]}',
    ]
    assert streams(None, []) == ['{"stream":[]}'] * 2
    assert envelopes(Rows(columns={}, first=0, count=2), "stream").to_pylist() == [b'{"stream":[]}'] * 2


def test_arrays_as_spark_may_hand_them_over():
    """Slices, wide offsets, the fields of the struct the other way round, elements hidden under a null."""
    turned = pa.struct([pa.field("value", pa.large_string()), pa.field("type", pa.large_string())])
    wide = pa.array([[NOTHING], [NUMBER, None], [NUMBER]], pa.large_list(turned))
    wanted = [
        '{"stream":[{"type":"int","value":"3"},{"type":"string","value":null}]}',
        '{"stream":[{"type":"int","value":"3"}]}',
    ]
    assert streams(*wide[1:].to_pylist()) == wanted
    assert [text.decode() for text in envelopes(rows_with("stream", wide[1:]), "stream").to_pylist()] == wanted
    shown = pa.array([[NUMBER], [value("int", "no")], [NUMBER]], STREAM)
    visible = pa.array([True, False, True]).buffers()[1]
    hidden = pa.Array.from_buffers(STREAM, 3, [visible, shown.buffers()[1]], null_count=1, children=[shown.values])
    assert [len(text) for text in envelopes(rows_with("stream", hidden), "stream").to_pylist()] == [39, 13, 39]
    structs = pa.StructArray.from_arrays(
        [pa.array(["int", "x"]), pa.array(["3", "4"])], ["type", "value"], mask=pa.array([False, True])
    )
    null_struct = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), structs)
    assert envelopes(rows_with("stream", null_struct), "stream").to_pylist() == [wanted[0].encode()]


# --- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "fact"),
    [
        (value("int", "x"), "its value is not an int"),
        (value("byte", "128"), "its value is not a byte"),
        (value("long", "9223372036854775808"), "its value is not a long"),
        (value("boolean", "yes"), "its value is not true or false"),
        (value("char", "🐘"), "its value is not one character"),
        (value("bytes", "a"), "its value is not base64"),
        (value("double", "1,5"), "its value is not a double"),
        (value("decimal", "1"), "its value has a type that JMS does not have"),
        (value("decimal", None), "its value is not of its type"),
        (value(None, "1"), "it has a value but no type"),
    ],
)
def test_a_value_that_is_not_of_its_type_is_refused(value, fact):
    with pytest.raises(MessageFormatError, match=f"Row 6 .*map item 'n': {fact}.*boolean") as error:
        maps([("a", NUMBER)], [("a", NUMBER), ("n", value)], [("n", value)], [("a", NUMBER)])
    assert error.value.__cause__.numbers.tolist() == [6, 7]
    with pytest.raises(MessageFormatError, match=f"Row 6 .*stream element 1: {fact}"):
        streams([NUMBER, NUMBER], [NUMBER, value])


def test_an_item_has_a_name_of_its_own():
    with pytest.raises(MessageFormatError, match=r"Row 6 .*map item number 1"):
        maps([("a", NUMBER)], [("", NUMBER)])
    structs = pa.StructArray.from_arrays([pa.array(["int"] * 3), pa.array(["1"] * 3)], ["type", "value"])
    twice = pa.MapArray.from_arrays(pa.array([0, 1, 3], pa.int32()), pa.array(["a", "b", "b"]), structs)
    with pytest.raises(MessageFormatError, match=r"Row 6 .*map item 'b'"):
        envelopes(rows_with("map", twice), "map")


@pytest.mark.parametrize(
    ("name", "kind", "value", "fact"),
    [
        (b"n\xff", b"int", b"1", "its name is not UTF-8"),
        (b"n", b"string", b"\xff", "its value is not UTF-8"),
        (b"n", b"i\xff", b"1", "its value has a type that JMS does not have"),
    ],
)
def test_an_envelope_that_is_not_utf8_is_refused(name, kind, value, fact):
    def column(data):
        return pa.array([b"a", data], pa.binary()).view(pa.string())

    structs = pa.StructArray.from_arrays(
        [pa.array([b"string", kind], pa.binary()).view(pa.string()), column(value)], ["type", "value"]
    )
    array = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), column(name), structs)
    with pytest.raises(MessageFormatError, match=f"Row 6 .*map item ('n'|number 1): {fact}"):
        envelopes(rows_with("map", array), "map")


def test_what_is_too_large_as_json_is_refused(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_TEXT", 20)
    with pytest.raises(MessageTooLargeError, match=r"Row 6 .*body .*2 GB") as caught:
        maps([("a", value("string", "\0"))], [("b", value("string", "\0" * 3))])
    assert caught.value.__cause__.numbers.tolist() == [6]
    with pytest.raises(MessageTooLargeError, match="Row 5"):
        maps([("\0" * 9, NUMBER)])


# --- whatever it holds -------------------------------------------------------------------------------

texts = st.text(max_size=6) | st.text('\0\n\r"\\:{}[],é🐘', max_size=6)
values = st.none() | st.fixed_dictionaries(
    {"type": st.none() | st.sampled_from(ValueType) | texts, "value": st.none() | texts}
)
base64_texts = st.binary(max_size=9).map(lambda found: value("bytes", base64.b64encode(found).decode()))


def reported(value):
    """Type and text of an element; a null needs no type."""
    kind, text = (value or {}).get("type"), (value or {}).get("value")
    return "string" if kind is None and text is None else kind, text


def fits(item):
    name, kind, text = item
    return bool(name) and not misfits(pa.array([kind], pa.string()), pa.array([text], pa.string()))[0]


@given(st.lists(st.lists(st.tuples(texts, values | base64_texts), max_size=3), min_size=1, max_size=3))
def test_json_holds_the_elements_and_nothing_else_or_the_row_is_refused(rows):
    """One line, no NUL, no blanks but those of the texts; read by Python's json it is what was written."""
    rows = [list({name: (name, value) for name, value in row}.values()) for row in rows]
    wanted = [[(name, *reported(value)) for name, value in row] for row in rows]
    if not all(map(fits, itertools.chain(*wanted))):
        with pytest.raises(MessageFormatError):
            maps(*rows)
        return
    for text, reason in zip(maps(*rows), wanted, strict=True):
        assert min(text) >= " "
        items = json.loads(text)["map"]
        assert [(item["name"], item["type"], item["value"]) for item in items] == reason
        assert text == json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")) or "\\u00" in text
