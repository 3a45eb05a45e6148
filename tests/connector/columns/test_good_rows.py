import numpy as np
import pyarrow as pa
import pytest

from pyspark_jms.columns.good_rows import good_rows
from pyspark_jms.columns.rows import Rows
from pyspark_jms.errors import MessageFormatError, UnsupportedError


def batch_of(*numbers):
    return pa.record_batch({"n": pa.array(numbers, pa.int64())})


class Encoder:
    """Refuses negative numbers, then odd ones, then 100 alone; ``rounds`` counts what was tried."""

    def __init__(self):
        self.rounds = 0

    def __call__(self, batch, numbers):
        self.rounds += 1
        assert len(numbers) == batch.num_rows
        found = batch["n"].to_numpy()
        rows = Rows(columns={}, first=0, count=batch.num_rows, numbers=numbers)
        rows.refuse_any(found < 0, "is negative", "")
        rows.refuse_any(found % 2 == 1, "is odd", "")
        for index in np.flatnonzero(found == 100).tolist():
            rows.refuse(index, "is 100", "")


def good(*numbers, first=0):
    encoder = Encoder()
    left, bad = good_rows(batch_of(*numbers), first, encoder)
    return left["n"].to_pylist(), [(rows.count, rows.first.fact) for rows in bad], encoder.rounds


def test_good_rows_are_kept_in_order_after_one_look():
    assert good(2, 4, 2) == ([2, 4, 2], [], 1)
    assert good() == ([], [], 0)


def test_each_fault_costs_a_round_and_names_its_first_row():
    negative, odd = (3, "Row 51 of the task is negative."), (2, "Row 50 of the task is odd.")
    assert good(1, -1, 2, -2, -3, 3, 4, first=50) == ([2, 4], [negative, odd], 3)
    assert good(100, 2, 100) == (
        [2],
        [(1, "Row 0 of the task is 100."), (1, "Row 2 of the task is 100.")],
        3,
    )
    assert good(*[-1] * 10_000) == ([], [(10_000, "Row 0 of the task is negative.")], 1)


@pytest.mark.parametrize("error", [MessageFormatError("It is."), UnsupportedError("It is."), ValueError("no")])
def test_an_error_about_no_row_in_particular_is_raised(error):
    def encode(batch, numbers):
        raise error

    with pytest.raises(type(error)) as caught:
        good_rows(batch_of(1), 0, encode)
    assert caught.value is error
