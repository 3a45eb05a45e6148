"""CPU and memory of processes, by role; and whether memory grows."""

import os
import subprocess
import sys
import threading
import time

import pytest
import session
from waiting import wait_until

from bench.processes import Sampler, resident_bytes, source_runners, spark_roles, thread_seconds, trend
from bench.reads import by_place

HOUR = 3600.0
SOURCE, SINK = "pyspark.sql.streaming.python_streaming_source_runner", "pyspark.sql.worker.write_into_data_source"


@pytest.fixture
def parent():
    """A process with children as Spark's JVM has them: two sources of queries, a sink, and a daemon of workers."""
    sleep = "import time; time.sleep(600)"
    start = "".join(f'"$0" -c "{sleep}" {name} more & ' for name in (SOURCE, SOURCE, SINK, "pyspark.daemon"))
    process = subprocess.Popen(["/bin/sh", "-c", f"{start} wait", sys.executable], start_new_session=True)
    try:
        wait_until(lambda: len(spark_roles(process.pid)) == 5)
        yield process.pid
    finally:
        session.kill_session(process.pid)
        process.wait()


def test_a_source_runner_is_a_child_that_runs_the_source_of_a_query(parent):
    roles = spark_roles(parent)
    assert sorted(roles.values()) == ["jvm", "runner", "runner", "runner", "workers"]
    runners = sorted(pid for pid, role in roles.items() if role == "runner")
    assert source_runners(parent) == set(runners[:2])


def test_the_seconds_of_a_thread_are_those_since_before_by_place():
    before = {"1": ("GC Thread#0", 2.0), "2": ("Thread-1 (activ", 5.0), "3": ("VM Thread", 1.0)}
    after = {
        "1": ("GC Thread#0", 2.5),
        "2": ("Thread-1 (activ", 6.0),
        "3": ("VM Thread", 1.0),
        "4": ("Thread-9 (activ", 4.0),
    }
    assert by_place(before, after) == {"garbage collector": [0.5], "connections": [4.0, 1.0]}


def test_every_thread_of_a_process_has_its_name_and_seconds():
    found = thread_seconds(os.getpid())
    assert len(found) >= threading.active_count()
    assert found[str(os.getpid())][1] > 0


def test_a_line_has_its_slope_and_no_error():
    found = trend([0, HOUR / 2, HOUR, 2 * HOUR], [10, 15, 20, 30])
    assert found.per_hour == pytest.approx(10)
    assert found.error == pytest.approx(0, abs=1e-9)
    assert not found.flat


def test_what_goes_up_and_down_alike_is_flat():
    found = trend([HOUR * i / 10 for i in range(8)], [10, 11] * 4)
    assert abs(found.per_hour) < found.error
    assert found.flat


def test_what_shrinks_is_flat():
    assert trend([0, HOUR, 2 * HOUR], [30, 20, 10]).flat


def test_a_process_that_is_gone_has_no_memory():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert resident_bytes(gone.pid) == 0


def test_samples_are_told_by_role():
    mine = os.getpid()
    with Sampler(lambda: {mine: "runner"}, every=0.02) as sampler:
        before = len(sampler.samples)
        held = bytearray(64 << 20)
        held[:: os.sysconf("SC_PAGE_SIZE")] = b"x" * len(held[:: os.sysconf("SC_PAGE_SIZE")])
        deadline = time.monotonic() + 60
        while len(sampler.samples) < before + 3:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert set(sampler.peaks()) == {"runner"}
    assert 64 << 20 < sampler.peaks()["runner"] < 64 << 30
    times = [at for at, _ in sampler.samples]
    assert times == sorted(times)
    assert sampler.trends(after=0).keys() == {"runner"}
