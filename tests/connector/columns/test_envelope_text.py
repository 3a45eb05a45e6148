import base64
import itertools
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.columns import json_text as encode_json
from pyspark_jms.columns.envelope_text import envelopes
from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.schema import TYPED_VALUE
from pyspark_jms.columns.typed_values import misfits
from pyspark_jms.errors import MessageFormatError, MessageTooLargeError
from pyspark_jms.jms.model import ValueType

MAPS, STREAMS = pa.map_(pa.string(), TYPED_VALUE), pa.list_(TYPED_VALUE)


def typed(kind, value):
    return {"type": kind, "value": value}


def rows_of(column, values, kind=None):
    found = kind or (MAPS if column == "map" else STREAMS)
    array = values if isinstance(values, pa.Array) else pa.array(values, found)
    return Rows(columns={column: array}, first=5, count=len(array))


def maps(*values, kind=None):
    return [text.decode() for text in envelopes(rows_of("map", list(values), kind), "map").to_pylist()]


def streams(*values, kind=None):
    return [text.decode() for text in envelopes(rows_of("stream", list(values), kind), "stream").to_pylist()]


# --- what is written ---------------------------------------------------------------------------------

NUMBER, NOTHING = typed("int", "3"), typed("string", None)


@pytest.mark.parametrize(
    ("value", "json_of_stream"),
    [
        (typed("int", "3"), '{"type":"int","value":"3"}'),
        (typed("string", None), '{"type":"string","value":null}'),
        (typed("double", None), '{"type":"double","value":null}'),
        (typed(None, None), '{"type":"string","value":null}'),
        (None, '{"type":"string","value":null}'),
        (typed("bytes", "AAEC"), '{"type":"bytes","value":"AAEC"}'),
        (typed("bytes", ""), '{"type":"bytes","value":""}'),
        (typed("char", "\0"), '{"type":"char","value":"\\u0000"}'),
        (typed("string", 'a"\\\n\r\té🐘\u2028'), '{"type":"string","value":"a\\"\\\\\\u000a\\u000d\\u0009é🐘\u2028"}'),
        (typed("double", "-0.0"), '{"type":"double","value":"-0.0"}'),
        (typed("float", "NaN"), '{"type":"float","value":"NaN"}'),
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
    assert [text.decode() for text in envelopes(rows_of("stream", wide[1:]), "stream").to_pylist()] == wanted
    shown = pa.array([[NUMBER], [typed("int", "no")], [NUMBER]], STREAMS)
    visible = pa.array([True, False, True]).buffers()[1]
    hidden = pa.Array.from_buffers(STREAMS, 3, [visible, shown.buffers()[1]], null_count=1, children=[shown.values])
    assert [len(text) for text in envelopes(rows_of("stream", hidden), "stream").to_pylist()] == [39, 13, 39]
    structs = pa.StructArray.from_arrays(
        [pa.array(["int", "x"]), pa.array(["3", "4"])], ["type", "value"], mask=pa.array([False, True])
    )
    null_struct = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), structs)
    assert envelopes(rows_of("stream", null_struct), "stream").to_pylist() == [wanted[0].encode()]


# --- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "fact"),
    [
        (typed("int", "x"), "its value is not an int"),
        (typed("byte", "128"), "its value is not a byte"),
        (typed("long", "9223372036854775808"), "its value is not a long"),
        (typed("boolean", "yes"), "its value is not true or false"),
        (typed("char", "🐘"), "its value is not one character"),
        (typed("bytes", "a"), "its value is not base64"),
        (typed("double", "1,5"), "its value is not a double"),
        (typed("decimal", "1"), "its value has a type that JMS does not have"),
        (typed("decimal", None), "its value is not of its type"),
        (typed(None, "1"), "it has a value but no type"),
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
        envelopes(rows_of("map", twice), "map")


@pytest.mark.parametrize(
    ("name", "kind", "value", "fact"),
    [
        (b"n\xff", b"int", b"1", "its name is not UTF-8"),
        (b"n", b"string", b"\xff", "its value is not UTF-8"),
        (b"n", b"i\xff", b"1", "its value has a type that JMS does not have"),
    ],
)
def test_what_is_not_utf8_is_refused(name, kind, value, fact):
    def column(data):
        return pa.array([b"a", data], pa.binary()).view(pa.string())

    structs = pa.StructArray.from_arrays(
        [pa.array([b"string", kind], pa.binary()).view(pa.string()), column(value)], ["type", "value"]
    )
    array = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), column(name), structs)
    with pytest.raises(MessageFormatError, match=f"Row 6 .*map item ('n'|number 1): {fact}"):
        envelopes(rows_of("map", array), "map")


def test_what_is_too_large_as_json_is_refused(monkeypatch):
    monkeypatch.setattr(encode_json, "LARGEST_TEXT", 20)
    with pytest.raises(MessageTooLargeError, match=r"Row 6 .*body .*2 GB") as caught:
        maps([("a", typed("string", "\0"))], [("b", typed("string", "\0" * 3))])
    assert caught.value.__cause__.numbers.tolist() == [6]
    with pytest.raises(MessageTooLargeError, match="Row 5"):
        maps([("\0" * 9, NUMBER)])


# --- whatever it holds -------------------------------------------------------------------------------

texts = st.text(max_size=6) | st.text('\0\n\r"\\:{}[],é🐘', max_size=6)
values = st.none() | st.fixed_dictionaries(
    {"type": st.none() | st.sampled_from(ValueType) | texts, "value": st.none() | texts}
)
base64_texts = st.binary(max_size=9).map(lambda found: typed("bytes", base64.b64encode(found).decode()))


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
