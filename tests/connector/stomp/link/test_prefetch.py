import pytest

from pyspark_jms.errors import MessageTooLargeError, PrefetchExceededError
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC, RABBITMQ
from pyspark_jms.stomp.link import prefetch as module
from pyspark_jms.stomp.link.prefetch import NOT_SUBSCRIBED, Prefetch, PrefetchLimit, Unacknowledged, limit_of
from pyspark_jms.stomp.wire.frame import Frame, encode_frame, parse_frame

RECEIPT = encode_frame(Frame("RECEIPT", (("receipt-id", "r1"),)))


def message(number, body=b"text"):
    return encode_frame(Frame("MESSAGE", (("message-id", str(number)), ("content-length", str(len(body)))), body))


def prefetch(on_too_large="fail"):
    return Prefetch(StateCondition(), max_body_bytes=1000, on_too_large=on_too_large)


def ids(blocks):
    return [identifier for block in blocks for identifier in block.ids]


def test_messages_stay_and_other_frames_go_to_stomp_py():
    found = prefetch()
    assert b"".join(found.feed(memoryview(message(1) + RECEIPT + message(2)))) == RECEIPT
    messages, size = found.waiting()
    assert messages == 2
    assert size >= len(message(1) + message(2))
    blocks = found.take()
    assert ids(blocks) == [b"1", b"2"]
    assert parse_frame(blocks[0].message(1)).body == b"text"
    assert (found.waiting(), found.take()) == ((0, 0), [])


def test_heart_beats_do_not_count_as_received():
    found = prefetch()
    found.feed(memoryview(b"\n"))
    assert found.received_bytes == 0
    found.feed(memoryview(message(1)))
    assert found.received_bytes == len(message(1))


def test_a_block_is_closed_at_its_size(monkeypatch):
    monkeypatch.setattr(module, "SEGMENT_BYTES", 2 * len(message(1)))
    found = prefetch()
    for number in range(1, 6):
        found.feed(memoryview(message(number)))
    assert found.waiting()[0] == 5
    assert [len(block) for block in found.take()] == [2, 2, 1]


def test_the_id_for_ack_is_read_from_its_header():
    found = prefetch()
    found.set_ack_header("ack")
    headers = (("message-id", "m"), ("ack", "a"))
    found.feed(memoryview(encode_frame(Frame("MESSAGE", headers, b""))))
    assert ids(found.take()) == [b"a,m"]


def test_a_message_above_the_limit_ends_the_session_or_is_set_aside():
    large = memoryview(message(1, b"x" * 1001) + message(2))
    stopped = prefetch()
    stopped.feed(large)
    assert isinstance(stopped.refused, MessageTooLargeError)
    for on_too_large in ("drop", "deadLetter"):
        found = prefetch(on_too_large)
        found.feed(large)
        (oversized,) = found.take_oversized()
        assert found.take_oversized() == []
        assert (found.refused, ids(found.take())) == (None, [b"2"])
        if oversized.body is not None:
            oversized.body.seek(0)
            assert oversized.body.read() == b"x" * 1001
            oversized.body.close()


@pytest.mark.parametrize("size", [4, 2000])  # below and above maxMessageBytes
def test_a_message_beyond_the_limit_is_an_error(size):
    """The one that crosses it is none: brokers that count bytes send it."""
    found = prefetch("drop")
    waits = len(message(0, b"x" * size)) + 1 if size < 1000 else size
    found.limit = PrefetchLimit(messages=1, size=4 * waits - 1, window="2 bytes")
    for number in range(4):
        found.feed(memoryview(message(number, b"x" * size)))
    found.feed(memoryview(RECEIPT))
    with pytest.raises(PrefetchExceededError, match=r"delivered 4 messages .*window of 2 bytes"):
        found.feed(memoryview(message(4, b"x" * size)))


def test_what_was_taken_makes_room():
    found = prefetch()
    found.limit = PrefetchLimit(messages=1, size=8, window="2 bytes")
    for number in range(100):
        found.feed(memoryview(message(number)))
        if number % 2:
            found.take()


# --- a shared connection -----------------------------------------------------------------------------


def of(subscription, number, body=b"text"):
    headers = (("subscription", subscription), ("message-id", str(number)), ("content-length", str(len(body))))
    return encode_frame(Frame("MESSAGE", headers, body))


def test_a_shared_connection_sorts_what_comes_in_runs():
    found = prefetch()
    found.feed(memoryview(of("1", 1)))
    second, third = found.share("2"), found.share("3")
    numbers = [("2", 2), ("2", 3), ("1", 4), ("3", 5), ("2", 7), ("1", 8)]
    frames = b"".join(of(subscription, number, b"body %d" % number) for subscription, number in numbers)
    assert found.feed(memoryview(frames[:150])) == []
    assert b"".join(found.feed(memoryview(frames[150:] + RECEIPT))) == RECEIPT
    assert [each.waiting()[0] for each in (found, second, third)] == [3, 3, 1]
    (block,) = second.take()
    assert [parse_frame(block.message(index)).body for index in range(3)] == [b"body 2", b"body 3", b"body 7"]
    assert [bytes(block.data)[block.heads[index] :][:2] for index in range(3)] == [b"\n\n"] * 3
    assert (ids(found.take()), ids(third.take()), second.waiting()) == ([b"1", b"4", b"8"], [b"5"], (0, 0))


def test_what_comes_after_the_end_of_the_only_other_subscription_is_nobodys():
    found = prefetch()
    found.share("2")
    found.leave("2")
    found.feed(memoryview(of("2", 1) + of("1", 2) + of("2", 3)))
    assert ids(found.take()) == [b"2"]
    again = found.share("3")
    found.feed(memoryview(of("2", 4) + of("3", 5)))
    assert (ids(found.take()), ids(again.take())) == ([], [b"5"])


@pytest.mark.parametrize("ended", ["1", "2"])
def test_what_comes_after_the_end_of_its_subscription_is_nobodys(ended):
    """The broker has taken it back. It would else be a row of another queue."""
    found = prefetch("drop")
    inboxes = {"1": found, "2": found.share("2"), "3": found.share("3")}
    found.feed(memoryview(of(ended, 1)))
    found.leave(ended)
    found.feed(memoryview(of(ended, 2) + of("3", 3) + of(ended, 4, b"x" * 2000) + of(ended, 5)))
    assert ids(inboxes[ended].take()) == [b"1"], "what came before can still be taken"
    assert [inbox.waiting()[0] for inbox in inboxes.values()] == [0, 0, 1]
    assert [inbox.take_oversized() for inbox in inboxes.values()] == [[], [], []]


def test_the_runs_of_a_subscription_are_joined_up_to_the_size_of_a_block(monkeypatch):
    monkeypatch.setattr(module, "SEGMENT_BYTES", 2 * len(of("2", 1)))
    found = prefetch()
    second = found.share("2")
    for number in range(1, 6):
        found.feed(memoryview(of("2", number) + of("1", 10 + number)))
    assert [len(block) for block in second.take()] == [2, 2, 1]
    assert sum(map(len, found.take())) == 5


def test_each_subscription_has_its_limit_and_its_messages_that_are_too_large():
    found = prefetch("drop")
    found.limit = PrefetchLimit(messages=1, size=10, window="a byte")
    second = found.share("2")
    found.feed(memoryview(of("2", 1, b"x" * 2000) + of("1", 2, b"x" * 2000) + of("2", 3)))
    for inbox, identifier in ((second, b"1"), (found, b"2")):
        (oversized,) = inbox.take_oversized()
        assert oversized.identifier == identifier
    for number in range(4, 40):
        found.feed(memoryview(of("2", number)))
    assert second.waiting()[0] == 37
    found.feed(memoryview(of("1", 40) + of("2", 41)))
    found.feed(memoryview(of("1", 42) + of("2", 43)))
    with pytest.raises(PrefetchExceededError, match="a byte"):
        found.feed(memoryview(of("1", 44)))


# --- the messages that wait ------------------------------------------------------------------------

MB = 1 << 20


@pytest.mark.parametrize(
    ("dialect", "told", "messages", "size", "exceeded"),
    [
        (ARTEMIS, 100 * MB, 1_000_000, 400 * MB, False),
        (ARTEMIS, 100 * MB, 1_000_000, 400 * MB + 1, True),
        # a small window: what every driver has room for is not compared
        (ARTEMIS, 1, 1_000_000, 64 * MB, False),
        (ARTEMIS, 1, 1_000_000, 64 * MB + 1, True),
        # the message that crosses the window may have any size
        (ARTEMIS, 1, 1, 1_000 * MB, False),
        (ARTEMIS, 1, 2, 1_000 * MB, True),
        # Classic and RabbitMQ count messages, of any size
        (CLASSIC, 1_000, 4_000, 4_000 * MB, False),
        (CLASSIC, 1_000, 4_001, 4_001 * MB, True),
        (CLASSIC, 1_000, 4_001, 64 * MB, False),
        (RABBITMQ, 1, 4, 400 * MB, False),
        (RABBITMQ, 1, 5, 500 * MB, True),
    ],
)
def test_a_multiple_of_the_window_in_the_unit_that_the_broker_counts(dialect, told, messages, size, exceeded):
    assert limit_of(dialect, told).is_exceeded(messages, size) is exceeded


def test_before_a_subscription_only_probes_and_replies_come():
    assert not NOT_SUBSCRIBED.is_exceeded(100, 1_000 * MB)
    assert NOT_SUBSCRIBED.is_exceeded(101, 65 * MB)


def test_three_windows_may_be_in_flight_each_with_the_message_that_crosses_it():
    limit = limit_of(ARTEMIS, 100 * MB)
    limit.require(1_000_000, 3 * (100 + 100) * MB, max_message_bytes=100 * MB)
    limit.require(6, 3 * (1 + 100) * MB, max_message_bytes=100 * MB)
    with pytest.raises(PrefetchExceededError, match=r"1,000,000 messages .* window of 104,857,600 bytes"):
        limit.require(1_000_000, 701 * MB, max_message_bytes=100 * MB)


def test_the_error_has_its_code_the_window_and_a_remedy():
    error = str(limit_of(CLASSIC, 244).error(1_000, 65 * MB))
    assert error.startswith("[JMS_PREFETCH_EXCEEDED] The broker delivered 1,000 messages (68,157,440 bytes)")
    assert "window of 244 messages" in error
    assert "Check option broker" in error


def test_what_is_acknowledged_is_counted_off_from_the_oldest_on():
    taken = Unacknowledged()
    taken.add(0, 0)
    taken.add(2, 20)
    taken.add(4, 400)
    taken.remove(1)
    assert (taken.messages, taken.size) == (5, 410)
    taken.remove(3)
    assert (taken.messages, taken.size) == (2, 200)
    taken.remove(3)
    assert (taken.messages, taken.size) == (0, 0)
