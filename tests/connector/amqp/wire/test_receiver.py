"""A receiving link, and transfer frames → messages of a block, by the fast path and by the general one."""

import io
import struct

import pytest
from amqp_peer import Peer

from pyspark_jms.amqp.wire.receiver import Receiver, Transfers, ranges_of
from pyspark_jms.amqp.wire.types import (
    Accepted,
    Disposition,
    Flow,
    Limits,
    Released,
    Source,
    TransactionalState,
    Transfer,
    frame,
)
from pyspark_jms.errors import MalformedFrameError, MessageTooLargeError, PrefetchExceededError


@pytest.fixture
def peer():
    return Peer()


@pytest.fixture
def receiver(peer):
    link = peer.open().link(Receiver, "r")
    link.attach_to(Source(address="q", capabilities=("queue",)))
    peer.attach(link)
    return link


def flows(peer):
    return [each for each, _ in peer.sent() if isinstance(each, Flow) and each.handle is not None]


def test_the_source_comes_back(receiver):
    assert receiver.remote_source == Source(address="q", capabilities=("queue",))


def test_credit_is_used_up_by_messages(peer, receiver):
    receiver.grant(3)
    [flow] = flows(peer)
    assert (flow.link_credit, flow.delivery_count, flow.drain, flow.next_incoming_id) == (3, 0, False, 1)
    for number in range(2):
        peer.transfer(number, b"x")
    assert (receiver.credit, receiver.received, len(receiver.transfers)) == (1, 2, 2)
    receiver.grant(5)
    [flow] = flows(peer)
    assert (flow.link_credit, flow.delivery_count, flow.next_incoming_id) == (5, 2, 3)


def test_a_message_of_several_frames_uses_one_credit(peer, receiver):
    receiver.grant(2)
    peer.transfer(0, b"a", more=True)
    assert (receiver.credit, receiver.received) == (2, 0)
    peer.send(Transfer(handle=0, more=False), payload=b"b")
    assert (receiver.credit, receiver.received) == (1, 1)
    assert receiver.transfers.take().message(0) == b"ab"


BEYOND = r"\[JMS_PREFETCH_EXCEEDED\] .*link 'r' beyond the credit.*transfer-limit-exceeded"


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([], id="before any credit"),
        pytest.param(["grant 10", "grant 0", "take 20"], id="Artemis sends as much again after less credit"),
        pytest.param(["grant 10", "grant 0", "take 15", "grant 1", "take 6"], id="a higher credit adds nothing"),
        pytest.param(["grant 50", "drain 10", "take 1", "drained 10"], id="an answered drain takes all credit back"),
        # A drain that was not answered in time is sent again, and then the first answer comes: 7 of 10. The peer's
        # count stands at 10, and the second drain allows 13.
        pytest.param(["drain 10", "take 3", "drain 10", "drained 10", "take 3"], id="an answer to an earlier drain"),
        pytest.param(["grant 5", "take 5", "drain 1", "drained 1", "take 1"], id="a count that goes back"),
    ],
)
def test_the_message_after_these_steps_is_beyond_the_credit(peer, receiver, steps):
    for step in steps:
        act, count = step.split()
        if act == "take":
            for number in range(receiver.received, receiver.received + int(count)):
                peer.transfer(number, b"x")
        elif act == "drained":
            drained(peer, int(count))
        else:
            getattr(receiver, act)(int(count))
    received = receiver.received
    with pytest.raises(PrefetchExceededError, match=BEYOND):
        peer.transfer(received, b"x")
    assert receiver.received == received


@pytest.mark.parametrize("more", [False, True])
def test_a_message_beyond_the_credit_is_an_error_at_its_first_transfer(peer, receiver, more):
    receiver.grant(2)
    for number in range(2):
        peer.transfer(number, b"x")
    with pytest.raises(PrefetchExceededError, match=BEYOND):
        peer.transfer(2, b"x", more=more)
    assert not receiver.transfers.is_inside_message


def test_a_peer_may_use_the_credit_that_it_had_before_a_lower_one_arrived(peer, receiver):
    receiver.grant(10)
    peer.transfer(0, b"x")
    receiver.grant(2)
    for number in range(1, 10):  # sent before the peer has read the second flow
        peer.transfer(number, b"x")
    assert (receiver.received, receiver.credit) == (10, 0)


def test_a_message_that_a_drain_was_answered_in_the_middle_of_ends_as_it_began(peer, receiver):
    receiver.drain(10)
    peer.transfer(0, b"a", more=True)
    drained(peer, 10)
    peer.send(Transfer(handle=0, more=False), payload=b"b")
    assert receiver.transfers.take().message(0) == b"ab"
    with pytest.raises(PrefetchExceededError, match=BEYOND):
        peer.transfer(1, b"x")


def test_the_credit_is_counted_beyond_the_largest_delivery_count(peer):
    link = peer.open().link(Receiver, "r")
    link.attach_to(Source(address="q"))
    peer.attach(link, initial_delivery_count=(1 << 32) - 2)
    link.drain(4)
    for number in range(3):
        peer.transfer(number, b"x")
    drained(peer, 2)
    link.grant(1)
    peer.transfer(3, b"x")
    with pytest.raises(PrefetchExceededError, match=BEYOND):
        peer.transfer(4, b"x")


def test_a_peer_that_ignores_credit_cannot_fill_the_memory(peer, receiver):
    receiver.grant(4)
    flood = b"".join(
        frame(0, Transfer(handle=0, delivery_id=n, delivery_tag=b"t", message_format=0), bytes(50_000))
        for n in range(100)
    )
    read = 1 << 18  # as much as the connection reads at once
    reads = (peer.core.receive_data(flood[begin : begin + read]) for begin in range(0, len(flood), read))
    with pytest.raises(PrefetchExceededError, match=BEYOND):
        list(reads)
    assert receiver.transfers.size <= 4 * 50_000 + read


def test_a_first_transfer_needs_a_delivery_id(peer, receiver):
    receiver.grant(1)
    with pytest.raises(MalformedFrameError, match="delivery-id"):
        peer.send(Transfer(handle=0), payload=b"x")


def drained(peer, count):
    peer.flow(handle=0, delivery_count=count, link_credit=0, drain=True)


def test_an_answered_drain_without_messages_proves_an_empty_queue(peer, receiver):
    receiver.drain(10)
    [flow] = flows(peer)
    assert (flow.drain, flow.link_credit) == (True, 10)
    assert receiver.is_draining
    drained(peer, 10)
    assert (receiver.is_draining, receiver.proven_empty, receiver.delivery_count, receiver.credit) == (False, 1, 10, 0)


def test_an_answered_drain_with_messages_proves_nothing(peer, receiver):
    receiver.drain(10)
    peer.transfer(0, b"x")
    drained(peer, 10)
    assert (receiver.is_draining, receiver.proven_empty) == (False, 0)
    receiver.drain(10)
    drained(peer, 20)
    assert receiver.proven_empty == 1


def test_the_late_end_of_a_drain_whose_credit_was_used_up_proves_nothing(peer, receiver):
    """Artemis answers the next drain with it, at once and without messages, with thousands left."""
    receiver.drain(1)
    peer.transfer(0, b"x")
    assert not receiver.is_draining  # no answer will come
    receiver.drain(10)
    drained(peer, 11)
    assert receiver.proven_empty == 0
    receiver.drain(10)
    drained(peer, 21)
    assert receiver.proven_empty == 1


def test_a_drain_sent_again_needs_another_one(peer, receiver):
    receiver.drain(10)
    receiver.drain(10)
    drained(peer, 10)
    assert receiver.proven_empty == 0


def test_a_flow_of_the_peer_that_ends_no_drain(peer, receiver):
    peer.flow(handle=0, delivery_count=5, link_credit=0, drain=True)
    assert (receiver.delivery_count, receiver.proven_empty) == (0, 0)


def ids(*numbers):
    return [number.to_bytes(4, "big") for number in numbers]


@pytest.mark.parametrize(
    ("numbers", "ranges"),
    [
        ([], []),
        ([5], [(5, 5)]),
        ([0, 1, 2], [(0, 2)]),
        ([0, 1, 3, 4, 9], [(0, 1), (3, 4), (9, 9)]),
        ([2, 1, 0], [(2, 2), (1, 1), (0, 0)]),
        ([(1 << 32) - 1, 0, 1], [((1 << 32) - 1, (1 << 32) - 1), (0, 1)]),
    ],
)
def test_consecutive_ids_are_one_range(numbers, ranges):
    assert ranges_of(ids(*numbers)) == ranges


def test_acceptances_are_settled_ranges(peer, receiver):
    receiver.accept(ids(0, 1, 2, 3, 4, 7))
    receiver.accept(ids(8, 9), b"t1")
    receiver.release(ids(10, 11))
    expected = [
        (0, 4, Accepted()),
        (7, 7, Accepted()),
        (8, 9, TransactionalState(txn_id=b"t1", outcome=Accepted())),
        (10, 11, Released()),
    ]
    assert [each for each, _ in peer.sent()] == [
        Disposition(role=True, first=first, last=last, settled=True, state=state) for first, last, state in expected
    ]


# --- from transfer frames to whole messages ---------------------------------------------------------


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
