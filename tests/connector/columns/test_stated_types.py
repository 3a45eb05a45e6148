import pytest
from sink_rows import rows_of

from pyspark_jms.columns.property_entries import properties_of
from pyspark_jms.columns.stated_types import places_of, stated_types
from pyspark_jms.errors import MessageFormatError
from pyspark_jms.jms.model import ValueType


def places(columns=None, **given):
    rows = rows_of(**given)
    return places_of(stated_types(rows), properties_of(rows), columns or {}).to_pylist()


def test_no_types():
    assert stated_types(rows_of(text=["a"])) is None
    assert stated_types(rows_of(property_types=[[("a", None)], None])) is None


def test_types_in_the_order_of_the_properties():
    properties = [[("a", "1"), ("b", "x")], [("c", "true")]]
    types = [[("a", "int"), ("b", "string")], [("c", "boolean")]]
    assert places(properties=properties, property_types=types) == [0, 1, 2]


def test_types_in_any_order_and_of_some_properties():
    properties = [[("a", "1"), ("b", "x")], [("b", "2"), ("a", "3")]]
    types = [[("b", "string")], [("a", "int"), ("b", "long")]]
    assert places(properties=properties, property_types=types) == [1, 3, 2]


def test_types_that_only_amqp_has_are_those_that_hold_their_values():
    """So rows can be written as they were read over AMQP."""
    words = {"uint": "7", "uuid": "00000000-0000-0000-0000-000000000007", "list": None, "int": "1", "decimal64": "1.5"}
    given = {"properties": [list(words.items())], "property_types": [[(word, word) for word in words]]}
    assert places(**given) == [0, 1, 2, 3, 4]
    assert stated_types(rows_of(**given)).types.to_pylist() == [b"long", b"string", b"string", b"int", b"string"]
    with pytest.raises(MessageFormatError, match="a property 'n': its value"):
        places(properties=[[("n", "x")]], property_types=[[("n", "uint")]])


def test_a_type_of_a_typed_column_has_no_place():
    columns = {"own": ValueType.INT}
    assert places(columns, properties=[[("a", "1")]], property_types=[[("own", "int"), ("a", "byte")]]) == [None, 0]
    assert places(columns, property_types=[[("own", "int")]]) == [None]


@pytest.mark.parametrize(
    ("types", "fact"),
    [
        ([("a", "bytes")], "a type for the property 'a': JMS has no such type of properties"),
        ([("b", "int")], "a type for the property 'b': the row has no such property"),
        ([("own", "long")], "a type for the property 'own': the column of that name is an int"),
        ([("a", "boolean")], "a property 'a': its value is not true or false"),
    ],
)
def test_wrong_types_are_refused(types, fact):
    properties = [[("a", "1"), ("b", "2")], [("a", "1")]]
    with pytest.raises(MessageFormatError, match=f"Row 11 .*{fact}"):
        places({"own": ValueType.INT}, properties=properties, property_types=[None, types])
