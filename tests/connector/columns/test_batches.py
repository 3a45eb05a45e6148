import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.columns.batches import merged, stacked


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
