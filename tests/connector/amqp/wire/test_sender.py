import pytest
from amqp_peer import Peer, in_transaction

from pyspark_jms.amqp.wire.link import PeerError
from pyspark_jms.amqp.wire.sender import COORDINATOR, Coordinator, Sender
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
    Target,
    TransactionalState,
    decode_performative,
)
from pyspark_jms.amqp.wire.values import Described
from pyspark_jms.blocks.block import block_of
from pyspark_jms.errors import IllegalStateError


@pytest.fixture
def peer():
    return Peer()


@pytest.fixture
def sender(peer):
    link = peer.open(max_frame_size=512).link(Sender, "s")
    link.attach_to(Target(address="q"))
    peer.attach(link, credit=100)
    peer.sent()
    return link


def test_messages_become_transfers_with_consecutive_ids(peer, sender):
    block = block_of(b"one", b"", b"three")
    assert sender.send(block, 0, 3) == 3
    assert sender.send(block, 2, 3, txn_id=b"t1") == 3
    sent = peer.sent()
    assert [payload for _, payload in sent] == [b"one", b"", b"three", b"three"]
    assert [transfer.delivery_id for transfer, _ in sent] == [0, 1, 2, 3]
    assert [transfer.delivery_tag for transfer, _ in sent] == [bytes([0, 0, 0, n]) for n in range(4)]
    assert all(transfer.settled and not transfer.more and transfer.handle == 0 for transfer, _ in sent)
    assert [transfer.state for transfer, _ in sent] == [None, None, None, in_transaction()]
    assert (sender.credit, sender.unsettled) == (96, set())


def test_no_more_than_the_credit(peer, sender):
    peer.flow(handle=0, delivery_count=0, link_credit=2)
    block = block_of(b"a", b"b", b"c")
    assert sender.send(block, 0, 3) == 2
    assert sender.send(block, 2, 3) == 2
    peer.flow(handle=0, delivery_count=2, link_credit=5)
    assert sender.send(block, 2, 3) == 3
    assert [payload for _, payload in peer.sent()] == [b"a", b"b", b"c"]


def test_credit_that_was_granted_before_the_peer_saw_our_messages(peer, sender):
    sender.send(block_of(b"a", b"b"), 0, 2)
    peer.flow(handle=0, delivery_count=0, link_credit=10)
    assert sender.credit == 8


def test_no_more_than_the_window_of_the_session(peer, sender):
    peer.flow(incoming_window=1)
    block = block_of(b"a", b"b")
    assert sender.send(block, 0, 2) == 1
    peer.flow(next_incoming_id=1, incoming_window=5)
    assert sender.send(block, 1, 2) == 2


def test_a_message_larger_than_a_frame_is_split(peer, sender):
    large = bytes(range(256)) * 5
    assert sender.send(block_of(b"small", large, b""), 0, 3, txn_id=b"t1") == 3
    data = b"".join(peer.core.data_to_send())
    peer.core._to_send.append(data)
    sizes, at = [], 0
    while at < len(data):
        sizes.append(int.from_bytes(data[at : at + 4], "big"))
        at += sizes[-1]
    assert max(sizes) <= 512
    sent = peer.sent()
    assert b"".join(payload for transfer, payload in sent if transfer.delivery_id == 1) == large
    assert [transfer.more for transfer, _ in sent if transfer.delivery_id == 1] == [True] * 2 + [False]
    assert [transfer.delivery_id for transfer, _ in sent] == [0, 1, 1, 1, 2]


def test_outcomes_of_unsettled_messages(peer, sender):
    sender.send(block_of(b"a", b"b", b"c"), 0, 3, settled=False)
    assert sender.unsettled == {0, 1, 2}
    peer.outcome(0, Accepted())
    peer.outcome(1, Rejected(error=Error(condition="amqp:resource-limit-exceeded", description="full")), last=2)
    assert sender.unsettled == set()
    assert sender.rejection == PeerError("amqp:resource-limit-exceeded", "full")


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (Rejected(), "amqp:rejected"),
        (Released(), "amqp:released"),
        (Modified(delivery_failed=True, undeliverable_here=True), "amqp:modified"),
        (None, "amqp:illegal-state"),
        (Received(section_number=0, section_offset=9), "amqp:illegal-state"),
        (Declared(txn_id=b"t"), "amqp:not-implemented"),
        (TransactionalState(txn_id=b"t1", outcome=Released()), "amqp:released"),
        (TransactionalState(txn_id=b"t1"), "amqp:illegal-state"),
    ],
)
def test_no_outcome_but_accepted_is_a_success(peer, sender, state, reason):
    sender.send(block_of(b"a", b"b", b"c"), 0, 3, settled=False)
    peer.outcome(0, TransactionalState(txn_id=b"t1", outcome=Accepted()), last=1)
    assert sender.rejection is None
    peer.outcome(2, state)
    assert (sender.unsettled, sender.rejection.condition) == (set(), reason)


def test_an_outcome_of_an_unknown_type_is_named(peer, sender):
    sender.send(block_of(b"a"), 0, 1, settled=False)
    peer.outcome(0, Described("vendor:parked:list", []))
    assert "vendor:parked:list" in sender.rejection.description


@pytest.mark.parametrize("state", [None, Received(section_number=0, section_offset=9)])
def test_a_message_that_is_not_settled_yet_has_no_outcome(peer, sender, state):
    sender.send(block_of(b"a"), 0, 1, settled=False)
    peer.send(Disposition(role=True, first=0, state=state))
    assert (sender.unsettled, sender.rejection) == ({0}, None)
    peer.send(Disposition(role=True, first=0, state=Accepted()))
    assert (sender.unsettled, sender.rejection) == (set(), None)


def test_a_message_in_pieces_is_sent_as_one(peer, sender):
    large = bytes(range(256)) * 5
    sender.send_pieces([b"head", memoryview(large), b""], txn_id=b"t1")
    sender.send_pieces([b"a", b"b"])
    sender.send_pieces([])
    sent = peer.sent()
    assert b"".join(payload for transfer, payload in sent if transfer.delivery_id == 0) == b"head" + large
    assert [transfer.more for transfer, _ in sent] == [True, True, False, False, False]
    assert [payload for _, payload in sent[3:]] == [b"ab", b""]
    assert [transfer.delivery_id for transfer, _ in sent] == [0, 0, 0, 1, 2]
    assert {transfer.state for transfer, _ in sent[:3]} == {in_transaction()}
    assert (sender.credit, sender.delivery_count) == (97, 3)


# --- transactions -----------------------------------------------------------------------------------


@pytest.fixture
def coordinator(peer):
    link = peer.open().link(Coordinator, "c")
    link.attach_to(COORDINATOR)
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
    link.attach_to(COORDINATOR)
    [(attach, _)] = peer.sent()
    assert isinstance(attach, Attach)
    assert attach.target.capabilities == ("amqp:local-transactions",)


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
