"""Frames of AMQP are held from their first byte on, so that heart-beats can go before them."""

import pytest
from amqp_peer import Peer, split
from frames import CLOSE, DECLARE, DISCHARGE, DISPOSITION, LOCK

from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sender import COORDINATOR, Coordinator


@pytest.fixture
def sent():
    """A lock, acknowledgements in a transaction, the next one, and the end, as our core writes them."""
    peer = Peer()
    session = peer.open()
    receiver, coordinator = session.link(Receiver, "r"), session.link(Coordinator, "c")
    receiver.attach_to(None)
    peer.sent()
    coordinator.attach_to(COORDINATOR)
    peer.attach(coordinator, credit=10)
    coordinator.declare()
    peer.declared(0)
    peer.sent()
    session.link(Receiver, "token").attach_to(None)
    receiver.accept([number.to_bytes(4, "big") for number in (1, 2, 4, 5)], b"t1")
    coordinator.discharge(b"t1")
    coordinator.declare()
    peer.core.close()
    return b"".join(peer.core.data_to_send())


@pytest.mark.parametrize(("frame", "position"), [(LOCK, 0), (DISPOSITION, 1), (DISCHARGE, 3), (DECLARE, 4), (CLOSE, 5)])
def test_a_frame_is_found_at_its_first_byte(sent, frame, position):
    at = sent.index(frame.pattern) - frame.back
    assert len(split(sent[:at])) == position
    assert len(split(sent[at:])) == len(split(sent)) - position
