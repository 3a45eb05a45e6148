import pytest
from amqp_peer import Peer

from pyspark_jms.amqp.wire.link import PeerError, peer_error
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.amqp.wire.states import EndpointState
from pyspark_jms.amqp.wire.types import Detach, Error, Source, Target


def attached():
    peer = Peer()
    link = peer.open().link(Receiver, "r")
    link.attach_to(Source(address="q"))
    return peer, link


def test_attached_and_detached_by_us():
    peer, link = attached()
    assert (link.state, link.is_ready) == (EndpointState.STARTING, False)
    peer.attach(link)
    assert link.is_ready
    link.detach(closed=False)
    assert peer.sent()[-1][0] == Detach(handle=0, closed=False)
    peer.send(Detach(handle=0, closed=False))
    assert (link.is_attached, link.error) == (False, None)
    link.detach()
    assert peer.sent() == []


def test_a_refused_link_is_not_ready_and_then_has_the_reason():
    peer, link = attached()
    peer.attach(link, source=None)
    assert (link.is_refused, link.is_ready) == (True, False)
    peer.send(Detach(handle=0, closed=True, error=Error(condition="amqp:not-found", description="no queue")))
    assert link.error == PeerError("amqp:not-found", "no queue")
    assert link.state is EndpointState.ENDED
    assert peer.sent()[-1][0] == Detach(handle=0, closed=True)  # §2.6.5: every detach is answered


def test_a_sender_is_refused_by_its_target():
    peer = Peer()
    link = peer.open().link(Sender, "s")
    link.attach_to(Target(address="q"))
    peer.attach(link, source=None, credit=5)
    assert link.is_ready
    other = peer.core.session.link(Sender, "other")
    other.attach_to(Target(address="q"))
    peer.attach(other, target=None)
    assert other.is_refused


@pytest.mark.parametrize("error", [None, "text"])
def test_no_error(error):
    assert peer_error(error) is None
