from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from sink_rows import DEFAULTS, rows_of

from pyspark_jms.columns.row_headers import (
    PRIORITIES,
    delivery_of,
    expiration_of,
    first_given,
    from_now,
    modes_and_priorities,
)
from pyspark_jms.errors import MessageFormatError

NOW = 1_000
AGO = pa.timestamp("ms", tz="UTC")


def ints(*values):
    return pa.array(values, pa.int64())


def times(*values):
    return pa.array(values, AGO)


def test_mode_and_priority():
    assert modes_and_priorities(rows_of(text=["a", "b"]), DEFAULTS).tolist() == [2 * PRIORITIES + 4]
    rows = rows_of(JMSDeliveryMode=ints(1, None), JMSPriority=ints(None, 9))
    assert modes_and_priorities(rows, DEFAULTS).tolist() == [PRIORITIES + 4, 2 * PRIORITIES + 9]


@pytest.mark.parametrize(("column", "value"), [("JMSDeliveryMode", 0), ("JMSDeliveryMode", 3), ("JMSPriority", 10)])
def test_mode_and_priority_have_ranges(column, value):
    with pytest.raises(MessageFormatError, match=f"Row 11 .*{column}"):
        modes_and_priorities(rows_of(**{column: ints(1, value)}), DEFAULTS)


def test_a_time_to_live_comes_before_an_instant_and_both_before_the_default():
    rows = rows_of(time_to_live=ints(5, None, None, None), JMSExpiration=times(7, 7, None, -7))
    assert expiration_of(rows, replace(DEFAULTS, time_to_live_ms=9), NOW).tolist() == [NOW + 5, 7, NOW + 9, 1]


def test_a_time_to_live_of_0_is_a_value_and_means_never():
    rows = rows_of(time_to_live=ints(0, 0, 5, None), JMSExpiration=times(None, 7, 7, None))
    assert expiration_of(rows, replace(DEFAULTS, time_to_live_ms=9), NOW).tolist() == [0, 0, NOW + 5, NOW + 9]
    rows = rows_of(time_to_live=ints(0, 0))
    assert expiration_of(rows, replace(DEFAULTS, time_to_live_ms=9), NOW).tolist() == [0, 0]


def test_a_delivery_delay_of_0_is_a_value_and_means_now():
    rows = rows_of(delivery_delay=ints(0, 0, 5, None), JMSDeliveryTime=times(None, 7, 7, None))
    delays, instants = delivery_of(rows, replace(DEFAULTS, delivery_delay_ms=9))
    assert (delays.tolist(), instants.tolist()) == ([0, 0, 5, 9], [0, 0, 0, 0])


def test_nothing_expires():
    assert expiration_of(rows_of(text=["a"]), DEFAULTS, NOW).tolist() == [0]


def test_a_delay_comes_before_an_instant_and_both_before_the_default():
    rows = rows_of(delivery_delay=ints(5, None, None), JMSDeliveryTime=times(7, 7, None))
    delays, instants = delivery_of(rows, replace(DEFAULTS, delivery_delay_ms=9))
    assert (delays.tolist(), instants.tolist()) == ([5, 0, 9], [0, 7, 0])


def test_a_duration_is_not_negative():
    with pytest.raises(MessageFormatError, match=r"Row 10 .*time_to_live"):
        expiration_of(rows_of(time_to_live=ints(-1)), DEFAULTS, NOW)
    with pytest.raises(MessageFormatError, match=r"Row 10 .*delivery_delay"):
        delivery_of(rows_of(delivery_delay=ints(-1)), DEFAULTS)


def test_an_instant_beyond_64_bits_is_the_last_one():
    assert from_now(NOW, np.array([2**63 - 1, 0])).tolist() == [2**63 - 1, 0]
    assert first_given(np.array([0, 3]), np.array([4, 5])).tolist() == [4, 3]
