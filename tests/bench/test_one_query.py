"""Batches as Spark tells them → how long each message took."""

from datetime import UTC, datetime

import pytest

from bench.one_query import delays, floor, percentile

BEGAN = 1_760_000_000.0


def batch(number, rows, *, began, took):
    """``began`` seconds after the first message was sent."""
    timestamp = datetime.fromtimestamp(BEGAN + began, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        "batchId": number,
        "timestamp": timestamp,
        "durationMs": {"triggerExecution": took},
        "numInputRows": rows,
    }


def test_a_message_took_until_its_batch_ended():
    batches = [batch(2, 1, began=0.200, took=100), batch(1, 2, began=0.050, took=100)]
    sent = [BEGAN, BEGAN + 0.010, BEGAN + 0.020]
    assert delays(sent, batches) == pytest.approx([150, 140, 280], abs=0.01)


def test_a_row_that_was_not_sent_is_an_error():
    with pytest.raises(ValueError, match="argument"):
        delays([BEGAN], [batch(1, 2, began=0, took=30)])


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([1], 50, 1), ([1, 2, 3], 50, 2), ([4, 1, 3, 2], 50, 2), (range(1, 101), 99, 99), (range(1, 11), 99, 10)],
)
def test_percentile(values, percent, expected):
    assert percentile(list(values), percent) == expected


def test_the_floor_is_the_rest_of_a_batch_and_the_next_one():
    batches = [batch(number, 10, began=number * 0.1, took=100) for number in (2, 0, 1)]
    assert floor(batches, 20) == pytest.approx([100, 150, 100, 150], abs=0.01)
