"""Which rows could not be mapped, and why."""

import pyarrow as pa

from pyspark_jms.columns.body_errors import body_errors
from pyspark_jms.columns.read_columns import read_columns


def rows(*errors):
    return pa.record_batch({"body_error": pa.array(errors, pa.string())})


def test_only_rows_with_an_error_are_named():
    assert body_errors(rows(None, "a", None, "")) == {1: "a", 3: ""}


def test_no_row_is_bad():
    assert body_errors(rows(None, None)) == {}


def test_row_numbers_are_those_of_a_slice():
    assert body_errors(rows(None, "a", None, "b").slice(1)) == {0: "a", 2: "b"}


def test_a_property_that_is_not_of_its_columns_type_is_an_error_too():
    kind = pa.map_(pa.string(), pa.string())
    texts = {"properties": pa.array([[("n", "x")], [("n", "1")]], kind), "property_types": pa.nulls(2, kind)}
    bad = pa.record_batch({"body_error": pa.nulls(2, pa.string()), **texts})
    columns = read_columns([pa.field("n", pa.int32())], ["int"])
    assert body_errors(bad, columns) == {0: "property 'n' is not an int"}
