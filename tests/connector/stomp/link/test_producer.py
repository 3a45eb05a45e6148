"""The transactions of one connection on a real broker: when messages become visible, and the error of each failure."""

import pytest
from proxy import Proxy
from rawstomp import RawStomp, frame
from waiting import await_count

from pyspark_jms.errors import (
    BrokerError,
    ConnectionLostError,
    InvalidDestinationError,
    JMSSecurityError,
    ReceiptTimeoutError,
    TransactionRolledBackError,
)
from pyspark_jms.network.address import parse_broker_url
from pyspark_jms.network.settings import ConnectionSettings, Password
from pyspark_jms.stomp.link.producer import Producer

COMMIT = b"COMMIT\n"


def settings_of(broker, url=None, **changed):
    return ConnectionSettings(
        addresses=parse_broker_url(url or broker.url),
        user=broker.user,
        password=Password(value=broker.password),
        **changed,
    )


def row(queue, body, *, transaction=Producer.transaction, **headers):
    fixed = [("destination", queue), ("destination-type", "ANYCAST"), ("persistent", "true")]
    tied = [("transaction", transaction)] if transaction else []
    return frame("SEND", [*fixed, *tied, *headers.items()], body)


def test_nothing_is_visible_before_the_commit_and_all_is_after(broker, queue):
    with Producer(settings_of(broker)) as producer:
        producer.send_frames(row(queue, b"1") + row(queue, b"2"))
        with RawStomp(broker) as client:
            assert client.read(queue, quiet=0.3) == []
        producer.commit()
        await_count(broker, queue, 2)
        producer.send_frames(row(queue, b"3"))
        producer.commit()
    await_count(broker, queue, 3)


def test_without_a_commit_nothing_was_sent(broker, queue):
    with Producer(settings_of(broker)) as producer:
        producer.send_frames(row(queue, b"1"))
    await_count(broker, queue, 0)


def test_a_commit_without_messages_sends_nothing(broker):
    with Proxy(broker.host, broker.port) as proxy, Producer(settings_of(broker, proxy.url)) as producer:
        before = proxy.to_broker.size
        producer.commit()
        assert proxy.to_broker.size == before


@pytest.mark.parametrize("error", [ConnectionLostError, ReceiptTimeoutError])
def test_a_commit_that_is_not_confirmed(broker, queue, error):
    waits = {"receipt_timeout": 0.5} if error is ReceiptTimeoutError else {}
    for commit, expected in ((Producer.try_commit, error), (Producer.commit, TransactionRolledBackError)):
        with Proxy(broker.host, broker.port) as proxy:
            with Producer(settings_of(broker, proxy.url, **waits)) as producer:
                producer.send_frames(row(queue, b"1"))
                if error is ConnectionLostError:
                    proxy.to_broker.cut_at(COMMIT)
                else:
                    proxy.to_client.stall()
                with pytest.raises(expected) as caught:
                    commit(producer)
            if expected is not error:
                assert "send these rows twice" in caught.value.remedy


def test_a_commit_that_the_broker_refuses(broker, queue):
    marked = row(queue, b"1", _AMQ_DUPL_ID=queue)
    for expected in (None, BrokerError, TransactionRolledBackError):
        with Producer(settings_of(broker)) as producer:
            producer.send_frames(row(queue, b"2") + marked)
            if expected is None:
                producer.commit()
            elif expected is BrokerError:
                with pytest.raises(BrokerError):
                    producer.try_commit()
            else:
                with pytest.raises(TransactionRolledBackError, match=r"No row .*sent"):
                    producer.commit()
    await_count(broker, queue, 2)


@pytest.mark.parametrize("attempts", [1, pytest.param(3, marks=pytest.mark.deep)])
def test_the_commit_also_confirms_messages_sent_outside_of_the_transaction(killable, queue, attempts):
    """A receipt for BEGIN or DISCONNECT does not confirm them: some of 3,000 messages were missing after the kill."""
    for attempt in range(attempts):
        with Producer(settings_of(killable)) as producer:
            for _ in range(30):
                producer.send_frames(row(queue, b"x", transaction=None) * 100, in_transaction=False)
            producer.send_frames(row(queue, b"last"))
            producer.commit()
            killable.kill()
        killable.start()
        await_count(killable, queue, 3_001 * (attempt + 1))


def test_a_killed_broker_has_nothing_of_an_open_transaction(killable, queue):
    broker = killable
    with Producer(settings_of(broker)) as producer:
        producer.send_frames(row(queue, b"x" * 1000) * 1000)
        broker.kill()
        with pytest.raises(TransactionRolledBackError, match=r"JMS_TRANSACTION_ROLLED_BACK.*COMMIT"):
            producer.commit()
    broker.start()
    await_count(broker, queue, 0)


@pytest.mark.parametrize("user", ["reader", "nobody"])
def test_a_user_who_may_not_send(secured, queue, settings_for, user):
    secured.create_queue(queue)
    with Producer(settings_for(secured, user=user)) as producer:
        with pytest.raises((BrokerError, TransactionRolledBackError), match="AMQ339011") as error:
            send_and_commit(producer, row(queue, b"SECRET-BODY", card="SECRET-CARD"))
        assert "SECRET" not in f"{error.value} {error.value!r}"
    await_count(secured, queue, 0)


def send_and_commit(producer, data):
    producer.send_frames(data)
    producer.commit()


def test_a_refused_message_rolls_back_its_transaction(secured, queue, settings_for):
    """Artemis carries out a COMMIT that follows the refused SEND directly, without that message: 3 times of 10."""
    for _ in range(30):
        with Producer(settings_for(secured)) as producer, pytest.raises(InvalidDestinationError):
            send_and_commit(producer, row(queue, b"good") + row(f"closed.{queue}", b"refused"))
    assert not secured.has_queue(queue) or secured.message_count(queue) == 0


@pytest.mark.parametrize("transaction", [Producer.transaction, None])
def test_a_refusal_that_waits_until_new_queues_are_stored(secured, queue, settings_for, transaction):
    """Artemis refuses only then. When a receipt of another session was awaited, 18 of 40 COMMITs were confirmed."""
    for attempt in range(8):
        names = [f"{queue}.{attempt}.{n}" for n in range(30)]
        good = b"".join(row(name, b"good", transaction=transaction) for name in names)
        with Producer(settings_for(secured)) as producer:
            producer.send_frames(row(queue, b"of the transaction"))
            producer.send_frames(
                good + row(f"closed.{queue}", b"refused", transaction=transaction), in_transaction=False
            )
            with pytest.raises(InvalidDestinationError):
                producer.try_commit()
        assert not secured.has_queue(queue) or secured.message_count(queue) == 0


def test_a_user_who_may_not_create(secured, queue, settings_for):
    with (
        Producer(settings_for(secured, user="writer")) as producer,
        pytest.raises(JMSSecurityError, match=r"JMS_SECURITY.*CREATE_ADDRESS"),
    ):
        send_and_commit(producer, row(queue, b"x"))


def test_a_queue_that_may_not_be_created(secured, queue, settings_for):
    with (
        Producer(settings_for(secured)) as producer,
        pytest.raises(InvalidDestinationError, match=r"JMS_INVALID_DESTINATION"),
    ):
        send_and_commit(producer, row(f"closed.{queue}", b"x"))
