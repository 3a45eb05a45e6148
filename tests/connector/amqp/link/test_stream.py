"""The thread of a connection, against a socket that does what a test tells it."""

import contextlib
import socket
import threading
import time

import pytest
from waiting import wait_until

from pyspark_jms.amqp.link.stream import Stream
from pyspark_jms.network.address import Address


class Endpoint:
    def __init__(self):
        self.received = bytearray()
        self.outgoing = []
        self.ended = threading.Event()
        self.reason = None
        self.ticks = 0

    def receive(self, data):
        if bytes(data) == b"break":
            raise ValueError
        self.received += data

    def to_send(self):
        outgoing, self.outgoing = self.outgoing, []
        return outgoing

    def tick(self, _):
        self.ticks += 1
        return 0.05

    def lost(self, reason):
        self.reason = reason
        self.ended.set()


@pytest.fixture
def pair():
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        stream = Stream(Address(*server.getsockname(), protocol="amqp"), context=None, connect_timeout=10)
        stack.callback(stream.close)
        peer = stack.enter_context(server.accept()[0])
        peer.settimeout(20)
        endpoint = Endpoint()
        stream.start(endpoint)
        yield stream, endpoint, peer


def test_bytes_in_and_out(pair):
    stream, endpoint, peer = pair
    peer.sendall(b"hello")
    wait_until(lambda: endpoint.received == b"hello")
    endpoint.outgoing = [b"an", bytearray(b"swer")]
    stream.wake()
    assert peer.recv(6, socket.MSG_WAITALL) == b"answer"


def test_more_than_a_socket_takes_at_once(pair):
    stream, endpoint, peer = pair
    whole = bytes(range(256)) * 80_000
    endpoint.outgoing = [whole]
    stream.wake()
    got = bytearray()
    while len(got) < len(whole):
        got += peer.recv(1 << 20)
    assert got == whole


def test_the_clock_is_looked_at_when_nothing_happens(pair):
    _, endpoint, _ = pair
    wait_until(lambda: endpoint.ticks > 3)


def test_the_peer_s_end_is_told_once(pair):
    _, endpoint, peer = pair
    peer.close()
    assert endpoint.ended.wait(20)
    assert endpoint.reason is None


def test_an_error_ends_the_thread_and_is_told(pair):
    _, endpoint, peer = pair
    peer.sendall(b"break")
    assert endpoint.ended.wait(20)
    assert isinstance(endpoint.reason, ValueError)


def test_closed_from_this_side(pair):
    stream, endpoint, peer = pair
    stream.close()
    stream.close()
    assert endpoint.ended.wait(20)
    assert peer.recv(1) == b""
    assert not [thread for thread in threading.enumerate() if thread is stream._thread]


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    began = time.monotonic()
    with pytest.raises(ConnectionRefusedError):
        Stream(Address("127.0.0.1", port, protocol="amqp"), context=None, connect_timeout=10)
    assert time.monotonic() - began < 10
