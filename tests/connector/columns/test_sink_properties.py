"""Properties of the sink's rows: names, types and values."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from sink_rows import rows_of

from pyspark_jms.columns.rows import Rows
from pyspark_jms.columns.schema import PROPERTY_COLUMN
from pyspark_jms.columns.sink_properties import (
    check_names,
    distinct_names,
    places_of,
    properties_of,
    property_values,
    repeated_width,
    stated_types,
    typed_columns,
)
from pyspark_jms.errors import MessageFormatError
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.dialect import BrokerDialect

DIALECT = BrokerDialect(name="x", selector_dialect=None, browses=False, reserved_properties=frozenset({"bad"}))


def test_names_that_all_rows_have():
    names = distinct_names(properties_of(rows_of(properties=[[("a", "1"), ("b", "2")]] * 3)))
    assert (names.distinct, names.each_row, names.codes().tolist()) == ([b"a", b"b"], True, [0, 1] * 3)


@pytest.mark.parametrize(
    ("bounds", "texts", "width"),
    [([0, 2, 4], "abab", 2), ([0, 2, 4], "abba", 0), ([0, 1, 4], "aaaa", 0), ([0, 0, 0], "", 0), ([0, 3], "abc", 3)],
)
def test_the_width_of_rows_that_repeat(bounds, texts, width):
    assert repeated_width(np.array(bounds, np.int32), pa.array([*texts], pa.string()).view(pa.binary())) == width


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("bad", "its name is one that x acts on"),
        ("JMSType", "its name begins with JMS, which is reserved"),
        ("own", "it is a column of propertyColumns too"),
        ("JMS b", "its name begins with JMS"),
        ("JMSXGroupSeq", "its value is not an int"),
    ],
)
def test_refused_names(name, fact):
    properties = properties_of(rows_of(properties=[[("a", "1"), ("JMSXUserID", "u")], [(name, "x")]]))
    with pytest.raises(MessageFormatError, match=f"Row 11 .*property ('{name}'|number 1): {fact}"):
        check_names(properties, distinct_names(properties), DIALECT, {"own"})


def places(columns=None, **given):
    rows = rows_of(**given)
    return places_of(stated_types(rows), properties_of(rows), columns or {}).to_pylist()


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


def test_a_timestamp_is_a_long_of_milliseconds_and_a_decimal_its_text():
    columns = {
        PROPERTY_COLUMN + "at": pa.array([-1_000, None, 1_760_000_000_123_000], pa.timestamp("us", tz="Asia/Tokyo")),
        PROPERTY_COLUMN + "price": pa.array([Decimal("7.50"), Decimal("-0.01"), None], pa.decimal128(9, 2)),
        "JMSExpiration": pa.array([1, 2, 3], pa.timestamp("us", tz="UTC")),
    }
    rows = Rows(columns=columns, first=0, count=3)
    found = typed_columns(property_values(rows))
    assert {name: (column.kind, column.texts.to_pylist()) for name, column in found.items()} == {
        "at": (ValueType.LONG, [b"-1", None, b"1760000000123"]),
        "price": (ValueType.STRING, [b"7.50", b"-0.01", None]),
    }
    assert property_values(rows).columns["JMSExpiration"] is columns["JMSExpiration"]


def test_a_time_that_milliseconds_do_not_hold_is_refused():
    at = pa.array([1_000, 1_001], pa.timestamp("us", tz="UTC"))
    with pytest.raises(MessageFormatError, match=r"Row 6 of the task has in column at a time with a part of a milli"):
        property_values(Rows(columns={PROPERTY_COLUMN + "at": at}, first=5, count=2))


FOLDS = (
    ("America/New_York", 1793511000000),
    ("Europe/Berlin", 1792888200000),
    ("Australia/Lord_Howe", 1775315700000),
    ("GMT+02:00", 0),
    ("UTC+8", -1),
    ("PST", 1),
    ("Z", 2),
)
"""Zones that a session may have, with an hour that the zone has twice, or zones that only Java knows."""


@pytest.mark.parametrize(("zone", "moment"), FOLDS)
@pytest.mark.parametrize("unit", ["us", "ns", "ms"])
def test_a_timestamp_is_read_without_its_zone(zone, moment, unit):
    at = pa.array([moment * {"ms": 1, "us": 1_000, "ns": 1_000_000}[unit], None], pa.timestamp(unit, tz=zone))
    found = property_values(Rows(columns={PROPERTY_COLUMN + "at": at}, first=0, count=2))
    assert found.columns[PROPERTY_COLUMN + "at"].to_pylist() == [moment, None]
