import pytest
from proton_broker import ProtonBroker
from proxy import Proxy
from waiting import await_count, await_value, wait_until

from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.consumer import Consumer, ReaderConsumer
from pyspark_jms.errors import (
    BrokerError,
    ConnectionLostError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSSecurityError,
    MessageTooLargeError,
    UnsupportedError,
)


def taken(link, count):
    wait_until(lambda: link.waiting()[0] == count)
    blocks = link.take()
    return [block.message(index) for block in blocks for index in range(len(block))], [
        one for block in blocks for one in block.ids
    ]


def test_messages_come_in_order_as_they_were_sent(broker, queue, put, subscription_to, consume):
    put(broker, queue, "one", "two", "ä" * 100_000)
    link = consume(broker, subscription_to(queue))
    messages, ids = taken(link, 3)
    assert [message[-3:] for message in messages[:2]] == [b"one", b"two"]
    assert messages[2].endswith("ä".encode() * 100_000)
    receipt = link.acknowledge(ids)
    link.has_receipt(receipt, wait=True)
    await_count(broker, queue, 0)


def test_a_ping_is_sent_as_soon_as_a_transaction_has_begun(broker, queue, put, subscription_to, consume):
    put(broker, queue, *map(str, range(100)))
    link = consume(broker, subscription_to(queue))
    _, ids = taken(link, 100)
    receipts = []
    for one in ids:
        receipts += [link.acknowledge([one]), link.ping()]
    assert all(link.has_receipt(receipt, wait=True) for receipt in reversed(receipts))
    ping = link.ping()
    wait_until(lambda: link.has_receipt(ping), what="the answer to a ping that was not waited for")
    await_count(broker, queue, 0)


@pytest.mark.parametrize("ends", ["link", "session", "nothing"])
def test_without_transactions_messages_are_read_and_acknowledged_unconfirmed(subscription_to, opened, ends):
    """RabbitMQ 4.3 ends the link at the attach to the coordinator, 4.0 the session."""
    with ProtonBroker(coordinator=ends) as peer:
        peer.queues["q"] = ["one", "two"]
        link = opened(Consumer(peer.settings))
        link.subscribe(subscription_to("q"))
        _, ids = taken(link, 2)
        assert not link.confirms_acknowledgements
        ping = link.ping()
        assert not link.has_receipt(ping)
        with pytest.raises(UnsupportedError, match="no transactions"):
            link.has_receipt(ping, wait=True)
        link.has_receipt(link.acknowledge(ids), wait=True)
        link.has_receipt(link.probe(), wait=True)
        link.close()
        wait_until(lambda: not peer.is_busy)
        assert (peer.queues["q"], peer.deliveries) == ([], 2)


@pytest.mark.parametrize(("selector", "kind"), [(None, BrokerError), ("n = 1", InvalidSelectorError)])
def test_an_invalid_field_is_the_selector_only_if_there_is_one(subscription_to, opened, selector, kind):
    """RabbitMQ 4 refuses names of queues so."""
    with ProtonBroker(refusal="amqp:invalid-field") as peer:
        link = opened(Consumer(peer.settings))
        with pytest.raises(kind, match="amqp:invalid-field refused by the test"):
            link.subscribe(subscription_to("q", selector=selector))


@pytest.mark.parametrize("browse", [False, True])
def test_a_question_mark_reads_no_other_queue(broker, queue, settings_for, put, subscription_to, opened, browse):
    """Artemis would deliver the messages of the queue whose name stands before the question mark."""
    put(broker, queue, "one")
    link = opened(Consumer(settings_for(broker)))
    with pytest.raises(InvalidDestinationError, match="question mark"):
        link.subscribe(subscription_to(f"{queue}?consumer-priority=1", browse=browse))
    await_count(broker, queue, 1)


def test_only_credit_holds_the_broker_back(broker, queue, put, subscription_to, consume):
    put(broker, queue, *(f"text {n}" for n in range(1_500)))
    link = consume(broker, subscription_to(queue))
    taken(link, 1_500)
    assert link.connection.session._left > 1 << 30


def test_close_gives_back_without_spending_an_attempt(broker, queue, put, subscription_to, settings_for):
    put(broker, queue, "one")
    for _ in range(12):  # more than max-delivery-attempts
        link = Consumer(settings_for(broker))
        link.subscribe(subscription_to(queue))
        taken(link, 1)
        link.close()
    await_count(broker, queue, 1)


def test_a_bad_selector(broker, queue, subscription_to, consume):
    with pytest.raises(InvalidSelectorError, match="JMS_INVALID_SELECTOR"):
        consume(broker, subscription_to(queue, selector="n = 1 OR"))


def test_a_browse_takes_nothing(broker, queue, put, subscription_to, consume):
    put(broker, queue, "one", "two")
    link = consume(broker, subscription_to(queue, browse=True))
    taken(link, 2)
    link.close()
    await_count(broker, queue, 2)


def test_a_plain_topic(broker, queue, put, subscription_to, consume):
    link = consume(broker, subscription_to(queue, kind="topic"))
    put(broker, queue, "one", kind="topic")
    assert len(taken(link, 1)[0]) == 1


def test_a_message_above_the_limit_stops_the_query_and_stays(broker, queue, put, subscription_to, consume):
    put(broker, queue, "x" * 5_000)
    link = consume(broker, subscription_to(queue), maxMessageBytes="1k")
    wait_until(lambda: link.prefetch.receiver.transfers.oversized)
    with pytest.raises(MessageTooLargeError, match=rf"queue://{queue}: .*maxMessageBytes \(1,024\)"):
        link.check()
    link.close()
    await_count(broker, queue, 1)


def test_users_without_permission(restricted, queue, subscription_to, consume):
    with pytest.raises(JMSSecurityError, match="JMS_SECURITY"):
        consume(restricted, subscription_to(queue), user="producer", password="pw")
    with pytest.raises((JMSSecurityError, InvalidDestinationError)):
        consume(restricted, subscription_to(f"{queue}.missing"), user="consumer", password="pw")


def test_an_acknowledgement_over_a_lost_connection(broker, queue, put, subscription_to, settings_for, opened):
    put(broker, queue, "one")
    with Proxy(broker.host, broker.port) as proxy:
        link = opened(Consumer(settings_for(broker, brokerUrl=proxy.url.replace("stomp", "amqp"))))
        link.subscribe(subscription_to(queue))
        _, ids = taken(link, 1)
        proxy.cut()
        wait_until(lambda: link.connection.is_down)
        with pytest.raises(ConnectionLostError):
            link.acknowledge(ids)
        link.close()


# --- acknowledgements -------------------------------------------------------------------------------


def test_a_confirmed_acknowledgement_survives_a_killed_broker(killable, queue, settings_for, put, subscription_to):
    broker = killable
    put(broker, queue, *map(str, range(100)))
    link = Consumer(settings_for(broker))
    link.subscribe(subscription_to(queue))
    wait_until(lambda: link.waiting()[0] == 100)
    [block] = link.take()
    link.has_receipt(link.acknowledge(block.ids[:40]), wait=True)
    broker.kill()
    wait_until(lambda: link.connection.is_down)
    with pytest.raises(ConnectionLostError):
        link.acknowledge(block.ids[40:])
    link.close()
    broker.start()
    await_count(broker, queue, 60)


# --- the consumer of a reader -----------------------------------------------------------------------


@pytest.fixture
def consumer_of(broker, settings_for, subscription_to, opened):
    def attach(name, **options):
        settings = settings_for(broker, **options)
        connection = opened(connect(settings))
        consumer = ReaderConsumer(connection, subscription_to(name, window_messages=10), settings)
        consumer.begin()
        return consumer

    return attach


def texts(blocks):
    return [block.message(index)[-1:].decode() for block in blocks for index in range(len(block))]


def test_nothing_comes_before_resume_or_after_pause(broker, queue, put, consumer_of):
    consumer = consumer_of(queue)
    put(broker, queue, *"abc")
    consumer.pause()
    assert consumer.waiting() == (0, 0)
    consumer.resume()
    wait_until(lambda: consumer.waiting()[0] == 3)
    consumer.pause()
    assert texts(consumer.take()) == ["a", "b", "c"]
    put(broker, queue, "d")
    consumer.pause()
    assert consumer.waiting() == (0, 0)
    await_value(lambda: broker.delivering_count(queue), 3)


def test_released_messages_come_again_in_their_order_without_a_count(broker, queue, put, consumer_of):
    put(broker, queue, *"abcdef")
    consumer = consumer_of(queue)
    for _ in range(3):
        consumer.resume()
        wait_until(lambda: consumer.waiting()[0] == 6)
        consumer.pause()
        blocks = consumer.take()
        assert texts(blocks) == list("abcdef")
        consumer.release([each for block in blocks for each in block.ids if each])
    consumer.detach()
    await_value(lambda: broker.delivery_counts(queue), [0] * 6)


def test_the_window_counts_what_is_neither_accepted_nor_released(broker, queue, put, consumer_of):
    put(broker, queue, *map(str, range(25)))
    consumer = consumer_of(queue)
    consumer.resume()
    wait_until(lambda: consumer.waiting()[0] == 10)
    consumer.pause()
    assert consumer.waiting()[0] == 10
    taken = [each for block in consumer.take() for each in block.ids if each]
    consumer.release(taken[5:])
    consumer.resume()
    wait_until(lambda: consumer.waiting()[0] == 5)
    consumer.pause()
    assert consumer.waiting()[0] == 5


def test_an_empty_source_is_proven(broker, queue, put, consumer_of):
    consumer = consumer_of(queue)
    consumer.resume()
    consumer.pause()
    assert consumer.was_empty
    consumer.resume()
    assert not consumer.was_empty
