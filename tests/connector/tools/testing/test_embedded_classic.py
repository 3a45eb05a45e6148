"""The embedded Classic's promises, tested over a raw socket."""

import contextlib
import os

import pytest
from waiting import await_count, await_value, wait_until

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing import EmbeddedClassic, JmsClient, Typed, User

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def classic():
    limited = User("limited", "pw", permissions=set(), at={"no.read": {"send"}, "no.write": {"consume"}})
    with EmbeddedClassic(users=[limited]) as broker:
        yield broker


def test_stored_messages_survive_kill_9_and_restarts_on_the_same_port(connect, queue, tmp_path):
    with EmbeddedClassic(tmp_path / "a b&ü") as broker:
        port, url, pid = broker.port, broker.url, broker.pid
        stomp, answer = connect(broker)
        assert answer.startswith("CONNECTED\nserver:ActiveMQ/6.3.1\n")
        for text in ("eins", "zwei", "drei"):
            assert stomp.send(queue, text) == "RECEIPT\nreceipt-id:r\n\n"
        broker.kill()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert not broker.running
        for _ in range(2):
            broker.restart()
            assert (broker.port, broker.url) == (port, url)
            stomp, _ = connect(broker)
            stomp.subscribe(queue)
            bodies = [stomp.next_frame("MESSAGE").partition("\n\n")[2] for _ in range(3)]
            assert bodies == ["eins", "zwei", "drei"]


def test_speaks_amqp_on_a_port_of_its_own(classic, queue):
    with JmsClient(classic.amqp_url, classic.user, classic.password) as qpid, JmsClient(classic) as openwire:
        qpid.send(queue, {"n": 3})
        assert openwire.receive(queue).body == {"n": Typed("int", 3)}


def test_queue_operations(classic, connect, queue):
    assert not classic.has_queue(queue)
    await_count(classic, queue, 0)
    with pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\].*create_queue\(\)"):
        classic.delivering_count(queue)
    stomp, _ = connect(classic)
    for text in ("a", "b"):
        stomp.send(queue, text)
    await_value(lambda: (classic.message_count(queue), classic.consumer_count(queue)), (2, 0))
    stomp.subscribe(queue)
    wait_until(lambda: classic.delivering_count(queue) == 2)
    assert classic.consumer_count(queue) == 1
    stomp.link.close()
    wait_until(lambda: classic.delivery_counts(queue) == [1, 1])
    assert classic.purge(queue) == 2
    await_count(classic, queue, 0)


def test_dead_letters_have_their_original_queue(classic, connect, queue):
    stomp, _ = connect(classic)
    assert classic.dead_letters() == []
    stomp.ask(f"SEND\ndestination:{queue}\npersistent:true\nexpires:1000\nreceipt:r\n\nstale")
    wait_until(lambda: [letter.queue for letter in classic.dead_letters()] == [queue])


def test_restricted_users(classic, connect):
    for name in ("no.read", "no.write", "open"):
        classic.create_queue(name)
    stomp, _ = connect(classic, "limited", "pw")
    assert stomp.send("no.read", "x").startswith("RECEIPT")
    assert "not authorized to write" in stomp.send("no.write", "x")
    stomp, _ = connect(classic, "limited", "pw")
    stomp.subscribe("no.write")
    assert stomp.next_frame("RECEIPT", "ERROR").startswith("RECEIPT")
    stomp, _ = connect(classic, "limited", "pw")
    stomp.subscribe("open")
    assert "not authorized to read" in stomp.next_frame("RECEIPT", "ERROR")


def test_wrong_password_is_refused(classic, connect):
    _, answer = connect(classic, password="wrong")
    assert answer.startswith("ERROR\n")
    assert "password is invalid" in answer


@pytest.mark.parametrize("scheduler", [True, False])
def test_messages_are_delayed_where_the_scheduler_is_on(scheduler, classic, connect, queue):
    with contextlib.nullcontext(classic) if scheduler else EmbeddedClassic(scheduler=False) as broker:
        broker.create_queue(queue)
        stomp, _ = connect(broker)
        delay = "AMQ_SCHEDULED_DELAY:3600000"
        stomp.ask(f"SEND\ndestination:{queue}\npersistent:true\n{delay}\nreceipt:r\n\nlater")
        await_count(broker, queue, (0 if scheduler else 1))
        stomp.send(queue, "now")
        wait_until(lambda: broker.message_count(queue) == (1 if scheduler else 2))
