"""The promises of a RabbitMQ of our own, where one is installed."""

import os
import subprocess

import pytest
from installed_rabbit import InstalledRabbit, RabbitUser
from rawstomp import RawStomp
from waiting import await_count, await_value

from pyspark_jms.errors import EmbeddedBrokerError

needs_rabbit = pytest.mark.skipif(not InstalledRabbit.installed(), reason="no rabbitmq-server is installed")


@pytest.fixture(scope="module")
def rabbit():
    with InstalledRabbit(users=[RabbitUser("limited", "pw", "^mine", "^(mine|amq.default)", "^mine")]) as broker:
        yield broker


@needs_rabbit
@pytest.mark.broker
def test_queue_operations(rabbit, queue):
    assert not rabbit.has_queue(queue)
    await_count(rabbit, queue, 0)
    rabbit.create_queue(queue, {"x-queue-mode": "lazy"})
    with rabbit.amqp() as channel:
        for body in (b"hello", b""):
            channel.basic_publish("", queue, body)
    await_value(lambda: (rabbit.message_count(queue), rabbit.consumer_count(queue)), (2, 0))
    assert rabbit.purge(queue) == 2
    await_count(rabbit, queue, 0)


@needs_rabbit
@pytest.mark.broker
def test_permissions_of_users(rabbit):
    with pytest.raises((AssertionError, EOFError)):
        RawStomp(rabbit, user="limited", password="wrong")
    with RawStomp(rabbit, user="limited", password="pw") as client:
        client.request("SEND", [("destination", "/queue/mine.a")], b"x")
        with pytest.raises(AssertionError, match="ACCESS_REFUSED"):
            client.request("SEND", [("destination", "/queue/other")], b"x")


@pytest.mark.deep
@needs_rabbit
@pytest.mark.broker
def test_kill_9_keeps_the_port_and_leaves_no_process(tmp_path, queue):
    with InstalledRabbit(tmp_path) as broker:
        port, pid = broker.port, broker.pid
        broker.create_queue(queue)
        with broker.amqp() as channel:
            channel.basic_publish("", queue, b"x")
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
