import pytest

from pyspark_jms.source.draining import LONGEST_MS, Drain, was_sent_later
from pyspark_jms.stomp.wire.frame import header_of
from pyspark_jms.stomp.wire.scan import FrameScanner

STARTED = 1_000_000.0
NOW = STARTED + 10_000
LATE = STARTED + LONGEST_MS


def block_of(*times):
    """Messages sent at these times, None: the producer switched timestamps off."""
    scanner = FrameScanner(max_body_bytes=1000)
    for n, sent in enumerate(times):
        stamp = "" if sent is None else f"timestamp:{sent}\n"
        scanner.feed(f"MESSAGE\nsubscription:1\nmessage-id:9,{n}\ndestination:q\n{stamp}\nbody\0\n".encode())
    return scanner.take()


class Link:
    """As far as draining asks: when a message was sent."""

    def __init__(self, header=b"timestamp", unit_ms=1):
        self._header, self._unit_ms = header, unit_ms

    def sent_ms(self, block, index):
        sent = self._header and header_of(block, index, self._header)
        return int(sent) * self._unit_ms or None if sent else None


@pytest.mark.parametrize(
    ("times", "before", "ends"),
    [
        ([999_000, 1_000_000, 1_001_000], 3, False),  # a second of tolerance: the clocks are two
        ([999_000, 1_001_001, 999_000], 1, True),
        ([1_001_001], 0, True),
        ([1_011_000, 999_000], 0, True),  # now, and a second of tolerance
        ([1_011_001, 999_000, 1_005_000], 2, True),  # from the future: no word on when it was sent
        ([9_000_000_000_000], 1, False),
        ([None, 0, None], 3, False),
        ([], 0, False),
    ],
)
def test_the_first_message_sent_between_the_start_and_now_ends_its_subscription(times, before, ends):
    drain = Drain(STARTED)
    assert drain.sent_before_start(1, Link(), block_of(*times), now_ms=NOW) == before
    assert drain.ended == ({1} if ends else set())


def test_an_ended_subscription_gives_nothing_more_and_the_others_go_on():
    drain = Drain(STARTED, {1})
    assert drain.sent_before_start(1, Link(), block_of(5, 5), now_ms=NOW) == 0
    assert drain.sent_before_start(0, Link(), block_of(5, 5), now_ms=NOW) == 2


def test_a_dialect_without_such_a_header_is_drained_by_silence_only():
    drain = Drain(STARTED)
    assert drain.sent_before_start(0, Link(None), block_of(1_001_001), now_ms=NOW) == 1
    assert drain.ended == set()


@pytest.mark.parametrize(
    ("header", "times", "before"),
    [
        (b"timestamp", [999_000, None, 999_000], 1),
        (b"timestamp", [999_000, 999_000, 9_000_000_000_000], 2),
        (b"timestamp", [999_000, 0], 1),
        (None, [999_000], 0),
        (b"timestamp", [999_000, 999_000], 2),  # a long backlog is read to its end
    ],
)
def test_messages_that_do_not_tell_when_they_were_sent_do_not_keep_a_run_open(header, times, before, caplog):
    drain = Drain(STARTED)
    assert drain.sent_before_start(0, Link(header), block_of(*times), now_ms=LATE - 1) == len(times)
    assert drain.sent_before_start(0, Link(header), block_of(*times), now_ms=LATE) == before
    assert drain.ended == ({0} if before < len(times) else set())
    assert ("AvailableNow ends" in caplog.text) == bool(drain.ended)


def test_a_header_that_counts_seconds():
    drain = Drain(STARTED)
    assert drain.sent_before_start(0, Link(unit_ms=1000), block_of(999, 1001, 1002), now_ms=NOW) == 2
    assert drain.ended == {0}


@pytest.mark.parametrize(
    ("sent", "later"),
    [(None, None), (1_000_000, False), (1_001_000, False), (1_001_001, True), (1_011_000, True), (1_011_001, None)],
)
def test_a_message_was_sent_before_or_after_the_start_or_has_no_usable_time(sent, later):
    assert was_sent_later(sent, started_ms=STARTED, now_ms=NOW) is later


def test_a_clock_that_was_set_back_makes_no_message_later():
    assert was_sent_later(1_000_500, started_ms=STARTED, now_ms=STARTED - 60_000) is False
