"""Against a RabbitMQ, where one is installed; and against peers that are none."""

import socket
import sys
import threading

import pytest

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing import InstalledRabbit
from pyspark_jms.testing.amqp import Amqp
from pyspark_jms.testing.ports import free_port

FAILED = "The AMQP connection to RabbitMQ failed"


@pytest.fixture
def peer():
    """``peer(bytes)``: a server that answers the first bytes of a client with these, once, and hangs up."""
    server = socket.create_server(("127.0.0.1", 0))
    threads = []

    def serve(reply):
        link, _ = server.accept()
        with link:
            link.recv(1024)
            link.sendall(reply)

    def start(reply):
        threads.append(threading.Thread(target=serve, args=(reply,)))
        threads[0].start()
        return server.getsockname()

    yield start
    for thread in threads:
        thread.join(10)
    server.close()


@pytest.mark.parametrize("reply", [b"AMQP", b"\x01\x00\x00\x00\x00\x00\x04\x00\x14\x00\x0b\xce", b"HTTP/1.1 400\r\n"])
def test_a_peer_that_is_no_rabbitmq(peer, reply):
    with pytest.raises(EmbeddedBrokerError, match=FAILED):
        Amqp(*peer(reply), "u", "p")


def test_a_port_without_a_server():
    with pytest.raises(EmbeddedBrokerError, match=FAILED):
        Amqp("127.0.0.1", free_port("127.0.0.1"), "u", "p")


def test_without_pika_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pika", None)
    with pytest.raises(EmbeddedBrokerError, match=r"pika.*pip install 'pyspark-jms\[test\]'"):
        Amqp("127.0.0.1", 1, "u", "p")


@pytest.mark.deep
@pytest.mark.broker
@pytest.mark.skipif(not InstalledRabbit.installed(), reason="no rabbitmq-server is installed")
def test_requests_and_replies(queue):
    with InstalledRabbit() as broker, broker.amqp() as amqp:
        amqp.declare(queue)
        assert amqp.count(queue) == (0, 0)
        amqp.publish(queue, b"x" * 100_000, content_type="application/json")
        amqp.publish(queue, b"")
        assert amqp.count(queue) == (2, 0)
        assert amqp.purge(queue) == 2
        with pytest.raises(EmbeddedBrokerError, match="RabbitMQ refuses: NOT_FOUND"):
            amqp.count("not there")
