"""The proxy itself, before a server that answers every octet with itself."""

import contextlib
import socket
import threading

import pytest
from proxy import Proxy


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
        while octets := link.recv(1024):
            link.sendall(octets)


@pytest.fixture
def link(proxy):
    with socket.create_connection((proxy.host, proxy.port), 10) as link:
        yield link


def until_the_end(link):
    octets = b""
    with contextlib.suppress(ConnectionError):
        while more := link.recv(1024):
            octets += more
    return octets


def test_forwards(proxy, link):
    link.sendall(b"hello")
    assert link.recv(1024) == b"hello"
    assert (proxy.accepted, proxy.to_broker.octets, proxy.to_client.octets) == (1, 5, 5)


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


def test_cuts_now(proxy, link):
    link.sendall(b"hello")
    link.recv(1024)
    proxy.cut()
    assert until_the_end(link) == b""


def test_refuses_and_accepts(proxy):
    proxy.refuse()
    with socket.create_connection((proxy.host, proxy.port), 10) as link:
        assert until_the_end(link) == b""
    proxy.accept()
    with socket.create_connection((proxy.host, proxy.port), 10) as link:
        link.sendall(b"hello")
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
        until_the_end(link)  # what the echo sent back is lost with the link
    assert direction.cut_done.wait(10)
    assert direction.octets == len(b"before COMMIT" if included else pieces[0][:9] if len(pieces) > 1 else b"before ")
