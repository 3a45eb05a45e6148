import json

import pytest
from streaming import left


@pytest.mark.parametrize("most", [1, 7, 600])
def test_a_value_is_full_and_the_rest_stays(broker, queue, put, query, most):
    put(broker, queue, *map(str, range(1_000)))
    running = query(maxMessagesPerTrigger=most)
    running.plan()
    [rows] = running.rows()
    assert [row["text"] for row in rows] == list(map(str, range(most)))
    assert left(broker, queue, 1_000 - most) == 1_000 - most


def test_a_value_has_at_most_the_bytes_of_a_reader(broker, queue, put, query):
    put(broker, queue, *("x" * 10_000 for _ in range(100)))
    running = query(maxBytesPerTrigger=400_000, readers=2)
    running.plan()
    assert all(10 <= len(rows) <= 20 for rows in running.rows())


def test_a_full_queue_beside_an_empty_one_ends_a_value(broker, queue, put, query):
    """Each has its share of the window, so that the value is not full when the window of one is."""
    put(broker, queue, *("x" * 10_000 for _ in range(100)))
    running = query(queue=json.dumps([queue, f"{queue}.empty"]), maxBytesPerTrigger=400_000)
    assert len(running.texts(100)) == 100
    assert left(broker, queue) == 0
