import pytest

from pyspark_jms.jms.model import Destination
from pyspark_jms.network.address import Address
from pyspark_jms.source.short_sessions import ShortSessions
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC

ADDRESS, QUEUE = Address(host="h", port=1, tls=False), Destination.parse("queue://orders")


def end(sessions, lane, now, dialect=CLASSIC):
    return sessions.ended(lane, now, silent_end=dialect.silent_end, address=ADDRESS, destination=QUEUE)


def test_ends_in_a_row_are_counted_and_name_a_cause():
    sessions = ShortSessions()
    for count in (1, 2, 3):
        sessions.began(0, 10.0 * count)
        error = end(sessions, 0, 10.0 * count + 1)
        assert sessions.consecutive(0) == count
    assert "ended 3 connections in a row, each soon after it had subscribed to queue://orders" in error.fact
    assert "ObjectMessage" in error.remedy
    assert error.transient


def test_a_connection_that_lived_ends_the_row():
    sessions = ShortSessions()
    sessions.began(0, 0.0)
    end(sessions, 0, 1.0)
    sessions.began(0, 1.0)
    assert end(sessions, 0, 60.0) is None
    assert sessions.consecutive(0) == 0


def test_each_lane_by_itself():
    sessions = ShortSessions()
    sessions.began(0, 0.0)
    sessions.began(1, 0.0)
    end(sessions, 0, 1.0)
    assert [sessions.consecutive(lane) for lane in (0, 1, 2)] == [1, 0, 0]


@pytest.mark.parametrize("after", [0.1, 60.0])
def test_a_broker_that_says_why_is_not_suspected(after):
    sessions = ShortSessions()
    sessions.began(0, 0.0)
    assert end(sessions, 0, after, ARTEMIS) is None
    assert sessions.consecutive(0) == 0
