from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from pyspark_jms.columns.cut import MAX_BYTES, Pieces, all_begin_with, contents, cut, is_utf8, not_utf8, require_offsets
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
    pieces = Pieces(pa.py_buffer("".join(texts).encode()), *spans(texts))
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
    column = cut(BUFFER, ints(0, 4), ints(3, 7), np.array([False, True]))
    column.validate(full=True)
    assert column.to_pylist() == [None, "two"]


def test_pieces_may_stand_in_any_order_in_the_buffer():
    assert cut(BUFFER, ints(9, 0), ints(13, 3)).to_pylist() == ["four", "one"]


LONG = [b"a" * 300, b"", b"c" * 1000, b"d"]


@pytest.mark.parametrize("keep", [None, [True] * 4, [True, False, True, False], [False, True, False, True]])
@pytest.mark.parametrize("gap", [0, 1, 2_000])
def test_long_pieces(gap, keep):
    """They are copied in another way than short ones."""
    buffer = pa.py_buffer(b"".join(b"-" * gap + text for text in LONG))
    ends = np.cumsum([gap + len(text) for text in LONG])
    column = cut(buffer, ends - [len(text) for text in LONG], ends, None if keep is None else np.array(keep))
    column.validate(full=True)
    kept = keep or [True] * len(LONG)
    assert column.to_pylist() == [text.decode() if wanted else None for text, wanted in zip(LONG, kept, strict=True)]


def test_long_pieces_in_any_order_and_one_inside_the_other():
    buffer = pa.py_buffer(b"".join(LONG))
    column = cut(buffer, ints(300, 0, 0, 0), ints(1300, 300, 1300, 1301))
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
    data, limits = contents(cut(pa.py_buffer("".join(values).encode()), *spans(values)))
    whole = bytes(data)
    assert [whole[a:b].decode() for a, b in pairwise(limits)] == values


def spans(values):
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
    assert is_utf8(cut(pa.py_buffer(b"".join(values)), *spans(values))) is expected


@pytest.mark.parametrize(("values", "expected"), [([None], True), ([None, b"\xff"], False), ([None, b"a"], True)])
def test_is_utf8_of_a_column_with_nulls(values, expected):
    data = [value or b"" for value in values]
    keep = np.array([value is not None for value in values])
    assert is_utf8(cut(pa.py_buffer(b"".join(data)), *spans(data), keep)) is expected
    assert is_utf8(pa.nulls(3, pa.string()))


def test_not_utf8_names_the_values():
    values = [b"a", b"\xff", "世".encode()[:2], b""]
    column = cut(pa.py_buffer(b"".join(values)), *spans(values), np.array([True, True, True, False]))
    assert not_utf8(column).tolist() == [False, True, True, False]
