"""The proxy in front of an echo server."""

import contextlib
import socket
import threading

import pytest
from proxy import Proxy
from waiting import wait_until


@pytest.fixture
def proxy():
    server = socket.create_server(("127.0.0.1", 0))
    threads = [threading.Thread(target=_serve, args=(server,))]
    threads[0].start()
    with Proxy(*server.getsockname()) as proxy:
        yield proxy
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    threads[0].join(10)
    assert not [thread for thread in threading.enumerate() if thread.name in {"proxy", "echo"}]


def _serve(server):
    links = []
    with contextlib.suppress(OSError):
        while True:
            link, _ = server.accept()
            links.append(threading.Thread(target=_echo, args=(link,), name="echo"))
            links[-1].start()
    for thread in links:
        thread.join(10)


def _echo(link):
    with link, contextlib.suppress(OSError):
        while data := link.recv(1024):
            link.sendall(data)


@pytest.fixture
def link(proxy):
    with socket.create_connection((proxy.host, proxy.port), 10) as link:
        yield link


def until_the_end(link):
    data = b""
    with contextlib.suppress(ConnectionError):
        while more := link.recv(1024):
            data += more
    return data


@pytest.mark.parametrize("way", ["to_broker", "to_client"])
def test_stalls_and_resumes(proxy, link, way):
    direction = getattr(proxy, way)
    direction.stall()
    link.sendall(b"hello")
    link.settimeout(0.2)
    with pytest.raises(TimeoutError):
        link.recv(1024)
    direction.resume()
    link.settimeout(10)
    assert link.recv(1024) == b"hello"


@pytest.mark.parametrize("way", ["to_broker", "to_client"])
@pytest.mark.parametrize(("included", "seen"), [(False, b"before "), (True, b"before COMMIT")])
@pytest.mark.parametrize("pieces", [[b"before COMMIT after"], [b"before CO", b"MMIT after"]])
def test_cuts_at_a_pattern_however_it_is_split(proxy, link, way, included, seen, pieces):
    direction = getattr(proxy, way)
    direction.cut_at(b"COMMIT", included=included)
    link.sendall(pieces[0])
    if len(pieces) > 1:
        assert link.recv(9) == b"before CO"
        link.sendall(pieces[1])
        seen = seen.removeprefix(b"before CO") if included else b""
    if way == "to_client":
        assert until_the_end(link) == seen
    else:
        until_the_end(link)  # the bytes of the echo are lost with the connection
    assert direction.cut_done.wait(10)
    assert direction.size == len(b"before COMMIT" if included else pieces[0][:9] if len(pieces) > 1 else b"before ")


@pytest.mark.parametrize(
    ("included", "passed", "kept"), [(False, b"1 ACK 2 ", b"ACK 3"), (True, b"1 ACK 2 ACK", b" 3")]
)
def test_holds_what_comes_from_the_nth_pattern_on_until_it_is_released(proxy, link, included, passed, kept):
    proxy.to_broker.hold_at(b"ACK", included=included, nth=2)
    link.sendall(b"1 ACK 2 ACK 3")
    assert proxy.to_broker.held.wait(10)
    assert _received(link, len(passed)) == passed
    assert proxy.to_broker.size == len(passed)
    proxy.to_broker.hold_at(b"NEXT")
    proxy.to_broker.release()
    assert _received(link, len(kept)) == kept
    link.sendall(b"ACK NEXT")
    assert proxy.to_broker.held.wait(10)
    assert _received(link, 4) == b"ACK "
    proxy.to_broker.clear()
    assert _received(link, 4) == b"NEXT"


def _received(link, length):
    data = b""
    while len(data) < length:
        data += link.recv(length - len(data))
    return data


def test_holds_in_one_connection_only(proxy, link):
    proxy.to_broker.hold_at(b"ACK")
    link.sendall(b"ACK")
    assert proxy.to_broker.held.wait(10)
    proxy.to_client.hold_at(b"RECEIPT", link=proxy.to_broker.held_link)
    with socket.create_connection((proxy.host, proxy.port), 10) as other:
        other.sendall(b"RECEIPT")
        assert _received(other, 7) == b"RECEIPT"
    proxy.to_broker.release()
    link.sendall(b" RECEIPT")
    assert _received(link, 4) == b"ACK "
    assert proxy.to_client.held.wait(10)


def test_holds_what_belongs_to_a_pattern_before_it(proxy, link):
    proxy.to_broker.hold_at(b"ACK", back=2)
    link.sendall(b"hello ..ACK")
    assert proxy.to_broker.held.wait(10)
    assert proxy.to_broker.size == len(b"hello ")
    proxy.to_broker.release()
    assert link.recv(6) == b"hello "
    assert link.recv(5, socket.MSG_WAITALL) == b"..ACK"


def test_what_is_held_when_the_link_is_cut_goes_nowhere(proxy, link):
    proxy.to_broker.hold_at(b"ACK")
    link.sendall(b"hello ACK")
    assert proxy.to_broker.held.wait(10)
    proxy.cut()
    proxy.to_broker.release()
    until_the_end(link)
    assert proxy.to_broker.size == len(b"hello ")


@contextlib.contextmanager
def connected(protocol="stomp", *, leave_open=True):
    """A proxy, a client's end of a connection through it, and the broker's end."""
    with socket.create_server(("127.0.0.1", 0)) as server, Proxy(*server.getsockname(), protocol) as proxy:
        if leave_open:
            proxy.leave_open()
        with socket.create_connection((proxy.host, proxy.port), 10) as client:
            broker, _ = server.accept()
            with broker:
                broker.settimeout(10)
                yield proxy, client, broker


@pytest.mark.deep
@pytest.mark.parametrize(
    ("protocol", "first", "beat"),
    [("stomp", b"hello", b"\n"), ("amqp", b"AMQP\0\1\0\0", b"\0\0\0\x08\x02\0\0\0")],
)
def test_leaves_the_brokers_end_open_and_beats_for_a_client_that_has_gone(protocol, first, beat):
    with connected(protocol) as (proxy, client, broker):
        assert proxy.url == f"{protocol}://{proxy.host}:{proxy.port}"
        client.sendall(first)
        assert broker.recv(1024) == first
        client.close()
        for _ in range(3):
            assert broker.recv(len(beat), socket.MSG_WAITALL) == beat
            broker.sendall(b"anybody there?")
        assert proxy.connections == proxy.left_open == 1
        proxy.let_expire()
        broker.settimeout(1)
        with pytest.raises(TimeoutError):
            until_the_end(broker)


@pytest.mark.deep
def test_does_not_beat_for_a_client_that_has_not_logged_in():
    with connected("amqp") as (proxy, client, broker):
        client.sendall(b"AMQP\3\1\0\0")
        assert broker.recv(1024) == b"AMQP\3\1\0\0"
        client.close()
        wait_until(lambda: proxy.left_open == 1)
        broker.settimeout(1)
        with pytest.raises(TimeoutError):
            broker.recv(1)
        proxy.let_expire()


@pytest.mark.deep
@pytest.mark.parametrize("outlives", [True, False])
def test_what_was_held_of_a_client_that_has_gone(outlives):
    with connected() as (proxy, client, broker):
        proxy.to_broker.hold_at(b"COMMIT", outlives=outlives)
        client.sendall(b"hello COMMIT")
        assert proxy.to_broker.held.wait(10)
        client.close()
        assert broker.recv(6) == b"hello "
        proxy.to_broker.release()
        came = b"".join(broker.recv(1) for _ in range(len("COMMIT") + 6))
        assert came.replace(b"\n", b"") == (b"COMMIT" if outlives else b"")


def test_ends_the_clients_ends_only():
    with connected() as (proxy, client, broker):
        client.sendall(b"hello")
        assert broker.recv(1024) == b"hello"
        proxy.cut_clients()
        assert until_the_end(client) == b""
        assert broker.recv(1024) == b"\n"


def test_ends_the_brokers_end_when_the_client_has_gone():
    with connected(leave_open=False) as (_, client, broker):
        client.close()
        assert until_the_end(broker) == b""
