import pytest

from pyspark_jms.spark.draining import Drain
from pyspark_jms.wire.scan import FrameScanner

STARTED = 1_000_000.0


def run_of(*times):
    """Messages sent at these times, None: the producer switched timestamps off."""
    scanner = FrameScanner(max_body_bytes=1000)
    for n, sent in enumerate(times):
        stamp = "" if sent is None else f"timestamp:{sent}\n"
        scanner.feed(f"MESSAGE\nsubscription:1\nmessage-id:9,{n}\ndestination:q\n{stamp}\nbody\0\n".encode())
    return scanner.take()


@pytest.mark.parametrize(
    ("times", "before", "ends"),
    [
        ([999_000, 1_000_000, 1_001_000], 3, False),  # a second of tolerance: the clocks are two
        ([999_000, 1_001_001, 999_000], 1, True),
        ([1_001_001], 0, True),
        ([None, 0, None], 3, False),
        ([], 0, False),
    ],
)
def test_the_first_message_sent_after_the_start_ends_its_lane(times, before, ends):
    drain = Drain(STARTED, 2.0)
    assert drain.before_the_cut(1, run_of(*times), b"timestamp") == before
    assert drain.ended == ({1} if ends else set())


def test_an_ended_lane_gives_nothing_more_and_the_others_go_on():
    drain = Drain(STARTED, 2.0, {1})
    assert drain.before_the_cut(1, run_of(5, 5), b"timestamp") == 0
    assert drain.before_the_cut(0, run_of(5, 5), b"timestamp") == 2


def test_a_dialect_without_such_a_header_is_drained_by_silence_only():
    drain = Drain(STARTED, 2.0)
    assert drain.before_the_cut(0, run_of(1_001_001), None) == 1
    assert drain.ended == set()


def test_a_header_that_counts_seconds():
    drain = Drain(STARTED, 2.0)
    assert drain.before_the_cut(0, run_of(999, 1001, 1002), b"timestamp", 1000) == 2
    assert drain.ended == {0}
