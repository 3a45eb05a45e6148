import contextlib
import socket
import threading
import time

import pytest

from pyspark_jms.errors import BrokerUnreachableError
from pyspark_jms.network.address import Address
from pyspark_jms.network.dialing import ResolveTimeoutError, dial
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.link.connection import connect


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def silent(monkeypatch):
    """A name service that does not answer until the test is over."""
    over = threading.Event()

    def getaddrinfo(*_, **__):
        over.wait(30)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield
    over.set()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_host_is_reached(server, host):
    connected = dial(host, server.getsockname()[1], 5)
    with connected, server.accept()[0] as other:
        other.sendall(b"x")
        assert connected.recv(1) == b"x"


def test_a_silent_name_service_takes_no_longer_than_the_limit(silent):
    began = time.monotonic()
    with pytest.raises(ResolveTimeoutError):
        dial("broker.example", 61613, 0.3)
    assert time.monotonic() - began < 3


def test_connect_timeout_covers_the_name(silent):
    settings = ConnectionSettings(addresses=(Address("broker.example", 61613),), connect_timeout=0.3)
    began = time.monotonic()
    with pytest.raises(BrokerUnreachableError, match=r"broker\.example:61613 .*name service"):
        connect(settings)
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    ("host", "error"), [("no-such-host.invalid", socket.gaierror), ("a..b", UnicodeError), ("127.0.0.1", OSError)]
)
def test_what_goes_wrong_is_raised_here(host, error):
    with pytest.raises(error):
        dial(host, 1, 5)


def test_addresses_are_tried_in_turn_and_share_the_time(server, monkeypatch):
    """The first one takes no connection and says nothing: its listener's backlog is full."""
    target = server.getsockname()
    stuck = socket.create_server(("127.0.0.1", 0), backlog=0)
    with stuck, contextlib.ExitStack() as waiting:
        for _ in range(4):
            filler = waiting.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(stuck.getsockname())
        found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", address) for address in (stuck.getsockname(), target)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        began = time.monotonic()
        dial("both", 0, 2).close()
        assert 0.5 < time.monotonic() - began < 1.9
