"""Refused rows of several steps in one error."""

import numpy as np
import pytest

from pyspark_jms.amqp.columns.refusals import Refusals, RefusedRowsError


def refuse():
    raise RefusedRowsError(np.array([9]))


def test_all_refused_rows_are_in_one_error():
    refusals, rows = Refusals(), np.array([3, 4])
    refusals.add(rows[:0])
    refusals.add_where(rows, np.array([False, False]))
    refusals.raise_any()
    refusals.add_where(rows, np.array([False, True]))
    refusals.add_where(rows, np.bool_(True))
    refusals.add(np.array([1]))
    assert (refusals.attempt(lambda: 5), refusals.attempt(refuse)) == (5, None)
    with pytest.raises(RefusedRowsError) as refused:
        refusals.raise_any()
    assert refused.value.rows.tolist() == [4, 3, 4, 1, 9]
