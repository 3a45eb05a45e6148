import plain_amqp
import pyarrow as pa
import pytest
from sink_rows import TEXT_MAP, rows_of

from pyspark_jms.amqp.columns.encode_application_properties import application_properties
from pyspark_jms.amqp.columns.encode_uniform import uniform_entries
from pyspark_jms.amqp.dialects import ARTEMIS
from pyspark_jms.columns.sink_properties import distinct_names, properties_of, stated_types
from pyspark_jms.columns.strings import join_rows
from pyspark_jms.errors import MessageFormatError

STRINGS = [[("a", "x"), ("bb", "")], [("a", "é"), ("bb", "y" * 40)]]
TYPED = [
    [("b", "true"), ("i", "-7"), ("t", None), ("d", "0.5"), ("f", "1e39"), ("s", "1"), ("l", "8"), ("y", "-128")],
    [("b", "false"), ("i", "8"), ("t", "text"), ("d", "-1E-3"), ("f", "2"), ("s", "-2"), ("l", "-9"), ("y", "127")],
]
TYPES = [("i", "int"), ("b", "boolean"), ("d", "double"), ("f", "float"), ("s", "short"), ("l", "long"), ("y", "byte")]


def uniform(rows):
    properties = properties_of(rows)
    return uniform_entries(properties, distinct_names(properties), stated_types(rows))


def entries_of(rows):
    """What the plain reader finds in the entries of each row."""
    sections = join_rows(application_properties(rows, ARTEMIS).section).to_pylist()
    return [plain_amqp.pairs(plain_amqp.sections(section)[0][1]) for section in sections]


def both_ways(properties, types=None):
    """The entries of these rows, and those of the same rows beside a row of another layout."""
    columns = {"properties": properties} | ({"property_types": types} if types else {})
    other = {"properties": [[("other", "1")]]} | ({"property_types": [None]} if types else {})
    assert uniform(rows_of(**columns)) is not None
    mixed = rows_of(**{name: [*values, *other[name]] for name, values in columns.items()})
    assert uniform(mixed) is None
    return entries_of(rows_of(**columns)), entries_of(mixed)[:-1]


@pytest.mark.parametrize(
    ("properties", "types"),
    [
        (STRINGS, None),
        ([*STRINGS, [("a", "x" * 255), ("bb", "z")]], None),
        ([*STRINGS, [("a", "x"), ("bb", None)]], None),
        (TYPED, [TYPES] * 2),
        (TYPED, [TYPES[:2]] * 2),
    ],
    ids=["strings", "longest short string", "null string", "types", "some types"],
)
def test_rows_of_one_layout_are_encoded_as_rows_of_many(properties, types):
    found, wanted = both_ways(properties, types)
    assert found == wanted


def test_one_long_string_makes_all_sizes_four_bytes():
    found = entries_of(rows_of(properties=[[("a", "x"), ("b", "y" * 256)]] * 2))
    assert found == [[((0xA1, b"a"), (0xB1, b"x")), ((0xA1, b"b"), (0xB1, b"y" * 256))]] * 2


def test_an_entry_is_two_pieces_of_one_join():
    (piece,) = uniform(rows_of(properties=STRINGS))
    second = b"\xa1\x01a\xa1\x02" + "é".encode() + b"\xa1\x02bb\xa1\x28" + b"y" * 40
    assert piece.to_pylist() == [b"\xa1\x01a\xa1\x01x\xa1\x02bb\xa1\x00", second]


@pytest.mark.parametrize(
    ("properties", "types"),
    [
        ([[("a", "1")], [("b", "1")]], None),
        ([[("a", "1")]] * 2, [[("a", "int")], None]),
        ([[("a", "1")]] * 2, [[("a", "int")], [("a", "long")]]),
        ([[("a", "1"), ("b", "2")]] * 2, [[("a", "int")], [("b", "int")]]),
        ([[("a", "1")], [("a", None)]], [[("a", "int")]] * 2),
        ([[("a", "True")]], [[("a", "boolean")]]),
        ([[("a", "NaN")]], [[("a", "double")]]),
        ([[("a", "+1")]], [[("a", "int")]]),
    ],
)
def test_what_is_left_to_the_general_way(properties, types):
    rows = rows_of(properties=properties, **({"property_types": types} if types else {}))
    assert uniform(rows) is None
    assert [len(entries) for entries in entries_of(rows)] == [len(row) for row in properties]


@pytest.mark.parametrize(
    ("types", "value", "fact"),
    [
        ([("a", "int")], "2147483648", "its value is not an int"),
        ([("a", "int")], "-", "its value is not an int"),
        ([("a", "double")], "1e", "its value is not a double"),
        ([("a", "boolean")], "yes", "its value is not true or false"),
        ([("a", "bytes")], "x", "JMS has no such type"),
        ([("c", "int")], "1", "the row has no such property"),
    ],
)
def test_what_is_refused(types, value, fact):
    rows = rows_of(properties=[[("a", value)]] * 2, property_types=[types] * 2)
    with pytest.raises(MessageFormatError, match=f"Row 10 .*({fact})"):
        application_properties(rows, ARTEMIS)


def test_values_of_a_slice():
    cut = pa.array([[("a", "no"), ("bb", "no")], *STRINGS], TEXT_MAP)[1:]
    assert entries_of(rows_of(properties=cut)) == entries_of(rows_of(properties=STRINGS))
