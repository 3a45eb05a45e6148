import socket

import pytest

from pyspark_jms.testing.probe import stomp_answer


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
