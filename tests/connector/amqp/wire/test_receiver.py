import pytest
from amqp_peer import Peer

from pyspark_jms.amqp.wire.receiver import Receiver, ranges_of
from pyspark_jms.amqp.wire.types import (
    Accepted,
    Disposition,
    Flow,
    Released,
    Source,
    TransactionalState,
    Transfer,
    frame,
)
from pyspark_jms.errors import MalformedFrameError, PrefetchExceededError


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


def test_a_message_beyond_the_credit_is_an_error(peer, receiver):
    with pytest.raises(PrefetchExceededError, match=BEYOND):
        peer.transfer(0, b"before any credit")


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


def test_a_peer_that_was_told_of_less_credit_than_it_had_used_may_send_as_much_again(peer, receiver):
    """Artemis does. Each message counts, and the next credit is granted from the new count."""
    receiver.grant(10)
    receiver.grant(0)
    for number in range(20):
        peer.transfer(number, b"x")
    with pytest.raises(PrefetchExceededError, match=BEYOND):
        peer.transfer(20, b"x")
    assert (receiver.received, receiver.credit) == (20, 0)
    flows(peer)
    receiver.grant(1)
    assert [(flow.link_credit, flow.delivery_count) for flow in flows(peer)] == [(1, 20)]


def test_a_higher_credit_does_not_make_up_for_messages_beyond_the_last(peer, receiver):
    receiver.grant(10)
    receiver.grant(0)
    for number in range(15):
        peer.transfer(number, b"x")
    receiver.grant(1)
    for number in range(15, 21):
        peer.transfer(number, b"x")
    with pytest.raises(PrefetchExceededError, match=BEYOND):
        peer.transfer(21, b"x")


def test_an_answered_drain_takes_all_credit_back(peer, receiver):
    receiver.grant(50)
    receiver.drain(10)
    peer.transfer(0, b"x")
    drained(peer, 10)
    with pytest.raises(PrefetchExceededError, match=BEYOND):
        peer.transfer(1, b"x")


def test_after_the_answer_to_an_earlier_drain_the_peer_may_use_what_the_last_one_granted_beyond_it(peer, receiver):
    """A drain that was not answered in time is sent again, and then the first answer comes."""
    receiver.drain(10)
    for number in range(3):
        peer.transfer(number, b"x")
    receiver.drain(10)
    drained(peer, 10)  # 7 of 10: the peer's count stands at 10, and the second drain allows 13
    for number in range(3, 6):
        peer.transfer(number, b"x")
    with pytest.raises(PrefetchExceededError, match=BEYOND):
        peer.transfer(6, b"x")


def test_a_message_that_a_drain_was_answered_in_the_middle_of_ends_as_it_began(peer, receiver):
    receiver.drain(10)
    peer.transfer(0, b"a", more=True)
    drained(peer, 10)
    peer.send(Transfer(handle=0, more=False), payload=b"b")
    assert receiver.transfers.take().message(0) == b"ab"
    with pytest.raises(PrefetchExceededError, match=BEYOND):
        peer.transfer(1, b"x")


def test_a_delivery_count_that_goes_back_allows_nothing(peer, receiver):
    receiver.grant(5)
    for number in range(5):
        peer.transfer(number, b"x")
    receiver.drain(1)
    drained(peer, 1)
    peer.transfer(5, b"x")
    with pytest.raises(PrefetchExceededError, match=BEYOND):
        peer.transfer(6, b"x")


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
