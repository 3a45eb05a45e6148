import numpy as np
import pyarrow as pa
import pytest
from sink_rows import rows_of

from pyspark_jms.columns.property_entries import NameRules, check_names, distinct_names, properties_of, repeated_width
from pyspark_jms.errors import MessageFormatError

RULES = NameRules(left_out="JMSXUserID".__eq__, problem=lambda name: "is bad" if name == "bad" else None)


def test_properties_of_all_rows_stand_one_after_the_other():
    properties = properties_of(rows_of(properties=[[("a", "1")], None, [("b", None), ("a", "2")]]))
    assert properties.entries.bounds.tolist() == [0, 1, 1, 3]
    assert properties.names.to_pylist() == [b"a", b"b", b"a"]
    assert properties.values.to_pylist() == [b"1", None, b"2"]


def test_no_properties():
    assert properties_of(rows_of(text=["a"])) is None
    assert properties_of(rows_of(properties=[[], None])) is None


def test_names_that_all_rows_have():
    names = distinct_names(properties_of(rows_of(properties=[[("a", "1"), ("b", "2")]] * 3)))
    assert (names.distinct, names.each_row, names.codes().tolist()) == ([b"a", b"b"], True, [0, 1] * 3)


@pytest.mark.parametrize(
    ("bounds", "texts", "width"),
    [([0, 2, 4], "abab", 2), ([0, 2, 4], "abba", 0), ([0, 1, 4], "aaaa", 0), ([0, 0, 0], "", 0), ([0, 3], "abc", 3)],
)
def test_the_width_of_rows_that_repeat(bounds, texts, width):
    assert repeated_width(np.array(bounds, np.int32), pa.array([*texts], pa.string()).view(pa.binary())) == width


@pytest.mark.parametrize("second", [[("b", "1"), ("a", "1")], [("a", "1")], [("aa", "1"), ("c", "")]])
def test_names_that_differ(second):
    properties = properties_of(rows_of(properties=[[("a", "1"), ("b", "2")], second]))
    names = distinct_names(properties)
    assert not names.each_row
    assert np.array(names.distinct)[names.codes()].tolist() == properties.names.to_pylist()


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("bad", "its name is bad"),
        ("JMSType", "its name begins with JMS, which is reserved"),
        ("own", "it is a column of propertyColumns too"),
        ("JMSXGroupSeq", "its value is not an int"),
    ],
)
def test_refused_names(name, fact):
    properties = properties_of(rows_of(properties=[[("a", "1"), ("JMSXUserID", "u")], [(name, "x")]]))
    with pytest.raises(MessageFormatError, match=f"Row 11 .*property '{name}': {fact}"):
        check_names(properties, distinct_names(properties), RULES, {"own"})


def test_names_that_may_be_sent():
    properties = properties_of(rows_of(properties=[[("a", "1"), ("JMSXUserID", "u"), ("JMSXGroupSeq", "7")]]))
    check_names(properties, distinct_names(properties), RULES)
