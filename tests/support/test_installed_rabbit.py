"""The promises of a RabbitMQ of our own, where one is installed."""

import os
import socket
import subprocess
import sys
import threading

import pytest
from installed_rabbit import Amqp, InstalledRabbit, RabbitUser
from waiting import await_count, await_value

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.tools.testing.ports import free_port

needs_rabbit = pytest.mark.skipif(not InstalledRabbit.installed(), reason="no rabbitmq-server is installed")


@pytest.fixture(scope="module")
def rabbit():
    with InstalledRabbit(users=[RabbitUser("limited", "pw", "^mine", "^(mine|amq.default)", "^mine")]) as broker:
        yield broker


def _ask(broker, frame, user, password):
    """The answer to a frame, or to CONNECT when there is none or it failed."""
    connect = f"CONNECT\naccept-version:1.2\nhost:/\nlogin:{user}\npasscode:{password}\n\n\0".encode()
    with socket.create_connection((broker.host, broker.port), 20) as link:
        answer = _exchanged(link, connect)
        return _exchanged(link, frame) if frame and answer.startswith("CONNECTED") else answer


def _exchanged(link, frame):
    link.sendall(frame)
    answer = b""
    while b"\0" not in answer and (binary := link.recv(4096)):
        answer += binary
    return answer.partition(b"\0")[0].decode().lstrip()


@needs_rabbit
@pytest.mark.broker
def test_queue_operations(rabbit, queue):
    assert not rabbit.has_queue(queue)
    await_count(rabbit, queue, 0)
    rabbit.create_queue(queue, {"x-queue-mode": "lazy"})
    with rabbit.amqp() as amqp:
        amqp.publish(queue, b"hello", content_type="text/plain", message_id="m")
        amqp.publish(queue, b"")
    await_value(lambda: (rabbit.message_count(queue), rabbit.consumer_count(queue)), (2, 0))
    assert rabbit.purge(queue) == 2
    await_count(rabbit, queue, 0)


@needs_rabbit
@pytest.mark.broker
def test_permissions_of_users(rabbit):
    assert "server:RabbitMQ/" in _ask(rabbit, b"", "limited", "pw")
    assert "Access refused" in _ask(rabbit, b"", "limited", "wrong")
    send = b"SEND\ndestination:/queue/%s\nreceipt:r\n\nx\0"
    assert _ask(rabbit, send % b"mine.a", "limited", "pw").startswith("RECEIPT")
    assert "ACCESS_REFUSED" in _ask(rabbit, send % b"other", "limited", "pw")


@pytest.mark.deep
@needs_rabbit
@pytest.mark.broker
def test_kill_9_keeps_the_port_and_leaves_no_process(tmp_path, queue):
    with InstalledRabbit(tmp_path) as broker:
        port, pid = broker.port, broker.pid
        broker.create_queue(queue)
        with broker.amqp() as amqp:
            amqp.publish(queue, b"x")
        broker.kill()
        assert not broker.running
        broker.start()
        assert broker.port == port  # the message was not confirmed: it may be there or not
        assert broker.pid != pid
        mapper = broker._mapper.pid
    assert not broker.running
    listed = subprocess.run(["ps", "-eo", "pid,stat,args"], capture_output=True, text=True, check=True).stdout
    left = [line for line in listed.splitlines() if str(tmp_path) in line and " Z" not in line]
    assert not left
    with pytest.raises(ProcessLookupError):
        os.kill(mapper, 0)


def test_a_missing_server_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr("installed_rabbit._SERVER", tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not InstalledRabbit.installed()
    with pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\].*rabbitmq-server"):
        InstalledRabbit(tmp_path).start()


def test_repr_holds_no_password(tmp_path):
    broker = InstalledRabbit(tmp_path, password="sesame", users=[RabbitUser("u", "hush")])
    broker._configure()
    assert "sesame" not in repr(broker)
    assert "hush" not in repr(broker._users)
    assert not any("sesame" in file.read_text() for file in tmp_path.iterdir() if file.is_file())


# --- messages over AMQP 0-9-1 ------------------------------------------------------------------------

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
