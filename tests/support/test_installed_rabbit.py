"""The promises of a RabbitMQ of our own, where one is installed."""

import os
import subprocess

import pytest
from installed_rabbit import InstalledRabbit, RabbitUser

from pyspark_jms.errors import EmbeddedBrokerError


@pytest.mark.deep
@pytest.mark.skipif(not InstalledRabbit.installed(), reason="no rabbitmq-server is installed")
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
