"""Waits for another thread, the broker or Spark."""

import time


def wait_until(true, seconds=60, what="it"):
    """Call ``true()`` every 20 ms until it returns true. Its exceptions end the wait."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)
