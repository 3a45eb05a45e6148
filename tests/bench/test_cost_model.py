"""Costs that are known are found again."""

import pytest

from bench.cost_model import Load, fitted

GRID = [
    (messages, size, batches, tasks)
    for messages, batches, tasks in (
        (1_000, 1, 1),
        (1_000, 10, 10),
        (50_000, 3, 30),
        (100_000, 8, 16),
        (20_000, 20, 20),
    )
    for size in (400, 1_300, 10_500)
]


def loads(*, message, kilobyte, batch, task):
    """Of costs in seconds."""
    return [
        Load(
            messages=messages,
            size=messages * size,
            batches=batches,
            tasks=tasks,
            seconds=messages * message + messages * size / 1024 * kilobyte + batches * batch + tasks * task,
        )
        for messages, size, batches, tasks in GRID
    ]


def test_each_cost_is_found():
    found = fitted(loads(message=12e-6, kilobyte=3e-6, batch=0.110, task=0.008))
    assert found.us_a_message == pytest.approx(12)
    assert found.us_a_kilobyte == pytest.approx(3)
    assert found.ms_a_batch == pytest.approx(110)
    assert found.ms_a_task == pytest.approx(8)
    assert found.error == pytest.approx(0, abs=1e-9)


def test_a_cost_that_there_is_not_comes_out_as_nothing_and_never_below():
    found = fitted(loads(message=12e-6, kilobyte=3e-6, batch=0.110, task=-0.001))
    assert found.ms_a_task == 0
    assert found.us_a_message == pytest.approx(12, rel=0.1)
    assert 0 < found.error < 0.1
