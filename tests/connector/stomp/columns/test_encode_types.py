import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.sink_properties import properties_of, typed_columns
from pyspark_jms.columns.sink_schema import PROPERTY_COLUMN
from pyspark_jms.columns.strings import join_rows
from pyspark_jms.errors import MessageFormatError
from pyspark_jms.jms.model import ValueType
from pyspark_jms.jms.rules import PROPERTY_TYPES, property_value_problem
from pyspark_jms.stomp.columns.encode_types import types_line
from pyspark_jms.stomp.dialects import ARTEMIS

TEXT_MAP = pa.map_(pa.string(), pa.string())


def types_of(*rows, **columns):
    """The types each row says, unescaped; rows are (properties, types)."""
    arrays = {
        "properties": pa.array([None, *[properties for properties, _ in rows]], TEXT_MAP)[1:],
        "property_types": pa.array([None, *[types for _, types in rows]], TEXT_MAP)[1:],
    }
    arrays |= {PROPERTY_COLUMN + name: array for name, array in columns.items()}
    found = Rows(columns=arrays, first=5, count=len(rows))
    pieces = types_line(found, properties_of(found), typed_columns(found), ARTEMIS)
    lines = join_rows([*pieces, pa.array([b""] * len(rows), pa.binary())]).to_pylist()
    return [line.decode().removeprefix("\nspark_jms_types:").replace("\\c", ":") for line in lines]


A, B = ("a", "1"), ("b", "2.5")


@pytest.mark.parametrize(
    ("properties", "types", "reason"),
    [
        ([A, B], [("a", "int"), ("b", "double")], '{"a":"int","b":"double"}'),
        ([A, B], [("b", "double"), ("a", "byte")], '{"b":"double","a":"byte"}'),
        ([A, B], [("b", "string")], '{"b":"string"}'),
        ([A, B], [], ""),
        ([A, B], None, ""),
        (None, None, ""),
        (None, [], ""),
        ([A, ("b", None)], [("b", "double"), ("a", "long")], '{"a":"long"}'),
        ([("b", None)], [("b", "double")], ""),
        ([A, B], [("a", None), ("b", "float")], '{"b":"float"}'),
        ([A], [("a", None)], ""),
        ([A, ("JMSXUserID", "me")], [("JMSXUserID", "string"), ("a", "short")], '{"a":"short"}'),
        ([A, ("JMS_AMQP_MA_x-a", "v")], [("JMS_AMQP_MA_x-a", "string"), ("a", "short")], '{"a":"short"}'),
        ([A, ("_AMQ_ORIG_MESSAGE_ID", "7")], [("_AMQ_ORIG_MESSAGE_ID", "long"), ("a", "int")], '{"a":"int"}'),
        ([("JMSXGroupSeq", "3")], [("JMSXGroupSeq", "int")], '{"JMSXGroupSeq":"int"}'),
        ([("é\0$", "true")], [("é\0$", "boolean")], '{"é\\\\u0000$":"boolean"}'),
    ],
)
def test_the_types_of_the_row_s_properties_in_its_order(properties, types, reason):
    assert types_of((properties, types)) == [reason]
    beside = ([A, B], [("a", "int")])
    assert types_of(beside, (properties, types), beside) == ['{"a":"int"}', reason, '{"a":"int"}']
    assert types_of((properties, types), (properties, types), ([], [])) == [reason, reason, ""]


def test_rows_without_types_have_no_line():
    rows = Rows(columns={"properties": pa.array([[A]], TEXT_MAP)}, first=0, count=1)
    assert types_line(rows, properties_of(rows), {}, ARTEMIS) == []


@pytest.mark.parametrize(
    ("row", "fact"),
    [
        (([A], [("b", "int")]), "a type for the property 'b': the row has no such property"),
        ((None, [("b", "int")]), "a type for the property 'b': the row has no such property"),
        (([A], [("a", "decimal")]), "a type for the property 'a': JMS has no such type"),
        (([A], [("a", "bytes")]), "a type for the property 'a': JMS has no such type"),
        (([A], [("a", "INT")]), "a type for the property 'a': JMS has no such type"),
        (([("a", "x")], [("a", "int")]), "a property 'a': its value is not an int"),
        (([("a", "1.0")], [("a", "long")]), "a property 'a': its value is not a long"),
        (([("a", "yes")], [("a", "boolean")]), "a property 'a': its value is not true or false"),
        (([("a", "")], [("a", "double")]), "a property 'a': its value is not a double"),
        (([A, ("x", "y")], [("x", "float")]), "a property 'x': its value is not a float"),
    ],
)
def test_a_type_that_does_not_fit_is_refused(row, fact):
    fine = ([A], [("a", "int")])
    with pytest.raises(MessageFormatError, match=f"Row 6 .*{fact}") as caught:
        types_of(fine, row, fine, row)
    assert caught.value.__cause__.numbers.tolist() == [6, 8]


def test_typed_columns_say_their_types_after_the_others():
    price, count = pa.array([1.5, None, 2.5]), pa.array([1, 2, None], pa.int32())
    rows = [([A], [("a", "int")]), ([A], None), (None, None)]
    assert types_of(*rows, price=price, count=count) == [
        '{"a":"int","price":"double","count":"int"}',
        '{"count":"int"}',
        '{"price":"double"}',
    ]
    assert types_of(*[(None, None)] * 3, price=price) == ['{"price":"double"}', "", '{"price":"double"}']
    full = pa.array([1.5, 2.5, 3.5])
    assert types_of(*[([A], None)] * 3, price=full, other=full) == ['{"price":"double","other":"double"}'] * 3


def test_a_type_for_a_column_must_be_the_column_s():
    price = pa.array([1.5, None])
    assert types_of((None, [("price", "double")]), ([A], [("a", "int"), ("price", "double")]), price=price) == [
        '{"price":"double"}',
        '{"a":"int"}',
    ]
    with pytest.raises(MessageFormatError, match=r"Row 6 .*'price': .*double"):
        types_of(([A], None), ([A], [("price", "int")]), price=price)


names = st.lists(st.sampled_from("abcdef"), unique=True, max_size=4)


@given(st.lists(st.tuples(names, names), min_size=1, max_size=4), st.data())
def test_each_type_is_found_beside_its_own_property(drawn, data):
    """Whatever the order of properties and types, and whichever rows have them."""
    texts = st.sampled_from(["1", "true", "1.5", "x", "300", None])
    kinds = st.sampled_from(sorted(PROPERTY_TYPES))
    rows = [
        ([(name, data.draw(texts)) for name in there], [(name, data.draw(kinds)) for name in typed])
        for there, typed in drawn
    ]
    wrong = [
        any(name not in dict(there) or property_value_problem(kind, dict(there)[name]) for name, kind in typed)
        for there, typed in rows
    ]
    if any(wrong):
        with pytest.raises(MessageFormatError, match="Row") as caught:
            types_of(*rows)
        assert set(caught.value.__cause__.numbers - 5) <= set(np.flatnonzero(wrong))
        return
    pairs = [[f'"{name}":"{kind}"' for name, kind in typed if dict(there)[name] is not None] for there, typed in rows]
    assert types_of(*rows) == ["{" + ",".join(reason) + "}" if reason else "" for reason in pairs]


def test_every_type_of_a_property_is_known():
    assert set(ValueType) >= PROPERTY_TYPES
    values = dict.fromkeys(PROPERTY_TYPES, "1") | {"boolean": "true"}
    for kind, value in values.items():
        assert types_of(([("a", value)], [("a", kind)])) == [f'{{"a":"{kind}"}}']
