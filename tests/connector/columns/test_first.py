import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.columns.first import is_first


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), max_size=60), st.sampled_from([31, 5000]))
def test_the_first_entry_of_each_key_in_each_row(entries, keys):
    rows = np.array([row for row, _ in entries], np.int64)
    key = np.array([key for _, key in entries], np.int64)
    seen: set[tuple[int, int]] = set()
    wanted = [entry not in seen and not seen.add(entry) for entry in entries]
    assert is_first(rows, key, 5, keys).tolist() == wanted  # 5000 keys: by sorting, 31: by a table
