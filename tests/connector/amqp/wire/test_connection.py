"""A connection from its first byte to its last, cut anywhere, and beside Apache Qpid Proton as the peer."""

import pytest
from amqp_peer import Peer, connection

from pyspark_jms.amqp.wire.definitions import Accepted, Error, Source, Target
from pyspark_jms.amqp.wire.frames import AMQP_HEADER, EMPTY_FRAME, SASL_HEADER, frame
from pyspark_jms.amqp.wire.link import PeerError
from pyspark_jms.amqp.wire.performatives import Begin, Close, Open, SaslInit, SaslMechanisms
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.sender import Sender
from pyspark_jms.amqp.wire.states import ConnectionState, EndpointState
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
    assert (peer.core.peer.max_frame_bytes, peer.core.peer.idle_seconds) == (4096, 30.0)
    assert peer.core.session.max_payload == 4096
    peer.core.close()
    assert peer.sent()[-1][0] == Close()
    peer.send(Close())
    assert (peer.core.state, peer.core.error) == (ConnectionState.CLOSED, None)


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
        from pyspark_jms.amqp.wire.performatives import SaslOutcome

        # Artemis sends its protocol header after the refusal, often in the same segment.
        peer.core.receive_data(frame(0, SaslOutcome(code=code), sasl=True) + AMQP_HEADER)
    assert peer.core.state is ConnectionState.CLOSED
    assert peer.core.error.condition == "amqp:unauthorized-access"


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
        self.core._login = type(self.core._login)()
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
    first, last = (int.from_bytes(block.ids[at], "big") for at in (0, -1))
    ours.accept([(first, last)])
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
