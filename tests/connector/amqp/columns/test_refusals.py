"""Refused rows of several steps."""

import numpy as np

from pyspark_jms.amqp.columns.refusals import Refusals


def test_each_refused_row_is_there_once():
    refusals, rows = Refusals(), np.array([3, 4])
    refusals.add(rows[:0])
    refusals.add_where(rows, np.array([False, False]))
    assert refusals.rows().tolist() == []
    refusals.add_where(rows, np.array([False, True]))
    refusals.add_where(rows, np.bool_(True))
    refusals.add(np.array([1]))
    assert refusals.rows().tolist() == [1, 3, 4]
