import logging
import math

import pytest

from pyspark_jms.errors import (
    BrokerUnreachableError,
    ConnectionLostError,
    InvalidDestinationError,
    JMSSecurityError,
    StoppedError,
)
from pyspark_jms.network.patience import keep_trying


class Time:
    """Passes only in pauses. ``fails`` so often, then succeeds."""

    def __init__(self, fails=math.inf, error=BrokerUnreachableError):
        self.now, self.pauses, self.calls = 100.0, [], 0
        self._fails, self._error = fails, error

    def pause(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds

    def act(self):
        self.calls += 1
        if self.calls <= self._fails:
            raise self._error(f"failure {self.calls}.")
        return "done"

    def keep_trying(self, timeout, failure=None, **how):
        return keep_trying(
            self.act, "the link", timeout=timeout, failure=failure, pause=self.pause, clock=lambda: self.now, **how
        )


def test_what_succeeds_at_once_is_not_paused_for():
    time = Time(fails=0)
    assert time.keep_trying(0) == "done"
    assert (time.calls, time.pauses) == (1, [])


def test_pauses_grow_to_half_a_minute_and_end_with_the_time():
    for failure, first in ((None, []), (ConnectionLostError("gone."), [0.1])):
        time = Time()
        with pytest.raises(BrokerUnreachableError):
            time.keep_trying(150, failure)
        assert time.pauses == pytest.approx([*first, 1, 2, 4, 8, 16, 30, 30, 30, 29 - sum(first)])


def missing(fact):
    error = InvalidDestinationError(fact)
    error.missing = True
    return error


def test_a_new_query_makes_a_connection_again_that_was_made_and_lost():
    assert Time(fails=4, error=ConnectionLostError).keep_trying(0, once_lost=600) == "done"
    for error, once_lost, calls in ((ConnectionLostError, 600, 5), (ConnectionLostError, 0, 1), (missing, 600, 1)):
        time = Time(error=error)
        with pytest.raises((ConnectionLostError, InvalidDestinationError)):
            time.keep_trying(0, once_lost=once_lost)
        assert time.calls == calls


@pytest.mark.parametrize(
    ("error", "seen"), [(JMSSecurityError, False), (missing, False), (InvalidDestinationError, True)]
)
def test_a_permanent_error_is_final(error, seen):
    time = Time(error=error)
    with pytest.raises((JMSSecurityError, InvalidDestinationError)):
        time.keep_trying(150, seen=seen)
    assert time.calls == 1


def test_a_missing_queue_that_was_there_is_waited_for():
    assert Time(fails=3, error=missing).keep_trying(150, seen=True) == "done"
    with pytest.raises(InvalidDestinationError, match="failure 10"):
        Time(error=missing).keep_trying(150, seen=True)


@pytest.mark.parametrize("failure", [None, ConnectionLostError("gone.")])
def test_without_a_timeout_the_first_failure_counts(failure):
    time = Time()
    with pytest.raises(ConnectionLostError if failure else BrokerUnreachableError):
        time.keep_trying(0, failure)
    assert (time.calls, time.pauses) == (0 if failure else 1, [])


def test_for_ever(caplog):
    caplog.set_level(logging.WARNING)
    time = Time(fails=500)
    assert time.keep_trying(math.inf, ConnectionLostError("gone.")) == "done"
    assert sum(time.pauses) > 4 * 3600
    assert "again until it succeeds (reconnectTimeout=forever)" in caplog.text


def test_each_failure_is_logged_with_the_time_that_is_left(caplog):
    caplog.set_level(logging.WARNING)
    Time(fails=2).keep_trying(600)
    reported = [record.getMessage() for record in caplog.records]
    assert reported == [
        "= the link failed (attempt 1): failure 1. Trying for another 600 s (reconnectTimeout)",
        "= the link failed (attempt 2): failure 2. Trying for another 599 s (reconnectTimeout)",
    ]


def test_a_pause_may_give_up():
    def stop(_):
        raise StoppedError("The query is being stopped.")

    with pytest.raises(StoppedError):
        keep_trying(Time().act, "the link", timeout=600, pause=stop)
