import pytest
from amqp_peer import Peer

from pyspark_jms.amqp.wire.link import PeerError
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.amqp.wire.states import EndpointState
from pyspark_jms.amqp.wire.types import (
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Source,
    Target,
    Transfer,
    frame,
)
from pyspark_jms.errors import MalformedFrameError


@pytest.fixture
def peer():
    peer = Peer()
    peer.open()
    return peer


def receiver(peer, name="r", handle=None):
    link = peer.core.session.link(Receiver, name)
    link.attach_to(Source(address="q"))
    peer.attach(link, handle=handle)
    return link


def test_the_incoming_window_is_extended_at_half(peer):
    receiver(peer).grant(1000)
    peer.sent()
    for number in range(31):
        peer.transfer(number, b"x")
    assert peer.sent() == []
    peer.transfer(31, b"x")
    [(flow, _)] = peer.sent()
    assert (flow.incoming_window, flow.next_incoming_id, flow.handle) == (64, 33, None)


def test_a_narrow_window_is_not_extended(peer):
    receiver(peer).grant(1000)
    peer.sent()
    peer.core.session.narrow(2)
    [(flow, _)] = peer.sent()
    assert (flow.incoming_window, flow.handle) == (2, None)
    peer.transfer(0, b"x")
    peer.transfer(1, b"x")
    assert peer.sent() == []
    peer.core.session.narrow(None)
    [(flow, _)] = peer.sent()
    assert (flow.incoming_window, flow.next_incoming_id) == (64, 3)


def test_links_have_handles_of_their_own_and_the_peer_has_others(peer):
    first, second = receiver(peer, "a", handle=7), receiver(peer, "b", handle=3)
    assert (first.handle, second.handle) == (0, 1)
    second.grant(1)
    peer.transfer(0, b"for b", handle=3)
    assert (len(first.transfers), len(second.transfers)) == (0, 1)


def test_messages_of_several_links_in_one_read_need_no_object_each(peer, monkeypatch):
    links = [receiver(peer, name, handle=handle) for name, handle in (("a", 0), ("b", 1), ("c", 200))]
    for link in links:
        link.grant(10)
    order = [0, 0, 1, 1, 1, 2, 0, 2, 1]
    frames = [
        frame(0, Transfer(handle=(0, 1, 200)[link], delivery_id=n, delivery_tag=b"t", message_format=0), b"%d" % n * 20)
        for n, link in enumerate(order)
    ]
    monkeypatch.setattr(Receiver, "on_transfer", lambda *_: pytest.fail("the general way"))
    peer.core.receive_data(b"".join(frames))
    for link, number in zip(links, range(3), strict=True):
        block = link.transfers.take()
        assert [int.from_bytes(each) for each in block.ids] == [n for n, of in enumerate(order) if of == number]
        assert block.data == b"".join(b"%d" % n * 20 for n, of in enumerate(order) if of == number)


def test_a_name_may_be_attached_again_after_its_end(peer):
    first = receiver(peer)
    first.detach()
    peer.send(Detach(handle=0, closed=True))
    second = receiver(peer)
    assert (first.state, second.is_ready) == (EndpointState.ENDED, True)


def test_the_handle_of_an_ended_link_is_used_again(peer):
    """Whoever waits for a lock attaches many times, and handles are few."""
    first, second = receiver(peer, "a"), receiver(peer, "b")
    first.detach()
    assert receiver(peer, "c").handle == 2
    peer.send(Detach(handle=0, closed=True))
    third = receiver(peer, "a")
    assert (third.handle, third.is_ready, second.is_ready) == (0, True, True)


def test_an_echo_is_answered(peer):
    peer.flow(echo=True)
    [(flow, _)] = peer.sent()
    assert isinstance(flow, Flow)
    assert peer.sent() == []


def test_a_peer_that_asks_and_does_not_read_gets_one_answer(peer):
    receiver(peer).grant(1)
    peer.sent()
    for _ in range(1000):
        peer.flow(echo=True)
    peer.transfer(1, b"message")
    peer.flow(echo=True)
    [(flow, _)] = peer.sent()
    assert (type(flow), flow.next_incoming_id) == (Flow, 2)
    peer.flow(echo=True)
    peer.send(End())
    assert [type(each) for each, _ in peer.sent()] == [End]


def test_a_disposition_of_what_we_received_means_nothing(peer):
    receiver(peer)
    peer.send(Disposition(role=False, first=0, last=5, settled=True))
    assert peer.sent() == []


def test_the_peer_ends_the_session(peer):
    link = receiver(peer)
    peer.send(End(error=Error(condition="amqp:internal-error", description="oops")))
    assert peer.core.session.state is EndpointState.ENDED
    assert peer.core.session.error == PeerError("amqp:internal-error", "oops")
    assert not link.is_attached
    assert peer.sent()[-1][0] == End()


@pytest.mark.parametrize(
    ("performative", "reason"),
    [
        (Transfer(handle=9, delivery_id=0), "does not receive"),
        (Detach(handle=9), "not attached"),
        (Attach(name="stranger", handle=0, role=False), "answers none"),
        (Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1), "peer's start of a session"),
        (Open(container_id="again"), "peer's open of a connection"),
        (Disposition(role=True, first=0, last=(1 << 32) - 1), "more deliveries than there are"),
        (Source(), "does not belong to a session"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_frames_that_do_not_fit(peer, performative, reason):
    with pytest.raises(MalformedFrameError, match=reason):
        peer.send(performative)


def test_a_transfer_to_a_sender(peer):
    link = peer.core.session.link(Sender, "s")
    link.attach_to(Target(address="q"))
    peer.attach(link, credit=1)
    with pytest.raises(MalformedFrameError, match="receive"):
        peer.transfer(0, b"x")
