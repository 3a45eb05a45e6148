"""Costs that are known are found again."""

import pytest

from bench.long import fitted

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


def points(*, message, kilobyte, batch, task):
    """Of costs in seconds, which two processes share. The broker's CPU is none of Spark's."""
    found = []
    for messages, size, batches, tasks in GRID:
        cpu = messages * message + messages * size / 1024 * kilobyte + batches * batch + tasks * task
        of = {"messages": messages, "bytes": messages * size, "batches": batches, "tasks": tasks}
        found.append(of | {"cpu": {"jvm": cpu / 4, "workers": cpu * 3 / 4, "broker": 1.0}})
    return found


def test_each_cost_is_found():
    found = fitted(points(message=12e-6, kilobyte=3e-6, batch=0.110, task=0.008))
    wanted = {"us_a_message": 12, "us_a_kilobyte": 3, "ms_a_batch": 110, "ms_a_task": 8, "error": 0}
    assert found == pytest.approx(wanted, abs=1e-3)


def test_a_cost_that_there_is_not_comes_out_as_nothing_and_never_below():
    found = fitted(points(message=12e-6, kilobyte=3e-6, batch=0.110, task=-0.001))
    assert found["ms_a_task"] == 0
    assert found["us_a_message"] == pytest.approx(12, rel=0.1)
    assert 0 < found["error"] < 0.1
