"""A connection from its first byte to its last, cut anywhere, and beside Apache Qpid Proton as the peer."""

from array import array
from random import Random

import pytest
from amqp_peer import Peer, connection

from pyspark_jms.amqp.wire.link import PeerError
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sasl import Login, SaslExchange
from pyspark_jms.amqp.wire.sender import COORDINATOR, Coordinator, Sender
from pyspark_jms.amqp.wire.states import ConnectionState, EndpointState
from pyspark_jms.amqp.wire.types import (
    AMQP_HEADER,
    EMPTY_FRAME,
    MAX_FRAME_BYTES,
    SASL_HEADER,
    Accepted,
    Attach,
    Begin,
    Close,
    Declared,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    SaslInit,
    SaslMechanisms,
    Source,
    Target,
    Transfer,
    frame,
)
from pyspark_jms.amqp.wire.values import encode
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import MalformedFrameError


def test_opened_and_closed_by_us():
    peer = Peer()
    peer.log_in()
    data = b"".join(peer.core.data_to_send())
    assert data.startswith(SASL_HEADER)
    assert AMQP_HEADER in data
    peer.core._to_send.append(data)
    assert [type(each) for each, _ in peer.sent()] == [SaslInit, Open, Begin]
    peer.core.receive_data(AMQP_HEADER)
    peer.send(Open(container_id="p", max_frame_size=4096, idle_time_out=30_000, properties={"product": "x"}))
    assert peer.core.state is ConnectionState.OPEN
    assert (peer.core.session.max_payload, peer.core.peer.idle_seconds) == (4096, 30.0)
    peer.core.close()
    assert peer.sent()[-1][0] == Close()
    peer.send(Close())
    assert (peer.core.state, peer.core.error) == (ConnectionState.CLOSED, None)


@pytest.mark.parametrize(("stated", "seconds"), [(1, 1.0), (999, 1.0), (1500, 1.5), (0, None), (None, None)])
def test_the_idle_time_out_of_the_peer_has_a_floor(stated, seconds):
    peer = Peer()
    peer.open(idle_time_out=stated)
    assert peer.core.peer.idle_seconds == seconds


def test_closed_by_the_peer_with_a_reason():
    peer = Peer()
    session = peer.open()
    peer.send(Close(error=Error(condition="amqp:connection:forced", description="stopping")))
    assert (peer.core.state, session.state) == (ConnectionState.CLOSED, EndpointState.ENDED)
    assert peer.core.error == PeerError("amqp:connection:forced", "stopping")
    assert peer.sent()[-1][0] == Close()


@pytest.mark.parametrize(("mechanisms", "code"), [(("PLAIN",), 1), (("SCRAM-SHA-1",), 0)])
def test_a_refused_login(mechanisms, code):
    peer = Peer()
    peer.core.start()
    peer.send(SaslMechanisms(sasl_server_mechanisms=mechanisms), sasl=True, before=SASL_HEADER)
    if mechanisms == ("PLAIN",):
        from pyspark_jms.amqp.wire.types import SaslOutcome

        # Artemis sends its protocol header after the refusal, often in the same segment.
        peer.core.receive_data(frame(0, SaslOutcome(code=code), sasl=True) + AMQP_HEADER)
    assert peer.core.state is ConnectionState.CLOSED
    assert peer.core.error.condition == "amqp:unauthorized-access"
    offers = f"The server offers {mechanisms[0]}; this login can use SCRAM-SHA-512, "
    shown = "the login was refused (PLAIN)" if mechanisms == ("PLAIN",) else offers
    assert shown in peer.core.error.description


def test_a_login_without_a_password_and_a_server_with_many_mechanisms():
    peer = Peer()
    peer.core._exchange = SaslExchange(Login(external=True), "host")
    peer.core.start()
    offered = tuple(f"SCRAM-{n}" for n in range(100))
    peer.send(SaslMechanisms(sasl_server_mechanisms=offered), sasl=True, before=SASL_HEADER)
    assert peer.core.error.description.endswith(", SCRAM-9; this login can use EXTERNAL, ANONYMOUS")


def test_a_password_is_not_shown_in_what_is_to_send():
    peer = Peer()
    peer.core.start()
    peer.send(SaslMechanisms(sasl_server_mechanisms=("PLAIN",)), sasl=True, before=SASL_HEADER)
    assert "secret" not in repr(peer.core.data_to_send())


def test_empty_frames():
    peer = Peer()
    peer.core.keep_alive()
    assert peer.core.data_to_send() == []
    peer.open()
    peer.core.keep_alive()
    assert peer.core.data_to_send() == [EMPTY_FRAME]
    peer.core.receive_data(EMPTY_FRAME * 3)
    assert peer.core.state is ConnectionState.OPEN


def test_the_end_of_the_bytes():
    peer = Peer()
    session = peer.open()
    peer.core.receive_end()
    assert (peer.core.state, session.state) == (ConnectionState.CLOSED, EndpointState.ENDED)
    assert peer.core.error is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"HTTP/1.1 400", "do not begin with AMQP"), (AMQP_HEADER, "protocol header"), (b"AMQP\0\0\x09\1", "header")],
)
def test_a_peer_that_speaks_something_else(data, reason):
    core = connection()
    core.start()
    with pytest.raises(MalformedFrameError, match=reason):
        core.receive_data(data)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 50, 100, 1000])
def test_bytes_in_pieces(size):
    """What a peer sends, cut anywhere: messages of one frame and one of several."""
    peer = Peer()
    link = peer.open().link(Receiver, "r")
    link.attach_to(Source(address="q"))
    peer.attach(link)
    link.grant(10)
    whole, core = bytearray(), peer.core
    peer.core = type("Recorder", (), {"receive_data": lambda self, data: whole.extend(data)})()
    peer.transfer(0, b"one")
    peer.transfer(1, b"tw", more=True)
    peer.transfer(1, b"o")
    peer.transfer(2, b"three")
    for begin in range(0, len(whole), size):
        core.receive_data(bytes(whole[begin : begin + size]))
    block = link.transfers.take()
    assert [block.message(index) for index in range(len(block))] == [b"one", b"two", b"three"]


# --- Apache Qpid Proton as the peer -----------------------------------------------------------------------


class Proton:
    """The server's side in Proton's engine, without a socket."""

    def __init__(self, proton):
        self.proton = proton
        self.core = connection()
        self.transport = proton.Transport(proton.Transport.SERVER)
        sasl = self.transport.sasl()
        sasl.allowed_mechs("ANONYMOUS")
        self.connection = proton.Connection()
        self.connection.container = "proton"
        self.transport.bind(self.connection)
        self.core._exchange = SaslExchange(Login(), "host")
        self.core.start()

    def pump(self):
        """Move bytes until neither side has any."""
        moved = True
        while moved:
            data = b"".join(self.core.data_to_send())
            if data:
                self._push(data)
            back = self.transport.peek(1 << 20) if self.transport.pending() > 0 else b""
            if back:
                self.transport.pop(len(back))
                self.core.receive_data(back)
            moved = bool(data or back)

    def _push(self, data):
        while data:
            room = self.transport.capacity()
            assert room > 0
            self.transport.push(data[:room])
            data = data[room:]

    def opened(self):
        self.pump()
        self.connection.open()
        session = self.connection.session_head(0)
        session.open()
        self.pump()
        assert self.core.state is ConnectionState.OPEN
        return session

    def attached(self):
        self.pump()
        link = self.connection.link_head(0)
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        link.open()
        self.pump()
        return link


@pytest.fixture
def judge():
    return Proton(pytest.importorskip("proton"))


def test_proton_receives_what_we_send(judge):
    judge.opened()
    ours = judge.core.session.link(Sender, "s")
    ours.attach_to(Target(address="q"))
    theirs = judge.attached()
    assert theirs.remote_target.address == "q"
    theirs.flow(10)
    judge.pump()
    bodies = [b"\x00\x53\x77" + encode(text) for text in ("one", "x" * 100_000, "three")]
    ends = [sum(map(len, bodies[: n + 1])) for n in range(3)]
    block = MessageBlock(b"".join(bodies))
    block.ends.extend(ends)
    assert ours.send(block, 0, 3, settled=False) == 3
    judge.pump()
    received = []
    while (delivery := theirs.current) is not None and delivery.readable:
        message = judge.proton.Message()
        message.decode(theirs.recv(delivery.pending))
        received.append(message.body)
        delivery.update(delivery.ACCEPTED)
        theirs.advance()
        delivery.settle()
    judge.pump()
    assert received == ["one", "x" * 100_000, "three"]
    assert (ours.unsettled, ours.rejection, ours.credit) == (set(), None, 7)


def test_we_receive_what_proton_sends_and_settle_it(judge):
    judge.opened()
    ours = judge.core.session.link(Receiver, "r")
    ours.attach_to(Source(address="q"))
    theirs = judge.attached()
    ours.grant(5)
    judge.pump()
    assert theirs.credit == 5
    sent = []
    for number, text in enumerate(["one", "x" * 300_000, "three"]):
        delivery = theirs.delivery(f"tag{number}")
        sent.append(judge.proton.Message(body=text).encode())
        theirs.send(sent[-1])
        theirs.advance()
        assert delivery is not None
    judge.pump()
    block = ours.transfers.take()
    assert [block.message(index) for index in range(len(block))] == sent
    ours.accept(block.ids)
    judge.pump()
    assert ours.credit == 2
    ours.drain(2)
    judge.pump()
    theirs.drained()
    judge.pump()
    assert ours.proven_empty == 1


def test_proton_refuses_a_link(judge):
    judge.opened()
    ours = judge.core.session.link(Receiver, "r")
    ours.attach_to(Source(address="q"))
    judge.pump()
    link = judge.connection.link_head(0)
    link.open()
    link.condition = judge.proton.Condition("amqp:not-found", "no queue")
    link.close()
    judge.pump()
    assert ours.error == PeerError("amqp:not-found", "no queue")
    assert ours.state is EndpointState.ENDED
    assert Accepted() is not None


# --- mutated frames -------------------------------------------------------------------------------------


def opened():
    """A peer with a receiver that has credit, a sender with an unsettled message, and a coordinator."""
    peer = Peer(connection(max_message_bytes=1 << 16))
    session = peer.open()
    receiver, sender = session.link(Receiver, "in"), session.link(Sender, "out")
    coordinator = session.link(Coordinator, "transactions")
    for link, attach in ((receiver, receiver.attach_to), (sender, sender.attach_to)):
        attach(Source(address="q") if link is receiver else Target(address="q"))
        peer.attach(link, credit=None if link is receiver else 10)
    coordinator.attach_to(COORDINATOR)
    peer.attach(coordinator, credit=10)
    receiver.grant(1_000)
    message = b"\x00\x53\x77\xa1\x01x"
    sender.send(MessageBlock(message, ends=array("q", [len(message)])), 0, 1, settled=False)
    coordinator.declare()
    return peer


def frames_of_a_peer():
    """One of each kind, as bytes."""
    tag = {"delivery_tag": b"\0", "message_format": 0}
    windows = {"next_incoming_id": 0, "incoming_window": 9, "next_outgoing_id": 1, "outgoing_window": 9}
    source = Source(address="q", filter={"f": 1})
    performatives = [
        (Transfer(handle=0, delivery_id=7, **tag), b"\x00\x53\x77\xa1\x05hello"),
        (Transfer(handle=0, delivery_id=8, more=True, **tag), b"\x00\x53\x77\xb1\x00\x00"),
        (Transfer(handle=0), b"more of it"),
        (
            Flow(next_incoming_id=0, incoming_window=9, next_outgoing_id=1, outgoing_window=9, handle=1, link_credit=5),
            b"",
        ),
        (Flow(**windows, handle=0, drain=True), b""),
        (Disposition(role=True, first=0, last=3, settled=True, state=Accepted()), b""),
        (Disposition(role=True, first=1, settled=True, state=Declared(txn_id=b"t1")), b""),
        (Detach(handle=0, closed=True, error=Error(condition="amqp:resource-deleted", description="gone")), b""),
        (
            Attach(name="in", handle=5, role=False, source=source, initial_delivery_count=0),
            b"",
        ),
        (End(error=Error(condition="amqp:internal-error")), b""),
        (Close(error=Error(condition="amqp:connection:forced", description="stopping")), b""),
        (Open(container_id="p", properties={"product": "x"}), b""),
        (Begin(remote_channel=0, next_outgoing_id=1, incoming_window=9, outgoing_window=9), b""),
    ]
    return [frame(0, performative, payload) for performative, payload in performatives] + [EMPTY_FRAME]


def mutated(random, frames):
    data = bytearray(b"".join(random.choices(frames, k=random.choice((1, 1, 2, 5)))))
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        data[random.randrange(len(data))] = random.choice((0, 0x40, 0x45, 0x7F, 0xFF, random.randrange(256)))
    if random.random() < 0.1:
        del data[random.randrange(len(data)) :]
    return bytes(data)


def test_mutated_frames_are_taken_or_refused(examples):
    """Each input changes the connection, or ends it with an error that names what is wrong. Nothing else happens."""
    random, frames, count = Random(11), frames_of_a_peer(), examples(12_000)
    peer, ended = opened(), 0
    for _ in range(count):
        try:
            peer.core.receive_data(mutated(random, frames))
            peer.core.data_to_send()
        except MalformedFrameError:
            peer, ended = opened(), ended + 1
        if peer.core.state is ConnectionState.CLOSED or peer.core.session.state is not EndpointState.ACTIVE:
            peer = opened()
        assert len(peer.core._pending) <= MAX_FRAME_BYTES
        transfers = peer.core.session._links[0].transfers if peer.core.session._links else None
        assert transfers is None or transfers.size < 1 << 20
        if transfers is not None and len(transfers) > 100:
            transfers.take()
    assert ended > count // 50


# --- the session ------------------------------------------------------------------------------------


@pytest.fixture
def peer():
    """With a session."""
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


def test_the_handle_of_an_ended_link_is_used_again(peer):
    """Whoever waits for a lock attaches many times, and handles are few."""
    first, second = receiver(peer, "a"), receiver(peer, "b")
    first.detach()
    assert receiver(peer, "c").handle == 2
    peer.send(Detach(handle=0, closed=True))
    third = receiver(peer, "a")
    assert (third.handle, third.is_ready, second.is_ready) == (0, True, True)


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
