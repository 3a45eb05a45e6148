"""Memory of a process, and whether it grows."""

import os
import subprocess
import sys
import time

import pytest

from bench.processes import Sampler, resident_bytes, trend

HOUR = 3600.0


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
