import numpy as np
import pyarrow as pa
import pytest

from pyspark_jms.columns.row_parts import block_of, check_sizes, parts_of
from pyspark_jms.columns.rows import Rows, WrongRows
from pyspark_jms.errors import MessageTooLargeError


def parts(*texts, part_bytes=2000, max_row_bytes=10_000, numbers=None):
    batch = pa.record_batch({"text": pa.array(texts, pa.string())})
    return list(
        parts_of(
            batch,
            property_columns=(),
            first_row=5,
            numbers=numbers,
            part_bytes=part_bytes,
            max_row_bytes=max_row_bytes,
        )
    )


def test_parts_are_cut_by_their_bytes():
    found = parts("a" * 1000, "b", "c" * 5000, "d", "e")
    assert [(part.first, part.count) for part in found] == [(5, 1), (6, 1), (7, 1), (8, 2)]
    assert [text for part in found for text in part.columns["text"].to_pylist()] == [
        "a" * 1000,
        "b",
        "c" * 5000,
        "d",
        "e",
    ]


def test_rows_keep_their_numbers():
    (part,) = parts("a", "b", numbers=np.array([3, 9]))
    assert part.label(1) == "Row 9 of the task"


def test_no_rows():
    assert parts() == []


def test_a_row_that_is_too_large_for_arrow_is_refused():
    with pytest.raises(MessageTooLargeError, match=r"Row 6 .*10001 bytes"):
        parts("a" * 10_000, "b" * 10_001)


def test_all_rows_that_are_too_large_are_named():
    rows = Rows(columns={}, first=5, count=3)
    check_sizes(rows, np.array([1, 2, 3]), 3)
    with pytest.raises(MessageTooLargeError, match=r"Row 6 .*\b2 bytes.*\b1\b") as caught:
        check_sizes(rows, np.array([1, 2, 3]), 1)
    assert isinstance(caught.value.__cause__, WrongRows)
    assert caught.value.__cause__.numbers.tolist() == [6, 7]


def test_a_block_has_the_bytes_and_their_ends():
    rows = Rows(columns={}, first=0, count=2)
    block = block_of(rows, pa.array([b"x", b"ab", b"cde"], pa.binary())[1:], 3)
    assert (bytes(block.data), list(block.ends), len(block.heads)) == (b"abcde", [2, 5], 0)
    with pytest.raises(MessageTooLargeError, match="Row 1"):
        block_of(rows, pa.array([b"ab", b"cde"], pa.binary()), 2)
