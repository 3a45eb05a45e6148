import pytest
from amqp_peer import Peer

from pyspark_jms.amqp.wire.definitions import Accepted, Released, Source, TransactionalState
from pyspark_jms.amqp.wire.performatives import Disposition, Flow, Transfer
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.errors import MalformedFrameError


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


def test_a_first_transfer_needs_a_delivery_id(peer, receiver):
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
    assert (receiver.drains_answered, receiver.proven_empty) == (1, 0)
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
    assert receiver.drains_answered == 0


def test_acceptances_are_settled_ranges(peer, receiver):
    receiver.accept([(0, 4), (7, 7)])
    receiver.accept([(8, 9)], b"t1")
    receiver.release(10, 11)
    expected = [
        (0, 4, Accepted()),
        (7, 7, Accepted()),
        (8, 9, TransactionalState(txn_id=b"t1", outcome=Accepted())),
        (10, 11, Released()),
    ]
    assert [each for each, _ in peer.sent()] == [
        Disposition(role=True, first=first, last=last, settled=True, state=state) for first, last, state in expected
    ]
