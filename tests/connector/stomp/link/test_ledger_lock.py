"""The lock of a ledger on a real broker: one look-up at a time; released; taken over from a killed look-up."""

import contextlib
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from proxy import Proxy
from rawstomp import RawStomp, frame
from waiting import await_count

from pyspark_jms.delivery.commit_entry import LedgerEntry
from pyspark_jms.errors import LinkError, ReceiptTimeoutError
from pyspark_jms.network.address import parse_broker_url
from pyspark_jms.network.settings import ConnectionSettings, Password
from pyspark_jms.stomp.link.commit_ledger import find_entries
from pyspark_jms.stomp.link.connection import connect
from pyspark_jms.stomp.link.ledger_entries import encode_entry, lock_queue, write_selector
from pyspark_jms.stomp.link.ledger_lock import LedgerLock
from pyspark_jms.stomp.link.producer import Producer

pytestmark = pytest.mark.broker


def settings_of(broker, url=None, **changed):
    return ConnectionSettings(
        addresses=parse_broker_url(url or broker.url),
        user=broker.user,
        password=Password(value=broker.password),
        **changed,
    )


@contextlib.contextmanager
def lock(broker, ledger, timeout=20.0):
    with contextlib.closing(connect(settings_of(broker))) as connection, LedgerLock(connection, ledger, timeout):
        yield connection


def test_two_look_ups_never_have_the_lock(broker, queue):
    """Each holds the lock for a moment, in which it would see another holder."""
    inside, most = [], []

    def enter(_):
        with lock(broker, queue) as held:
            inside.append(held)
            most.append(len(inside))
            time.sleep(0.002)
            inside.remove(held)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter, range(80)))
    assert most == [1] * 80
    await_count(broker, lock_queue(queue), 0)


def test_locks_of_two_ledgers_are_two(broker, queue):
    with lock(broker, queue), lock(broker, f"{queue}.2", timeout=2.0):
        pass


def test_a_look_up_that_waits_too_long_raises(broker, queue):
    reason = rf"had the lock of queue {queue}\.lock for 0\.5 s.*connection"
    with lock(broker, queue), pytest.raises(ReceiptTimeoutError, match=reason), lock(broker, queue, timeout=0.5):
        pass
    with lock(broker, queue, timeout=2.0):
        pass


def test_the_lock_of_a_killed_look_up_is_taken_over_when_its_entries_are_back(broker, queue):
    with lock(broker, queue) as dying:
        dying.drop()
    start = time.monotonic()
    with lock(broker, queue):
        assert 1.0 <= time.monotonic() - start < 5.0
    start = time.monotonic()
    with lock(broker, queue):  # the message of the killed look-up is gone
        assert time.monotonic() - start < 1.0
    await_count(broker, lock_queue(queue), 0)


def test_an_error_inside_releases_the_lock(broker, queue):
    with pytest.raises(LinkError), lock(broker, queue):
        raise LinkError("x")
    start = time.monotonic()
    with lock(broker, queue):
        assert time.monotonic() - start < 1.0


def write(settings, queue, count):
    entries = [LedgerEntry(task=f"x/1/{n}", batch=1, rows=1, digest="1-d", written_ms=0) for n in range(count)]
    with Producer(settings) as producer:
        for each in entries:
            producer.send(encode_entry(each, queue=queue, dialect=producer.dialect, transaction="t", again=False))
        producer.commit()
    return set(entries)


@pytest.mark.deep
def test_look_ups_that_die_hide_nothing_from_the_others(fresh_broker):
    """Some of them end their connection in the middle, with the lock and entries in flight."""
    broker = fresh_broker(max_delivery_attempts=-1)  # each death spends one of every entry
    settings, chance = settings_of(broker), random.Random(14)
    entries, deaths = write(settings, "ledger", 5), []

    def look_up(_):
        if chance.random() < 0.15:
            deaths.append(None)
            die_in_a_look_up(broker)
            return None
        return set(find_entries(settings, "ledger", write_selector("x/1")))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(look_up, range(120)))
    assert deaths
    assert all(each == entries for each in found if each is not None)


def die_in_a_look_up(broker):
    """As a process that is killed: its socket ends."""
    client = RawStomp(broker)
    fixed = [("subscription-type", "ANYCAST"), ("ack", "client-individual")]
    client.write(
        frame("SUBSCRIBE", [("id", "l"), ("destination", "ledger.lock"), ("consumer-window-size", "1"), *fixed])
    )
    client.write(
        frame("SEND", [("destination", "ledger.lock"), ("destination-type", "ANYCAST"), ("JMSXGroupID", "lock")])
    )
    assert client.receive().command == "MESSAGE"
    client.write(
        frame("SUBSCRIBE", [("id", "e"), ("destination", "ledger"), ("selector", "task LIKE 'x/1/%'"), *fixed])
    )
    assert client.receive().command == "MESSAGE"
    client.close_abruptly()


def test_a_frozen_look_up_is_waited_for_and_not_ignored(broker, queue):
    """Its machine is lost, and the broker does not know yet: its entry is in flight, and not reported absent."""
    (entry,) = write(settings_of(broker), queue, 1)
    with Proxy(broker.host, broker.port) as proxy:
        proxy.to_client.hold_at(b"sentinel:")  # delivered with the entry, and never read
        frozen = threading.Thread(target=look_up_and_fail, args=(settings_of(broker, proxy.url), queue))
        frozen.start()
        assert proxy.to_client.held.wait(20)
        for _ in range(2):
            with pytest.raises(ReceiptTimeoutError, match="lock"):
                find_entries(settings_of(broker, receipt_timeout=0.5), queue, write_selector("x/1"))
        proxy.cut()
        frozen.join(30)
    assert set(find_entries(settings_of(broker), queue, write_selector("x/1"))) == {entry}


def look_up_and_fail(settings, queue):
    with pytest.raises(LinkError):
        find_entries(settings, queue, write_selector("x/1"))
