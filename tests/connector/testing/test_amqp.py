"""Against a RabbitMQ, where one is installed; and against peers that are none."""

import socket
import threading

import pytest

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing import InstalledRabbit
from pyspark_jms.testing.amqp import Amqp


@pytest.fixture
def peer():
    """``peer(bytes)``: a server that answers whatever comes with these bytes, once, and hangs up."""
    server = socket.create_server(("127.0.0.1", 0))
    threads = []

    def serve(octets):
        link, _ = server.accept()
        with link:
            link.recv(1024)
            link.sendall(octets)

    def start(octets):
        threads.append(threading.Thread(target=serve, args=(octets,)))
        threads[0].start()
        return server.getsockname()

    yield start
    for thread in threads:
        thread.join(10)
    server.close()


def test_a_peer_that_hangs_up(peer):
    with pytest.raises(EmbeddedBrokerError, match="closed an AMQP connection"):
        Amqp(*peer(b"AMQP\x00\x00\x09\x01"[:3]), "u", "p")


def test_a_peer_that_says_something_else(peer):
    with pytest.raises(EmbeddedBrokerError, match=r"answered with method \(20, 11\), not \(10, 10\)"):
        Amqp(*peer(b"\x01\x00\x00\x00\x00\x00\x04\x00\x14\x00\x0b\xce"), "u", "p")


@pytest.mark.broker
@pytest.mark.skipif(not InstalledRabbit.installed(), reason="no rabbitmq-server is installed")
def test_questions_and_answers(queue):
    with InstalledRabbit() as broker, broker.amqp() as amqp:
        amqp.declare(queue)
        assert amqp.count(queue) == (0, 0)
        amqp.publish(queue, b"x" * 100_000, content_type="application/json")
        amqp.publish(queue, b"")
        assert amqp.count(queue) == (2, 0)
        assert amqp.purge(queue) == 2
        with pytest.raises(EmbeddedBrokerError, match="RabbitMQ refuses: NOT_FOUND"):
            amqp.count("not there")
