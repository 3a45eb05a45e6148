import pytest
from amqp_peer import Peer

from pyspark_jms.amqp.wire.link import PeerError
from pyspark_jms.amqp.wire.transactions import Coordinator
from pyspark_jms.amqp.wire.types import (
    Accepted,
    Attach,
    Declare,
    Declared,
    Discharge,
    Disposition,
    Error,
    Modified,
    Received,
    Rejected,
    Released,
    decode_performative,
)
from pyspark_jms.amqp.wire.types import Coordinator as Target
from pyspark_jms.errors import IllegalStateError


@pytest.fixture
def peer():
    return Peer()


@pytest.fixture
def coordinator(peer):
    link = peer.open().link(Coordinator, "c")
    link.attach_to_coordinator()
    peer.attach(link, credit=10)
    peer.sent()
    return link


def request(peer):
    [(transfer, payload)] = peer.sent()
    assert payload[:3] == b"\x00\x53\x77"
    assert not transfer.settled
    return decode_performative(payload, 3, len(payload))[0]


def test_it_is_attached_to_a_coordinator():
    peer = Peer()
    link = peer.open().link(Coordinator, "c")
    link.attach_to_coordinator()
    [(attach, _)] = peer.sent()
    assert isinstance(attach, Attach)
    assert attach.target == Target(capabilities=("amqp:local-transactions",))


def test_declared_and_discharged(peer, coordinator):
    declared = coordinator.declare()
    assert request(peer) == Declare()
    assert not declared.done
    peer.declared(0, b"t1")
    assert (declared.done, declared.txn_id) == (True, b"t1")
    coordinator.require_open(b"t1")
    answer = coordinator.discharge(b"t1")
    assert request(peer) == Discharge(txn_id=b"t1", fail=False)
    peer.outcome(1, Accepted())
    assert (answer.done, answer.error) == (True, None)


def test_a_refused_discharge_has_the_reason(peer, coordinator):
    coordinator.declare()
    peer.declared(0)
    answer = coordinator.discharge(b"t1", fail=True)
    peer.outcome(1, Rejected(error=Error(condition="failed", description="full")))
    assert answer.error == PeerError("failed", "full")


@pytest.mark.parametrize("state", [Released(), Modified(), None, Declared(txn_id=b"t2")])
def test_a_discharge_that_is_not_accepted_is_refused(peer, coordinator, state):
    coordinator.declare()
    peer.declared(0)
    answer = coordinator.discharge(b"t1")
    peer.send(Disposition(role=True, first=1, state=Received(section_number=0, section_offset=0)))
    assert not answer.done
    peer.outcome(1, state)
    assert answer.done
    assert answer.error
    assert not coordinator.unsettled


def test_a_declare_that_is_accepted_has_no_transaction(peer, coordinator):
    answer = coordinator.declare()
    peer.outcome(0, Accepted())
    assert (answer.done, answer.txn_id) == (True, None)
    assert answer.error


def test_a_transaction_is_not_named_after_its_discharge(peer, coordinator):
    """Artemis stores a message with an old transaction outside of any transaction."""
    coordinator.declare()
    peer.declared(0)
    coordinator.discharge(b"t1")
    peer.sent()
    for act in (coordinator.require_open, coordinator.discharge):
        with pytest.raises(IllegalStateError):
            act(b"t1")
    assert peer.sent() == []


def test_a_request_waits_for_credit(peer, coordinator):
    """Broker-J grants credit for one request at a time."""
    peer.flow(handle=0, delivery_count=0, link_credit=0)
    first, second = coordinator.declare(), coordinator.declare()
    assert not coordinator.unsettled
    peer.flow(handle=0, delivery_count=0, link_credit=1)
    assert len(coordinator.unsettled) == 1
    peer.flow(handle=0, delivery_count=1, link_credit=1)
    assert len(coordinator.unsettled) == 2
    assert not first.done
    assert not second.done
