import pyarrow as pa
import pytest
from amqp_messages import TRUE, entries_in, parts_of, string
from sink_rows import TEXT_MAP, rows_of

from pyspark_jms.amqp.columns.encode_application_properties import application_properties, uniform_entries
from pyspark_jms.amqp.dialects import ARTEMIS, CLASSIC, RABBITMQ
from pyspark_jms.columns.arrays import join_rows
from pyspark_jms.columns.sink_properties import distinct_names, properties_of, stated_types
from pyspark_jms.errors import MessageFormatError, SchemaError


def found(rows, dialect=ARTEMIS):
    """The entries of each row, and the values of its group's fields."""
    made = application_properties(rows, dialect)
    sections = map(parts_of, join_rows(made.section).to_pylist() if made.section else [])
    entries = [{key[2:].decode(): value for key, value in entries_in(section[0x74])} for section in sections]
    return entries, {field.title: join_rows(pieces).to_pylist() for field, pieces in made.groups.items()}


def test_no_properties_make_no_section():
    assert found(rows_of(text=["a"])) == ([], {})
    assert found(rows_of(properties=[[], None])) == ([], {})


def test_a_property_has_its_stated_type_or_is_a_string():
    rows = rows_of(
        properties=[[("a", "1"), ("b", "1")], [("b", None)], []],
        property_types=[[("a", "int")], [("b", "int")], None],
    )
    assert found(rows)[0] == [
        {"a": b"\x71\0\0\0\x01", "b": string("1")},
        {},
        {},
    ]


def test_types_may_have_another_order_than_properties():
    rows = rows_of(
        properties=[[("a", "1"), ("b", "true")]] * 2,
        property_types=[[("b", "boolean"), ("a", "byte")]] * 2,
    )
    assert found(rows)[0] == [{"a": b"\x51\x01", "b": TRUE}] * 2


def test_a_timestamp_stays_one_for_a_broker_whose_other_clients_have_it():
    rows = rows_of(
        properties=[[("t", "1000"), ("n", "1")], [("t", None)]],
        property_types=[[("n", "uint"), ("t", "timestamp")], [("t", "timestamp")]],
    )
    wide = b"\0\0\0\0\0\0\x03\xe8"
    number = b"\x81" + (1).to_bytes(8)
    assert found(rows, RABBITMQ)[0] == [{"t": b"\x83" + wide, "n": number}, {}]
    assert found(rows)[0] == [{"t": b"\x81" + wide, "n": number}, {}]
    alike = rows_of(properties=[[("t", "1000")]] * 2, property_types=[[("t", "timestamp")]] * 2)
    assert found(alike, RABBITMQ)[0] == [{"t": b"\x83" + wide}] * 2
    assert found(alike)[0] == [{"t": b"\x81" + wide}] * 2


def test_what_the_provider_sets_is_left_out():
    rows = rows_of(properties=[[("JMSXUserID", "u"), ("a", "1"), ("_AMQ_ORIG_QUEUE", "q")], [("JMSXState", "1")]])
    assert found(rows)[0] == [{"a": string("1")}, {}]
    rows = rows_of(properties=[[("JMS_AMQP_MA_x-opt-a", "v"), ("NATIVE_MESSAGE_ID", "ID:1"), ("a", "1")]])
    assert found(rows)[0] == [{"a": string("1")}]


def test_a_group_is_in_the_fields_of_its_own():
    rows = rows_of(properties=[[("JMSXGroupSeq", "-2"), ("JMSXGroupID", "g")], [("a", "1")], None])
    entries, groups = found(rows)
    assert entries == [{}, {"a": string("1")}, {}]
    assert groups == {
        "group-id": [b"\xa1\x01g", b"\x40", b"\x40"],
        "group-sequence": [b"\x70\xff\xff\xff\xfe", b"\x40", b"\x40"],
    }


def test_a_sequence_may_stand_without_a_group():
    assert found(rows_of(properties=[[("JMSXGroupSeq", "+3")]]))[1] == {"group-sequence": [b"\x70\0\0\0\x03"]}


def test_a_group_may_be_in_columns():
    rows = rows_of(["JMSXGroupID", "JMSXGroupSeq"], JMSXGroupID=["g", None], JMSXGroupSeq=pa.array([1, 2], pa.int64()))
    assert found(rows) == (
        [],
        {"group-id": [b"\xa1\x01g", b"\x40"], "group-sequence": [b"\x70\0\0\0\x01", b"\x70\0\0\0\x02"]},
    )


@pytest.mark.parametrize(
    ("columns", "fact"),
    [
        ({"JMSXGroupID": pa.array([1])}, "JMSXGroupID of propertyColumns is not a string"),
        ({"JMSXGroupSeq": pa.array([1.5])}, "JMSXGroupSeq of propertyColumns is not a number"),
        ({"JMSXUserID": pa.array(["u"])}, "JMSXUserID of propertyColumns is a property that the broker sets"),
        ({"_AMQ_X": pa.array(["u"])}, "_AMQ_X of propertyColumns has a prefix that artemis reserves"),
    ],
)
def test_columns_that_cannot_be_properties(columns, fact):
    with pytest.raises(SchemaError, match=fact):
        found(rows_of([*columns], **columns))


def test_a_sequence_beyond_an_int_is_refused():
    rows = rows_of(["JMSXGroupSeq"], JMSXGroupSeq=pa.array([1, 2**31]))
    with pytest.raises(MessageFormatError, match=r"Row 11 .*JMSXGroupSeq .*\bint\b"):
        found(rows)


def test_classic_reserves_what_its_scheduler_reads():
    rows = rows_of(properties=[[("AMQ_SCHEDULED_DELAY", "1")]])
    assert found(rows)[0] == [{"AMQ_SCHEDULED_DELAY": string("1")}]
    with pytest.raises(MessageFormatError, match=r"'AMQ_SCHEDULED_DELAY'.* classic"):
        found(rows, CLASSIC)


@pytest.mark.parametrize("twice", [[("a", "1"), ("a", "2")], [("b", "1"), ("a", "1"), ("a", "2")]])
def test_a_name_twice_is_refused(twice):
    for rows in (rows_of(properties=[twice]), rows_of(properties=[twice, [("b", "1")]])):
        with pytest.raises(MessageFormatError, match=r"Row 10 .*property 'a'"):
            found(rows)


def test_what_is_not_utf8_is_refused():
    bad = pa.array([b"\xff"]).view(pa.string())
    maps = pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["a"]), bad)
    with pytest.raises(MessageFormatError, match=r"property 'a'.*UTF-8"):
        found(rows_of(properties=maps.cast(TEXT_MAP) if maps.type != TEXT_MAP else maps))
    with pytest.raises(MessageFormatError, match=r"column a .*UTF-8"):
        found(rows_of(["a"], a=bad))


STRINGS = [[("a", "x"), ("bb", "")], [("a", "é"), ("bb", "y" * 40)]]
TYPED = [
    [("b", "true"), ("i", "-7"), ("t", ""), ("d", "0.5"), ("f", "1e39"), ("s", "1"), ("l", "8"), ("y", "-128")],
    [("b", "false"), ("i", "8"), ("t", "text"), ("d", "-1E-3"), ("f", "2"), ("s", "-2"), ("l", "-9"), ("y", "127")],
]
TYPES = [("i", "int"), ("b", "boolean"), ("d", "double"), ("f", "float"), ("s", "short"), ("l", "long"), ("y", "byte")]


def uniform(rows):
    properties = properties_of(rows)
    return uniform_entries(properties, distinct_names(properties), stated_types(rows))


def entries_of(rows):
    """What the plain reader finds in the entries of each row."""
    sections = join_rows(application_properties(rows, ARTEMIS).section).to_pylist()
    return [entries_in(parts_of(section)[0x74]) for section in sections]


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
        (TYPED, [TYPES] * 2),
        (TYPED, [TYPES[:2]] * 2),
    ],
    ids=["strings", "longest short string", "types", "some types"],
)
def test_rows_of_one_layout_are_encoded_as_rows_of_many(properties, types):
    found, wanted = both_ways(properties, types)
    assert found == wanted


def test_one_long_string_makes_all_sizes_four_bytes():
    found = entries_of(rows_of(properties=[[("a", "x"), ("b", "y" * 256)]] * 2))
    assert found == [[(string("a"), b"\xb1\0\0\0\x01x"), (string("b"), string("y" * 256))]] * 2


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
        ([[("a", "x"), ("b", None)], [("a", None), ("b", "y")]], None),
        ([[("a", None)]], None),
        ([[("a", "True")]], [[("a", "boolean")]]),
        ([[("a", "NaN")]], [[("a", "double")]]),
        ([[("a", "+1")]], [[("a", "int")]]),
    ],
)
def test_what_is_left_to_the_general_way(properties, types):
    rows = rows_of(properties=properties, **({"property_types": types} if types else {}))
    assert uniform(rows) is None
    given = [[name.encode() for name, value in row if value is not None] for row in properties]
    found = entries_of(rows) if any(given) else [[] for _ in given]
    assert [[name[2:] for name, _ in entries] for entries in found] == given


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
