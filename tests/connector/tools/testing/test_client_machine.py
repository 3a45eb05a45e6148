"""A Java client of a broker that another process runs."""

import re
import socket
import subprocess

import pytest
from commands import program

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing import ExternalBroker, JmsClient, Typed
from pyspark_jms.tools.testing.client_machine import client_machine


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """The address of a `pyspark-jms broker`: a process of its own."""
    folder = str(tmp_path_factory.mktemp("elsewhere"))
    command = program("broker", "--dir", folder, "--port", "0", "--password", "pw")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    yield re.match(r"(stomp://\S+) ", process.stdout.readline())[1]
    process.terminate()
    process.communicate(timeout=30)


@pytest.mark.broker
def test_a_broker_of_another_process_is_reached_by_its_address(elsewhere):
    with JmsClient(elsewhere, "artemis", "pw") as java:
        java.send("orders", {"price": Typed("float", 1.5)}, properties={"n": Typed("short", 3)})
        message = java.receive("orders")
        assert (message.body, message.properties["n"]) == ({"price": Typed("float", 1.5)}, Typed("short", 3))
        machine = java._machine
    assert not machine.alive()


@pytest.mark.broker
def test_a_broker_of_another_process_is_reached_as_external_broker(elsewhere, connect):
    named = ExternalBroker(elsewhere, password="pw")
    stomp, _ = connect(named)
    assert stomp.send("texts", "over STOMP").startswith("RECEIPT")
    with JmsClient(named) as java:
        assert java.receive("texts").body == "over STOMP"


@pytest.mark.broker
def test_a_wrong_password_is_an_error_and_ends_the_machine(elsewhere):
    with pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\].*user artemis: AMQ\d+"):
        JmsClient(elsewhere, "artemis", "wrong")


def test_qpid_jms_is_the_client_of_an_amqp_address(broker, queue):
    with JmsClient(broker.amqp_url, broker.user, broker.password) as java:
        java.send(queue, {"price": Typed("float", 1.5)}, properties={"n": Typed("short", 3)}, reply_to="topic://t")
        message = java.receive(queue)
        assert (message.body, message.properties["n"]) == ({"price": Typed("float", 1.5)}, Typed("short", 3))
        assert message.reply_to == "topic://t"
    with pytest.raises(EmbeddedBrokerError, match=rf"\[JMS_EMBEDDED_BROKER\].*user {broker.user}"):
        JmsClient(broker.amqp_url, broker.user, "wrong")


@pytest.mark.broker
@pytest.mark.parametrize(("scheme", "remedy"), [("stomp", "tcp://HOST:61616"), ("amqp", "AMQP")])
def test_a_port_without_the_protocol_is_an_error(monkeypatch, scheme, remedy):
    monkeypatch.setattr("pyspark_jms.tools.testing.client_machine._CONNECT_SECONDS", 0.5)
    error = rf"\[JMS_EMBEDDED_BROKER\].*{remedy}"
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(EmbeddedBrokerError, match=error):
        JmsClient(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}")


def test_a_port_without_a_broker_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(EmbeddedBrokerError, match=rf"\[JMS_EMBEDDED_BROKER\].*127\.0\.0\.1:{port}"):
        client_machine(f"stomp://127.0.0.1:{port}")


@pytest.mark.parametrize("url", ["localhost:61613", "stomp+ssl://localhost:61614", "stomp://localhost", "stomp://h:x"])
def test_an_invalid_address_is_an_error(url):
    with pytest.raises(EmbeddedBrokerError, match=rf"\[JMS_EMBEDDED_BROKER\] {re.escape(url)} "):
        client_machine(url)
