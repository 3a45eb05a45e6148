"""Waits for another thread, the broker or Spark."""

import time


def wait_until(true, seconds=60, what="it"):
    """Call ``true()`` every 20 ms until it returns true. Its exceptions end the wait."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)


def await_count(broker, queue, messages, seconds=60):
    """Wait until ``queue`` has that many messages: Artemis may confirm a commit before its counts are up to date."""
    deadline = time.monotonic() + seconds
    while (count := broker.message_count(queue)) != messages:
        assert time.monotonic() < deadline, f"{queue} has {count} messages, not {messages}, after {seconds} s"
        time.sleep(0.02)
