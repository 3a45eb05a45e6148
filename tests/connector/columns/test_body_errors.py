"""Which rows could not be mapped, and why."""

import pyarrow as pa

from pyspark_jms.columns.body_errors import body_errors


def rows(*errors):
    return pa.record_batch({"body_error": pa.array(errors, pa.string())})


def test_only_rows_with_an_error_are_named():
    assert body_errors(rows(None, "a", None, "")) == {1: "a", 3: ""}


def test_no_row_is_bad():
    assert body_errors(rows(None, None)) == {}


def test_row_numbers_are_those_of_a_slice():
    assert body_errors(rows(None, "a", None, "b").slice(1)) == {0: "a", 2: "b"}
