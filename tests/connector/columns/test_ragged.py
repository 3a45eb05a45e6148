import numpy as np
import pyarrow as pa
import pytest

from pyspark_jms.columns.ragged import (
    binary_array,
    bytes_of,
    first_not_utf8,
    first_true,
    first_with_nul,
    is_ascii_text,
    join_rows,
    mask_of,
    offsets_of,
    repeated,
    slices_of,
    to_binary,
    with_nulls_of,
)

VALUES = [b"", b"a:b", None, b"\\", b"\r\n", b"plain", None, b"::", "é:🐘".encode(), b"\0\t"]
TYPES = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]


def binary(values):
    return pa.array(values, pa.binary())


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("start", [0, 1, 3])
def test_to_binary_keeps_every_entry(kind, start):
    array = binary(VALUES).cast(kind)[start:]
    assert to_binary(array).type == pa.binary()
    assert to_binary(array).to_pylist() == VALUES[start:]


@pytest.mark.parametrize("kind", TYPES)
def test_offsets_and_bytes_are_those_of_a_slice(kind):
    array = binary([b"ab", b"c", b"def"]).cast(kind)[1:]
    assert list(offsets_of(array)) == [2, 3, 6]
    assert bytes(bytes_of(to_binary(array))) == b"cdef"


@pytest.mark.parametrize("array", [pa.array([], pa.binary()), binary([]), binary([b"a"])[1:], pa.nulls(0, pa.binary())])
def test_an_array_without_entries_has_one_offset_and_no_bytes(array):
    assert len(offsets_of(array)) == 1
    assert len(bytes_of(array)) == 0


BROKEN = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"a\x80", b"\xf8\x88\x80\x80\x80"]


@pytest.mark.parametrize("wrong", BROKEN)
def test_finds_what_is_not_utf8(wrong):
    array = binary([b"skipped", "é".encode(), None, wrong, wrong])[1:]
    assert first_not_utf8(array) == 2


def test_utf8_cut_by_an_entry_is_not_utf8():
    assert first_not_utf8(binary([b"\xc3", b"\xa9"])) == 0


@pytest.mark.parametrize("values", [[], [None], [b""], [b"a", None], ["é🐘\0".encode()]])
def test_utf8_is_utf8(values):
    assert first_not_utf8(binary(values)) is None


def test_finds_the_first_nul():
    array = binary([b"a\0", b"b", None, b"\0", b"\0", b"c"])
    assert first_with_nul(array) == 0
    assert first_with_nul(array[1:]) == 2
    assert first_with_nul(array[5:]) is None
    assert first_with_nul(array[:0]) is None


@pytest.mark.parametrize(
    ("values", "ascii_text"),
    [([], True), ([b""], True), ([b"a\x7f\x01", None], True), ([b"a", b"\0"], False), ([b"a\x80"], False)],
)
def test_ascii_text_has_neither_nul_nor_high_bytes(values, ascii_text):
    assert is_ascii_text(binary(values)) is ascii_text


def test_masks_count_null_as_false():
    assert mask_of(pa.array([True, None, False])).tolist() == [True, False, False]
    assert first_true(mask_of(pa.array([None, False, True]))) == 2
    assert first_true(mask_of(pa.array([None, False]))) is None


def test_slices_group_entries_and_nulls_add_nothing():
    array = binary([b"a", None, b"bc", b"d"])
    assert slices_of(array, offsets_of(binary([b"xx", b"", b"yy"]))).to_pylist() == [b"a", b"", b"bcd"]
    assert slices_of(pa.nulls(2, pa.binary()), offsets_of(binary([b"xx"]))).to_pylist() == [b""]


def test_an_array_of_offsets_and_bytes():
    result = binary_array(np.array([0, 2, 2, 3]), np.frombuffer(b"abc", np.uint8))
    result.validate(full=True)
    assert result.to_pylist() == [b"ab", b"", b"c"]


@pytest.mark.parametrize("start", [0, 1, 9])
def test_new_bytes_keep_the_nulls_of_any_slice(start):
    array = binary([b"x", None, b"y"] * 4)[start:]
    result = with_nulls_of(array, np.arange(len(array) + 1, dtype=np.int32), pa.py_buffer(b"a" * len(array)))
    result.validate(full=True)
    assert result.to_pylist() == [value and b"a" for value in array.to_pylist()]


def test_repeats_a_slice():
    array = binary([b"skipped", b"a", b"", b"bc"])[1:]
    result = repeated(array, 3)
    result.validate(full=True)
    assert result.to_pylist() == [b"a", b"", b"bc"] * 3


def test_joins_constants_and_columns():
    left, right = binary([b"a", b"b"]), binary([b"x", None])
    assert join_rows([b"<", b"<", left, b"-", right, b">"]).to_pylist() == [b"<<a-x>", None]
    assert join_rows([left]).to_pylist() == [b"a", b"b"]
