"""Arrow arrays by offsets and bytes: what is taken, checked, copied and joined; and batches, joined."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.columns.arrays import (
    MAX_BYTES,
    Pieces,
    all_begin_with,
    binary_array,
    bytes_of,
    contents,
    first_not_utf8,
    first_true,
    first_with_nul,
    is_ascii_text,
    is_first,
    is_utf8,
    join_rows,
    mask_of,
    merged,
    not_utf8,
    offsets_of,
    repeated,
    require_offsets,
    slices_of,
    stacked,
    strings_at,
    tiled,
    to_binary,
    with_nulls_of,
)
from pyspark_jms.errors import IllegalStateError

BUFFER = pa.py_buffer(b"one,two,,four")


def ints(*values):
    return np.array(values, np.int64)


def test_pieces_are_picked_by_number_in_any_order():
    pieces = Pieces(BUFFER, ints(0, 4, 8, 9), ints(3, 7, 8, 13))
    assert pieces.take(ints(3, 0, -1, 2, 0)).to_pylist() == ["four", "one", None, "", "one"]


@pytest.mark.parametrize(
    ("texts", "same"),
    [
        (["four", "four", "four"], True),
        (["four"], True),
        (["", ""], True),
        (["x" * 32] * 3, True),
        (["x" * 33] * 3, False),  # too long to be looked at
        (["four", "five", "four"], False),
        (["eight by", "eight bz", "eight by"], False),
        (["more than eight", "more than eighT", "more than eight"], False),
        (["four", "four", "fou"], False),
        (["four", "fourth", "four"], False),
        (["", "a", ""], False),
    ],
)
def test_pieces_that_are_one_and_the_same(texts, same):
    pieces = Pieces(pa.py_buffer("".join(texts).encode()), *bounds(texts))
    assert pieces.all_same(np.arange(len(texts))) is same
    assert pieces.all_same(np.array([0, -1])) is False
    assert pieces.all_same(ints()) is False


def test_a_text_is_found_wherever_it_stands():
    text = b"some text of 26 characters"
    data = np.frombuffer(b"-" + text + b"-" + text, np.uint8)
    at = ints(28, 1)
    for size in range(len(text) + 1):
        assert all_begin_with(text[:size], data, at)
        assert not all_begin_with(text[:size] + b"!", data, at)
        assert not all_begin_with(text[:size] + b"!", data, ints(1))
        assert size == 0 or not all_begin_with(text[:size], data, ints(28, 0))
    assert not all_begin_with(text, data, ints(29))


def test_cut_leaves_out_what_is_not_kept():
    column = strings_at(BUFFER, ints(0, 4), ints(3, 7), np.array([False, True]))
    column.validate(full=True)
    assert column.to_pylist() == [None, "two"]


def test_pieces_may_stand_in_any_order_in_the_buffer():
    assert strings_at(BUFFER, ints(9, 0), ints(13, 3)).to_pylist() == ["four", "one"]


LONG = [b"a" * 300, b"", b"c" * 1000, b"d"]


@pytest.mark.parametrize("keep", [None, [True] * 4, [True, False, True, False], [False, True, False, True]])
@pytest.mark.parametrize("gap", [0, 1, 2_000])
def test_long_pieces(gap, keep):
    """They are copied in another way than short ones."""
    buffer = pa.py_buffer(b"".join(b"-" * gap + text for text in LONG))
    ends = np.cumsum([gap + len(text) for text in LONG])
    column = strings_at(buffer, ends - [len(text) for text in LONG], ends, None if keep is None else np.array(keep))
    column.validate(full=True)
    kept = keep or [True] * len(LONG)
    assert column.to_pylist() == [text.decode() if wanted else None for text, wanted in zip(LONG, kept, strict=True)]


def test_long_pieces_in_any_order_and_one_inside_the_other():
    buffer = pa.py_buffer(b"".join(LONG))
    column = strings_at(buffer, ints(300, 0, 0, 0), ints(1300, 300, 1300, 1301))
    column.validate(full=True)
    whole = "".join(text.decode() for text in LONG)
    assert column.to_pylist() == [whole[300:1300], whole[:300], whole[:1300], whole]


@pytest.mark.parametrize(
    ("starts", "ends"),
    [
        (ints(-1), ints(3)),
        (ints(0), ints(14)),
        (ints(5), ints(4)),
        (ints(0, 14), ints(3, 14)),
        (ints(0, 1 << 40), ints(3, 1 << 40)),
        (ints(0, -(1 << 32)), ints(3, 3)),
    ],
)
def test_no_piece_outside_the_buffer(starts, ends):
    with pytest.raises(IllegalStateError, match="outside"):
        Pieces(BUFFER, starts, ends)


def test_offsets_are_32_bits_wide():
    require_offsets(MAX_BYTES)
    with pytest.raises(IllegalStateError, match=r"2,147,483,648 bytes .* partitionBytes"):
        require_offsets(MAX_BYTES + 1)


@pytest.mark.parametrize("values", [[], ["", ""], ["a", "", "bc"]])
def test_contents_are_the_bytes_and_where_each_value_begins(values):
    data, limits = contents(strings_at(pa.py_buffer("".join(values).encode()), *bounds(values)))
    whole = bytes(data)
    assert [whole[a:b].decode() for a, b in pairwise(limits)] == values


def bounds(values):
    ends = np.cumsum([len(value) for value in values], dtype=np.int64)
    return ends - [len(value) for value in values], ends


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], True),
        ([b"plain", b""], True),
        (["世界".encode(), b"a"], True),
        ([b"a", b"\xff"], False),
        (["世".encode()[:2], "世".encode()[2:]], False),
    ],
)
def test_is_utf8_looks_at_every_value_alone(values, expected):
    assert is_utf8(strings_at(pa.py_buffer(b"".join(values)), *bounds(values))) is expected


@pytest.mark.parametrize(("values", "expected"), [([None], True), ([None, b"\xff"], False), ([None, b"a"], True)])
def test_is_utf8_of_a_column_with_nulls(values, expected):
    data = [value or b"" for value in values]
    keep = np.array([value is not None for value in values])
    assert is_utf8(strings_at(pa.py_buffer(b"".join(data)), *bounds(data), keep)) is expected
    assert is_utf8(pa.nulls(3, pa.string()))


def test_not_utf8_names_the_values():
    values = [b"a", b"\xff", "世".encode()[:2], b""]
    column = strings_at(pa.py_buffer(b"".join(values)), *bounds(values), np.array([True, True, True, False]))
    assert not_utf8(column).tolist() == [False, True, True, False]


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


def test_repeats_an_array_of_any_type():
    for times in range(6):
        assert tiled(pa.array(["a", "b"]), times).to_pylist() == ["a", "b"] * times


def test_joins_constants_and_columns():
    left, right = binary([b"a", b"b"]), binary([b"x", None])
    assert join_rows([b"<", b"<", left, b"-", right, b">"]).to_pylist() == [b"<<a-x>", None]
    assert join_rows([left]).to_pylist() == [b"a", b"b"]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), max_size=60), st.sampled_from([31, 5000]))
def test_the_first_entry_of_each_key_in_each_row(entries, keys):
    rows = np.array([row for row, _ in entries], np.int64)
    key = np.array([key for _, key in entries], np.int64)
    seen: set[tuple[int, int]] = set()
    wanted = [entry not in seen and not seen.add(entry) for entry in entries]
    assert is_first(rows, key, 5, keys).tolist() == wanted  # 5000 keys: by sorting, 31: by a table


# --- the rows of several batches --------------------------------------------------------------------


def batch(numbers, *, wide):
    texts = [("x" * 20_000 if wide else "x") + str(number) for number in numbers]
    lists = [[number] * (number % 3) for number in numbers]
    parity = [number % 10 for number in numbers]
    return pa.record_batch({"text": texts, "parity": parity, "list": pa.array(lists, pa.list_(pa.int64()))})


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([0, 1, 2, -1, 3, -1, -1, 4, 5, 6, 7, 8, 9], [0, 1, 2, 10, 3, 11, 12, 4, 5, 6, 7, 8, 9]),
        ([-1, 1, 2, 3, 4, -1, 6, 7, 8, -1], [10, 1, 2, 3, 4, 11, 6, 7, 8, 12]),
        ([0, -1, -1, 3, 4, 5, 6, 7, 8, -1], [0, 10, 11, 3, 4, 5, 6, 7, 8, 12]),
        ([-1, -1, -1], [10, 11, 12]),
        ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -1, -1], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
    ],
)
def test_each_row_in_its_place(numbers, expected, wide):
    """With a row of the first batch in the place of a row of the second, and without; short and long columns."""
    most, others = batch(range(10), wide=wide), batch([10, 11, 12], wide=wide)
    found = merged(most, np.array(numbers), others)
    found.validate(full=True)
    assert found.to_pylist() == batch(expected, wide=wide).to_pylist()


def test_columns_that_are_right_already():
    """Only the texts of these rows differ."""
    most, others = batch(range(10), wide=False), batch([12, 15], wide=False)
    found = merged(most, np.array([0, 1, -1, 3, 4, -1, 6, 7, 8, 9]), others)
    assert found.column("parity").equals(most.column("parity"))
    assert found.column("text").to_pylist()[2:6] == ["x12", "x3", "x4", "x15"]


def test_long_texts_that_only_become_null_stay_where_they_are():
    most, others = batch(range(10), wide=True), batch([10, 11], wide=True)
    nothing = pa.nulls(2, pa.string())
    most = most.set_column(0, "text", pa.array([*most.column("text").to_pylist()[:9], None]))
    found = merged(most, np.array([0, -1, 2, 3, 4, 5, 6, 7, -1, 9]), others.set_column(0, "text", nothing))
    found.validate(full=True)
    texts = most.column("text").to_pylist()
    assert found.column("text").to_pylist() == [None if n in {1, 8} else texts[n] for n in range(10)]
    assert found.column("text").buffers()[2].address == most.column("text").buffers()[2].address


PAIR = pa.struct([("type", pa.string()), ("value", pa.string())])
SCHEMA = pa.schema([("n", pa.int64()), ("map", pa.map_(pa.string(), PAIR)), ("stream", pa.list_(PAIR))])
TEXTS = st.none() | st.text(max_size=3)
PAIRS = st.none() | st.fixed_dictionaries({"type": TEXTS, "value": TEXTS})
ROWS = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(0, 9),
        "map": st.none() | st.dictionaries(st.text(max_size=2), PAIRS, max_size=3).map(lambda found: [*found.items()]),
        "stream": st.none() | st.lists(PAIRS, max_size=3),
    }
)


@given(st.lists(st.lists(ROWS, max_size=4), min_size=1, max_size=4), st.integers(0, 2))
def test_batches_one_after_the_other(parts, begin):
    """Also slices, nulls and empty batches."""
    batches = [pa.RecordBatch.from_pylist(rows, SCHEMA).slice(min(begin, len(rows))) for rows in parts]
    expected = pa.Table.from_batches(batches).to_pylist()
    found = stacked(batches)
    found.validate(full=True)
    assert found.schema == SCHEMA
    assert found.to_pylist() == expected
