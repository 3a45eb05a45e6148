import threading

import pytest
from waiting import wait_until

from pyspark_jms.network.connection import StateCondition, exhaust


def test_a_pause_ends_when_something_arrives():
    condition, woken = StateCondition(), threading.Event()

    def wait():
        condition.pause(60)
        woken.set()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()

    def notified():
        with condition:
            condition.notify_all()
        return woken.wait(0.05)

    wait_until(notified, what="the end of the pause")
    thread.join(10)
    assert not thread.is_alive()


def test_a_pause_ends_when_nothing_arrives():
    StateCondition().pause(0.01)


def steps(done, name, count, fails_at=None):
    try:
        for number in range(count):
            if number == fails_at:
                raise ConnectionError(name)
            done.append((name, number, threading.current_thread()))
            yield
    finally:
        done.append((name, "closed", threading.current_thread()))


def test_lanes_run_beside_each_other_and_end_when_one_fails():
    done, here = [], threading.current_thread()
    with pytest.raises(ConnectionError, match="b"):
        exhaust([steps(done, "a", 10**9), steps(done, "b", 5, fails_at=3)])
    assert [number for name, number, _ in done if name == "b"] == [0, 1, 2, "closed"]
    assert [number for name, number, _ in done if name == "a"][-1] == "closed"
    assert here not in {thread for *_, thread in done}


def test_one_lane_runs_here():
    done = []
    exhaust([steps(done, "a", 2)])
    assert done == [("a", each, threading.current_thread()) for each in (0, 1, "closed")]


def test_a_poll_ends_when_it_is_ready_or_late_and_checks_meanwhile():
    condition, checks = StateCondition(), []
    assert condition.poll(lambda: len(checks) == 2, 60, lambda: checks.append(1))
    assert not condition.poll(lambda: False, 0.01)
