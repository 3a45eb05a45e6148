"""Transfer frames → messages of a block, by the fast path and by the general one."""

import io
import struct

import pytest

from pyspark_jms.amqp.wire.limits import Limits
from pyspark_jms.amqp.wire.transfers import Transfers
from pyspark_jms.amqp.wire.types import Flow, Transfer, frame
from pyspark_jms.errors import MessageTooLargeError


def test_a_message_that_never_ends_is_an_error_and_takes_no_memory():
    transfers = Transfers(Limits(max_message_bytes=100, max_delivery_bytes=1000))
    parts = (transfers.add(0, bytes(50), more=True, aborted=False) for _ in range(1000))
    with pytest.raises(MessageTooLargeError, match=r"has not ended after 1,050 bytes"):
        list(parts)
    assert len(transfers._partial) == 0


def test_transfers_without_bytes_that_never_end_are_an_error():
    transfers = Transfers(Limits(max_delivery_bytes=10))
    parts = (transfers.add(0, b"", more=True, aborted=False) for _ in range(20))
    with pytest.raises(MessageTooLargeError, match="has not ended"):
        list(parts)


def test_each_message_has_the_limit_of_a_delivery_for_itself():
    transfers = Transfers(Limits(max_delivery_bytes=100))
    for number in range(5):
        transfers.add(number, bytes(60), more=True, aborted=False)
        transfers.add(number, bytes(40), more=False, aborted=False)
    assert len(transfers) == 5


def transfer(number, payload, handle=0, **fields):
    given = {"delivery_tag": struct.pack(">I", number), "message_format": 0} | fields
    return frame(0, Transfer(handle=handle, delivery_id=number, **given), payload)


def messages(block):
    return [block.message(index) for index in range(len(block))]


@pytest.mark.parametrize("numbers", [[0, 1, 2], [254, 255, 256, 257], [70_000, 1 << 31, (1 << 32) - 1]])
def test_whole_messages_are_taken_one_after_the_other(numbers):
    transfers = Transfers(Limits())
    payloads = [b"x" * (number % 300) for number in numbers]
    buffer = bytearray(b"".join(map(transfer, numbers, payloads)))
    assert transfers.take_plain(buffer, 0) == (len(buffer), len(numbers))
    assert (len(transfers), transfers.size) == (len(numbers), sum(map(len, payloads)))
    block = transfers.take()
    assert messages(block) == payloads
    assert block.ids == [struct.pack(">I", number) for number in numbers]
    assert (len(transfers), transfers.size, transfers.total_messages) == (0, 0, len(numbers))
    assert messages(block) == payloads  # the next block has bytes of its own


@pytest.mark.parametrize("fields", [{"settled": False}, {"settled": False, "more": False}, {"message_format": None}])
def test_fields_that_say_nothing_are_plain_too(fields):
    data = bytearray(transfer(1, b"ab", **fields))
    assert Transfers(Limits()).take_plain(data, 0) == (len(data), 1)


def test_frames_of_several_shapes_are_taken_in_one_call():
    tags = [b"", b"a", b"bc", b"bc", b"d", b"e" * 100, b"f"]
    frames = [transfer(number, b"%d" % number, delivery_tag=tag) for number, tag in enumerate(tags, 254)]
    transfers, buffer = Transfers(Limits()), b"".join(frames)
    assert transfers.take_plain(memoryview(buffer), 0) == (len(buffer), len(tags))
    block = transfers.take()
    assert messages(block) == [b"254", b"255", b"256", b"257", b"258", b"259", b"260"]
    assert block.ids == [struct.pack(">I", number) for number in range(254, 261)]


@pytest.mark.parametrize("place", [*range(4, 13), *range(14, 21)])
def test_frames_of_one_shape_differ_in_their_delivery_ids_only(place):
    """Each byte from the frame's size to its tag, except the number of fields, changed in the second of two frames."""
    first, second = transfer(1000, b"one"), bytearray(transfer(1001, b"two"))
    second[place] ^= 0x01
    transfers = Transfers(Limits())
    taken = transfers.take_plain(first + second, 0)
    assert taken == ((len(first) + len(second), 2) if 16 <= place < 20 else (len(first), 1))


def test_a_cut_frame_waits():
    whole = transfer(1, b"one") + transfer(2, b"two")
    for size in range(len(whole)):
        transfers = Transfers(Limits())
        position, taken = transfers.take_plain(bytearray(whole[:size]), 0)
        assert (position, taken) == ((len(transfer(1, b"one")), 1) if size >= len(transfer(1, b"one")) else (0, 0))


OTHERS = [
    frame(0, Flow(incoming_window=1, next_outgoing_id=1, outgoing_window=1)),
    frame(1, Transfer(handle=0, delivery_id=1, delivery_tag=b"t", message_format=0), b"x" * 20),
    transfer(1, b"x", handle=3),
    transfer(1, b"x", more=True),
    transfer(1, b"x", aborted=True),
    transfer(1, b"x", delivery_tag=None),
    frame(0, Transfer(handle=0, more=False), b"x" * 20),
    bytes(40),
]


@pytest.mark.parametrize("other", OTHERS, ids=range(len(OTHERS)))
def test_other_frames_are_left(other):
    first = transfer(0, b"first")
    transfers = Transfers(Limits())
    assert transfers.take_plain(bytearray(first + other + transfer(2, b"last")), 0) == (len(first), 1)
    assert messages(transfers.take()) == [b"first"]


def test_a_message_of_several_transfers_is_joined():
    transfers = Transfers(Limits())
    assert not transfers.add(5, b"on", more=True, aborted=False)
    assert transfers.is_inside_message
    plain = bytearray(transfer(6, b"x"))
    assert transfers.take_plain(plain, 0) == (0, 0)  # not inside of a message
    assert transfers.add(None, b"e", more=False, aborted=False)
    block = transfers.take()
    assert messages(block) == [b"one"]
    assert block.ids == [b"\0\0\0\5"]


def test_an_aborted_message_is_dropped():
    transfers = Transfers(Limits())
    transfers.add(5, b"on", more=True, aborted=False)
    assert transfers.add(None, b"", more=False, aborted=True)
    assert (len(transfers), transfers.is_inside_message) == (0, False)


def test_a_message_above_the_limit_is_passed_over_and_not_kept():
    transfers = Transfers(Limits(max_message_bytes=10))
    for more in (True, True, False):
        transfers.add(7, b"x" * 6, more=more, aborted=False)
        assert len(transfers._partial or b"") <= 10
    (large,) = transfers.oversized
    assert (large.identifier, large.size, large.is_kept) == (b"\0\0\0\7", 18, False)
    assert (len(transfers), transfers.total_messages, transfers.total_bytes) == (0, 1, 0)


def test_a_message_above_the_limit_is_kept_in_a_file_if_that_is_wanted():
    transfers = Transfers(Limits(max_message_bytes=4, keep_oversized=io.BytesIO))
    for number, parts in enumerate((["abc", "def", "gh"], ["ok"], ["toolarge"])):
        for part in parts:
            transfers.add(number, part.encode(), more=part is not parts[-1], aborted=False)
    assert [large.body.getvalue() for large in transfers.oversized] == [b"abcdefgh", b"toolarge"]
    assert bytes(transfers.take().message(0)) == b"ok"


def test_a_large_message_that_is_aborted_leaves_nothing():
    transfers = Transfers(Limits(max_message_bytes=1, keep_oversized=io.BytesIO))
    transfers.add(1, b"abc", more=True, aborted=False)
    assert transfers.add(None, b"", more=False, aborted=True)
    assert transfers.oversized == []


def test_a_plain_frame_above_the_limit_goes_the_general_way():
    data = bytearray(transfer(1, b"x" * 60))
    assert Transfers(Limits(max_message_bytes=59)).take_plain(data, 0) == (0, 0)


def test_only_the_heads_of_messages_are_kept_if_no_more_is_wanted():
    plain, whole = Transfers(Limits(), head_bytes=3), b"abc" * 1_000
    buffer = transfer(1, b"one two") + transfer(2, b"") + transfer(3, whole)
    assert plain.take_plain(buffer, 0) == (len(buffer), 3)
    assert plain.add(4, whole, more=True, aborted=False) is False
    plain.add(4, whole, more=False, aborted=False)
    plain.take_plain(transfer(5, b"xyz!"), 0)
    block = plain.take()
    assert messages(block) == [b"one", b"", b"abc", b"abc", b"xyz"]
    assert block.ids == [struct.pack(">I", number) for number in range(1, 6)]
