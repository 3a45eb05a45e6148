import pyarrow as pa
import pytest
from sink_rows import rows_of

from pyspark_jms.columns.elements import check_names, check_values, elements_of
from pyspark_jms.columns.schema import TYPED_VALUE
from pyspark_jms.errors import MessageFormatError

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


@pytest.mark.parametrize(
    ("items", "fact"),
    [
        ([("", value("int", "1"))], "map item number 1: its name is empty"),
        ([("a", value("int", "1")), ("a", None)], "map item 'a': an earlier item has the same name"),
        ([("a", value("int", "x"))], "map item 'a': its value is not an int"),
        ([("a", value("tuple", "x"))], "map item 'a': its value has a type that JMS does not have"),
        ([("a", value(None, "x"))], "map item 'a': it has a value but no type"),
    ],
)
def test_the_row_of_a_wrong_item_is_refused(items, fact):
    with pytest.raises(MessageFormatError, match=f"Row 11 .*{fact}"):
        checked(map=pa.array([[("ok", value("int", "1"))], items], MAP))


def test_what_is_not_utf8_is_refused():
    bad = pa.array([b"\xff"]).view(pa.string())
    values = pa.StructArray.from_arrays([pa.array(["string"]), bad], fields=list(TYPED_VALUE))
    offsets = pa.array([0, 1], pa.int32())
    with pytest.raises(MessageFormatError, match=r"stream element 0: .*UTF-8"):
        checked(stream=pa.ListArray.from_arrays(offsets, values))
    good = pa.StructArray.from_arrays([pa.array(["string"]), pa.array(["a"])], fields=list(TYPED_VALUE))
    with pytest.raises(MessageFormatError, match=r"name .*UTF-8"):
        checked(map=pa.MapArray.from_arrays(offsets, bad, good))
