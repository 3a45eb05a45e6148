import threading
from concurrent.futures import CancelledError

import pytest
from waiting import wait_until

from pyspark_jms.network.connection import ParallelCalls, StateCondition


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


def test_calls_run_beside_each_other_and_end_when_one_fails():
    """Also one that waits for a broker meanwhile. The error is the one that came first."""
    calls, both, threads = ParallelCalls(), threading.Barrier(2, timeout=30), []

    def waits():
        threads.append(threading.current_thread())
        both.wait()
        calls.pause(lambda seconds: StateCondition().pause(seconds), 600)

    def fails():
        threads.append(threading.current_thread())
        both.wait()
        raise ConnectionError("first")

    with pytest.raises(ConnectionError, match="first"):
        calls.run([waits, fails])
    assert threading.current_thread() not in threads
    with pytest.raises(CancelledError):
        calls.check()


def test_one_call_runs_here():
    ran = []
    ParallelCalls().run([lambda: ran.append(threading.current_thread())])
    assert ran == [threading.current_thread()]


def test_a_poll_ends_when_it_is_ready_or_late_and_checks_meanwhile():
    condition, checks = StateCondition(), []
    assert condition.poll(lambda: len(checks) == 2, 60, lambda: checks.append(1))
    assert not condition.poll(lambda: False, 0.01)
