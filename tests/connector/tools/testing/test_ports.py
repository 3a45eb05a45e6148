import socket

import pytest

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.tools.testing import ports
from pyspark_jms.tools.testing.ports import stomp_answer


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


def test_right_and_wrong_password(broker):
    answer = stomp_answer(broker.host, broker.port, broker.user, broker.password, tls=False, timeout=10)
    assert answer.startswith("CONNECTED\n")
    answer = stomp_answer(broker.host, broker.port, broker.user, "wrong", tls=False, timeout=10)
    assert answer.startswith("ERROR\n")


def test_a_closed_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionError):
        stomp_answer("127.0.0.1", port, "u", "p", tls=False, timeout=10)


@pytest.mark.parametrize("tls", [False, True])
def test_a_server_that_does_not_answer(tls):
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(TimeoutError):
        stomp_answer("127.0.0.1", server.getsockname()[1], "u", "p", tls=tls, timeout=0.2)
