"""The embedded broker's promises, tested over a raw socket."""

import os
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import await_count, await_value, wait_until

from pyspark_jms import testing
from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing import AddressSettings, EmbeddedArtemis, ExternalBroker, Tls, User

pytestmark = pytest.mark.broker


def _gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture(scope="module")
def configured():
    """One broker with several settings at once; no test changes its state."""
    with EmbeddedArtemis(
        address_settings=[AddressSettings(match="brief.#", expiry_delay=1)],
        max_delivery_attempts=2,
        benchmark=True,
        heap="1g",
    ) as broker:
        yield broker


def test_stored_messages_survive_kill_9_and_restarts_on_the_same_port_and_nothing_is_printed(
    fresh_broker, connect, queue, tmp_path, capfd
):
    broker = fresh_broker(directory=tmp_path / "a b&ü<${x}")
    port, url, pid = broker.port, broker.url, broker.pid
    stomp, answer = connect(broker)
    assert answer.startswith("CONNECTED\nversion:1.2\n")
    for text in ("eins", "zwei", "drei"):
        assert stomp.send(queue, text) == "RECEIPT\nreceipt-id:r\n\n"

    broker.kill()
    assert _gone(pid)
    assert not broker.running
    broker.restart()
    assert (broker.port, broker.url) == (port, url)
    assert _all_bodies(connect, broker, queue, 3) == ["eins", "zwei", "drei"]
    broker.restart()
    assert _all_bodies(connect, broker, queue, 3) == ["eins", "zwei", "drei"]
    connect(broker, password="wrong")
    broker.jvm.System.out.println("to the log, not to us")
    broker.stop()
    log = broker.log.read_text()
    assert "to the log, not to us" in log
    assert "AMQ" in log
    assert capfd.readouterr() == ("", ""), "a broker prints nothing"


def _all_bodies(connect, broker, queue, count):
    stomp, _ = connect(broker)
    stomp.subscribe(queue)
    return [stomp.next_frame("MESSAGE").partition("\n\n")[2] for _ in range(count)]


def test_jvm_dies_with_a_killed_parent(tmp_path):
    program = (
        "from pyspark_jms.testing import EmbeddedArtemis\n"
        f"with EmbeddedArtemis({str(tmp_path)!r}) as broker:\n"
        "    print(broker.pid, flush=True)\n"
        "    broker.wait()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        os.kill(pid, 0)
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: _gone(pid))
    with EmbeddedArtemis(tmp_path) as broker:
        assert broker.running


def test_dead_letters_after_the_given_attempts(configured, connect, queue):
    broker = configured
    stomp, _ = connect(broker)
    stomp.send(queue, "poison")
    await_value(lambda: broker.delivery_counts(queue), [0])
    _receive_and_drop(connect, broker, queue)
    wait_until(lambda: broker.delivery_counts(queue) == [1])
    _receive_and_drop(connect, broker, queue)
    wait_until(lambda: broker.message_count("DLQ") == 1)
    await_count(broker, queue, 0)
    assert [letter.queue for letter in broker.dead_letters()] == [queue]


def _receive_and_drop(connect, broker, queue):
    stomp, _ = connect(broker)
    stomp.subscribe(queue)
    assert stomp.next_frame("MESSAGE").endswith("poison")
    stomp.link.close()


def test_expired_messages_move(configured, connect):
    stomp, _ = connect(configured)
    stomp.send("brief.one", "short-lived")
    wait_until(lambda: configured.message_count("ExpiryQueue") == 1)
    await_count(configured, "brief.one", 0)


def test_benchmark_machine(configured):
    beans = configured.jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    assert {"-Xmx1g", "-XX:+UseG1GC"} <= set(beans)


def test_new_address_without_type_is_multicast_as_in_production(broker, connect, queue):
    stomp, _ = connect(broker)
    stomp.ask(f"SEND\ndestination:{queue}\nreceipt:r\n\nlost")
    assert not broker.has_queue(queue)


@pytest.mark.deep
def test_tls_alone_from_one_file(fresh_broker, connect, certificates, tmp_path):
    both = tmp_path / "both.pem"
    both.write_text("".join(Path(file).read_text() for file in (certificates.cert, certificates.key)))
    broker = fresh_broker(tls=Tls(cert=both), amqp_port=0)
    assert broker.plain_url is None
    _, answer = connect(broker, context=certificates.context())
    assert answer.startswith("CONNECTED")
    assert broker.amqp_url == f"amqps://127.0.0.1:{broker.amqp_port}"
    assert broker.amqp_port != broker.port
    with (
        socket.create_connection(("127.0.0.1", broker.amqp_port), timeout=10) as link,
        certificates.context().wrap_socket(link, server_hostname="localhost") as amqp,
    ):
        amqp.sendall(b"AMQP\3\1\0\0")
        assert amqp.recv(8) == b"AMQP\3\1\0\0"


def test_tls_with_client_certificates_and_plain_at_once(fresh_broker, connect, certificates):
    tls = Tls(cert=certificates.cert, key=certificates.key, client_ca=certificates.authority)
    broker = fresh_broker(tls=tls)
    assert broker.url == f"stomp+ssl://127.0.0.1:{broker.port}"
    assert broker.plain_url == f"stomp://127.0.0.1:{broker.plain_port}"
    stomp, answer = connect(broker, context=certificates.context(client=True))
    assert answer.startswith("CONNECTED")
    assert stomp.link.version() == "TLSv1.3"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        connect(broker, context=certificates.context())
    _, answer = connect(broker, port=broker.plain_port)
    assert answer.startswith("CONNECTED")


def test_a_used_port_is_an_error_before_the_start():
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\] Port [0-9]+ of 127\.0\.0\.1 "),
    ):
        EmbeddedArtemis(port=taken.getsockname()[1]).start()


@pytest.mark.deep
def test_a_port_that_is_used_during_the_start_is_an_error(monkeypatch):
    monkeypatch.setattr("pyspark_jms.tools.testing.lifecycle.is_free", lambda *_: True)
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\](.|\n)*Address already in use"),
    ):
        EmbeddedArtemis(port=taken.getsockname()[1]).start()


def test_the_log_is_quoted_if_artemis_refuses_the_configuration():
    wrong = AddressSettings(match="x", address_full_policy="WHAT")
    with pytest.raises(EmbeddedBrokerError, match="'WHAT' is not facet-valid"):
        EmbeddedArtemis(address_settings=[wrong]).start()


def test_a_start_that_takes_too_long_ends():
    broker = EmbeddedArtemis(start_timeout=0.2)
    with pytest.raises(EmbeddedBrokerError):
        broker.start()
    assert not broker.running
    broker.close()


@pytest.mark.deep
def test_start_after_a_failed_one(tmp_path):
    with pytest.raises(EmbeddedBrokerError):
        EmbeddedArtemis(tmp_path, heap="1x").start()
    with EmbeddedArtemis(tmp_path) as broker:
        assert broker.running
        assert broker.log.read_text() == "", "the readiness probe logs nothing"
    assert "Invalid maximum heap size" in broker.log.with_suffix(".log.1").read_text()


def test_a_stopped_broker_has_no_operations(tmp_path):
    broker = EmbeddedArtemis(tmp_path)
    for question in (lambda: broker.message_count("q"), lambda: broker.jvm, lambda: broker.pid):
        with pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\].*start\(\)"):
            question()
    broker.stop()
    broker.kill()


def test_repr_holds_no_password(tmp_path):
    broker = EmbeddedArtemis(tmp_path, password="sesame", users=[User("u", "hush")])
    assert "sesame" not in repr(broker)
    assert "hush" not in repr(broker._users)
    broker._configure()
    assert not any("sesame" in file.read_text(errors="replace") for file in tmp_path.glob("*.*") if file.is_file())


def test_a_named_broker_is_used_instead(broker, connect, monkeypatch):
    monkeypatch.setenv("JMS_BROKER_URL", broker.url)
    monkeypatch.setenv("JMS_BROKER_USER", broker.user)
    monkeypatch.setenv("JMS_BROKER_PASSWORD", broker.password)
    with testing.broker(heap="not even looked at") as named:
        assert isinstance(named, ExternalBroker)
        assert (named.url, named.host, named.port) == (broker.url, broker.host, broker.port)
        _, answer = connect(named)
        assert answer.startswith("CONNECTED")


def test_without_a_named_broker_an_embedded_one_is_started(monkeypatch, tmp_path):
    monkeypatch.delenv("JMS_BROKER_URL", raising=False)
    with testing.broker(directory=tmp_path) as embedded:
        assert isinstance(embedded, EmbeddedArtemis)
        assert embedded.running
    assert not embedded.running
