"""What another thread, the broker or Spark does in its own time comes true soon, or the test fails."""

import time


def wait_until(true, seconds=60, what="it"):
    """``true()`` is asked every 20 ms; what it raises ends the wait."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)
