import pytest
from amqp_messages import TRUE, block_of, list_, section, string
from proton import Delivery
from proton_broker import ProtonBroker
from waiting import await_count

from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.wire.types import Target
from pyspark_jms.errors import BrokerError, InvalidDestinationError, JMSSecurityError, TransactionRolledBackError
from pyspark_jms.testing import JmsClient


def texts(*bodies):
    return block_of([section(0x70, list_(TRUE)) + section(0x77, string(body)) for body in bodies])


def to(queue):
    return Target(address=queue, capabilities=("queue",))


def test_a_transaction_is_visible_after_its_commit(broker, queue, settings_for):
    with Producer(settings_for(broker)) as producer:
        producer.open(to(queue))
        producer.send(texts("one", "two"))
        producer.send(texts("three" * 100_000))
        await_count(broker, queue, 0)
        producer.commit()
        await_count(broker, queue, 3)
        producer.send(texts("four"))
        producer.commit()
        producer.commit()
    with JmsClient(broker) as java:
        assert [java.receive(queue).body for _ in range(4)] == ["one", "two", "three" * 100_000, "four"]


def test_without_a_commit_nothing_is_sent(broker, queue, settings_for):
    with Producer(settings_for(broker)) as producer:
        producer.open(to(queue))
        producer.send(texts("one"))
    await_count(broker, queue, 0)


def test_more_messages_than_the_broker_grants_credit_for(broker, queue, settings_for):
    with Producer(settings_for(broker)) as producer:
        producer.open(to(queue))
        producer.send(texts(*map(str, range(5_000))))
        producer.commit()
    await_count(broker, queue, 5_000)


def test_messages_outside_of_a_transaction_are_confirmed_one_by_one(broker, queue, settings_for):
    with Producer(settings_for(broker)) as producer:
        producer.open(to(queue))
        producer.send(texts(*map(str, range(1_500))), in_transaction=False)
        producer.await_all()
        await_count(broker, queue, 1_500)


@pytest.mark.parametrize(
    ("outcome", "kind", "reason"),
    [
        (Delivery.RELEASED, InvalidDestinationError, "amqp:released .*Create the queue or the binding"),
        (Delivery.MODIFIED, BrokerError, "amqp:modified"),
        (Delivery.REJECTED, BrokerError, "amqp:rejected"),
        (Delivery.RECEIVED, BrokerError, "without an outcome"),
        (None, BrokerError, "without an outcome"),
        ("detach", InvalidDestinationError, "amqp:resource-deleted refused by the test"),
    ],
)
def test_a_message_that_is_not_accepted_is_an_error(outcome, kind, reason):
    with ProtonBroker(outcomes={"q": outcome}) as peer, Producer(peer.settings) as producer:
        producer.open(to("q"))
        with pytest.raises(kind, match=reason):
            send_and_await(producer)


def send_and_await(producer):
    """The answer may come before the first call returns, which then raises it."""
    producer.send(texts("one"), in_transaction=False)
    producer.await_all()


def test_a_full_address_rolls_the_transaction_back_with_its_reason(restricted, queue, settings_for):
    address = f"full.{queue}"
    with Producer(settings_for(restricted)) as producer:
        producer.open(to(address))
        producer.send(texts(*map(str, range(50))))
        with pytest.raises(TransactionRolledBackError, match="is full"):
            producer.commit()
    await_count(restricted, address, 0)
    with Producer(settings_for(restricted)) as producer:
        producer.open(to(address))
        producer.send(texts(*map(str, range(50))), in_transaction=False)
        with pytest.raises(BrokerError, match="resource-limit"):
            producer.await_all()


def test_a_user_who_may_not_send(restricted, queue, settings_for):
    settings = settings_for(restricted, user="consumer", password="pw")
    with Producer(settings) as producer, pytest.raises(JMSSecurityError):
        producer.open(to(queue))


def test_a_killed_broker_has_nothing_of_an_open_transaction_and_all_of_a_confirmed_one(killable, queue, settings_for):
    broker = killable
    with Producer(settings_for(broker)) as producer:
        producer.open(to(queue))
        producer.send(texts(*map(str, range(300))))
        producer.commit()
        producer.send(texts("lost"))
        broker.kill()
        with pytest.raises(TransactionRolledBackError):
            producer.commit()
    broker.start()
    await_count(broker, queue, 300)
