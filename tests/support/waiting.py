"""Waits for another thread, the broker or Spark."""

import time


def wait_until(true, seconds=60, what="it"):
    """Call ``true()`` every 20 ms until it returns true. Its exceptions end the wait."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)


def await_value(read, expected, seconds=60, what="it"):
    """Wait until ``read()`` returns this: a broker's counts follow what it has confirmed."""
    deadline = time.monotonic() + seconds
    while (found := read()) != expected:
        assert time.monotonic() < deadline, f"{what} is {found!r}, not {expected!r}, after {seconds} s"
        time.sleep(0.02)


def await_count(broker, queue, messages):
    """Wait until ``queue`` has that many messages: Artemis may confirm a commit before its counts are up to date."""
    await_value(lambda: broker.message_count(queue), messages, what=f"the count of {queue}")


def settled(read, seconds=1):
    """What ``read()`` returns when it has returned the same for so long."""
    found, since = read(), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.05)
        if (again := read()) != found:
            found, since = again, time.monotonic()
    return found


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now
