import socket

import pytest

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing import ports


def test_a_free_port_is_below_the_ports_of_outgoing_connections():
    port = ports.free_port("127.0.0.1")
    assert 20_000 <= port < 32_768
    with socket.create_server(("127.0.0.1", port)):
        assert not ports.is_free("127.0.0.1", port)
    assert ports.is_free("127.0.0.1", port)


def test_without_a_free_port_it_is_an_error(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(ports, "_TRIES", 1)
        only = taken.getsockname()[1]
        monkeypatch.setattr(ports, "_BELOW_EPHEMERAL", range(only, only + 1))
        with pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\].*port="):
            ports.free_port("127.0.0.1")


def test_ipv6():
    try:
        server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with server:
        assert not ports.is_free("::1", server.getsockname()[1])
