import pytest
from addresses import types_of
from waiting import await_count, await_value, wait_until

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing import DeadLetter, ExternalBroker, JmsClient


def test_counts_follow_a_consumer(broker, connect, queue):
    stomp, _ = connect(broker)
    for text in "abc":
        stomp.send(queue, text)
    wait_until(lambda: (broker.message_count(queue), broker.delivering_count(queue)) == (3, 0))
    assert broker.consumer_count(queue) == 0
    await_value(lambda: broker.delivery_counts(queue), [0, 0, 0])

    stomp.subscribe(queue)
    ids = [stomp.next_frame("MESSAGE").partition("message-id:")[2].split("\n")[0] for _ in range(3)]
    wait_until(lambda: broker.consumer_count(queue) == 1)
    wait_until(lambda: (broker.message_count(queue), broker.delivering_count(queue)) == (3, 3))
    await_value(lambda: broker.delivery_counts(queue), [])

    stomp.ask(f"ACK\nid:{ids[0]}\nreceipt:a\n\n")
    wait_until(lambda: (broker.message_count(queue), broker.delivering_count(queue)) == (2, 2))
    stomp.link.close()
    wait_until(lambda: broker.delivery_counts(queue) == [1, 1])
    wait_until(lambda: broker.consumer_count(queue) == 0)


def test_create_queue_twice_is_one_queue(broker, queue):
    assert not broker.has_queue(queue)
    broker.create_queue(queue)
    broker.create_queue(queue)
    assert broker.has_queue(queue)
    await_count(broker, queue, 0)


def test_create_topic_makes_the_address_alone(broker, queue):
    broker.create_queue(queue, topic=True)
    assert not broker.has_queue(queue)
    assert types_of(broker, queue) == "[MULTICAST]"


def test_unknown_queue(broker):
    await_count(broker, "nowhere", 0)
    with pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\].*'nowhere'"):
        broker.consumer_count("nowhere")


def test_dead_letters_have_their_original_queue(broker, queue):
    dead = f"{queue}.dead"
    with JmsClient(broker) as java:
        java.send(dead, "sent by hand")
        java.send(dead, "moved", properties={"_AMQ_ORIG_QUEUE": queue, "_AMQ_ORIG_MESSAGE_ID": 42})
    by_hand, moved = broker.dead_letters(dead)
    assert by_hand.queue is None
    assert moved == DeadLetter(queue=queue, message_id=42)


@pytest.mark.parametrize(
    "question",
    [
        lambda broker: broker.message_count("q"),
        lambda broker: broker.delivery_counts("q"),
        lambda broker: broker.dead_letters(),
        lambda broker: broker.create_queue("q"),
        lambda broker: broker.create_queue("q", topic=True),
        lambda broker: broker.purge("q"),
        lambda broker: broker.jvm,
    ],
)
def test_operations_that_need_the_jvm_are_errors(question):
    with pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\].*stomp://somewhere:61613"):
        question(ExternalBroker("stomp://somewhere:61613"))


def test_a_failover_list_and_no_password_in_the_repr():
    named = ExternalBroker("stomp+ssl://one:1,stomp+ssl://two:2", "me", "sesame")
    assert (named.host, named.port) == ("one", 1)
    assert repr(named) == "<ExternalBroker stomp+ssl://one:1,stomp+ssl://two:2 user=me>"


@pytest.mark.parametrize("wrong", ["localhost", "stomp://localhost", "61613"])
def test_an_invalid_address_is_an_error(wrong):
    with pytest.raises(EmbeddedBrokerError, match=rf"\[JMS_EMBEDDED_BROKER\] JMS_BROKER_URL={wrong} "):
        ExternalBroker(wrong)
