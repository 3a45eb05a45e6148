"""A register on the real broker: one owner at a time, and what the next one finds after each way to end."""

import threading
from dataclasses import replace

import pytest
from amqp_messages import string
from amqp_sending import put, subscription_to
from old_brokers import EmbeddedArtemis244
from proxy import Proxy
from waiting import await_count, wait_until

from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.consumer import Consumer
from pyspark_jms.amqp.link.register import Place, Register
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.errors import (
    IllegalStateError,
    InvalidDestinationError,
    MaxConsumersError,
    SubscriptionInUseError,
    TransactionRolledBackError,
)

SOON = 20.0


class Text(bytes):
    """A token."""

    def body(self):
        return bytes(self)

    @classmethod
    def parse(cls, body):
        return cls(body)


class Owner:
    """A register on a connection of its own."""

    def __init__(self, settings, name):
        place = Place(name, f"owner-{name}", "token")
        self.connection = connect(replace(settings, client_id=place.container))
        self.transactions = Transactions(self.connection)
        self.register = Register(self.connection, place, self.transactions, Text)

    def close(self):
        self.connection.close()

    def locked(self, wait=SOON):
        assert self.register.lock(wait_seconds=wait)
        return self.register

    def swap(self, body):
        """Replace all tokens, as one transaction."""
        self.register.take()
        self.replace(body)
        self.transactions.commit()

    def replace(self, body):
        self.register.accept()
        self.register.send(Text(body))


@pytest.fixture
def owner(broker, queue, settings_for, opened):
    return lambda: opened(Owner(settings_for(broker), queue))


def bodies(tokens):
    return [seen.token for seen in tokens]


def test_a_new_register_is_empty_until_it_is_created(owner):
    assert not owner().register.lock(create=False)
    register = owner().locked()
    assert register.take(wait_seconds=0.1) == ()
    register.create(Text(b"first"))
    assert bodies(register.take()) == bodies(register.take()) == [b"first"]
    register.release()
    again = owner().register
    assert again.lock(create=False, wait_seconds=SOON)
    assert bodies(again.take()) == [b"first"]


def test_there_is_one_owner_of_the_lock(owner):
    first, second = owner(), owner()
    first.locked().create(Text(b"1"))
    with pytest.raises(SubscriptionInUseError):
        second.locked(wait=0.3)
    threading.Timer(0.5, first.register.release).start()
    assert bodies(second.locked().take()) == [b"1"]


def test_many_attempts_to_lock_use_one_connection(owner):
    first, second = owner(), owner()
    first.locked()
    for _ in range(20):
        with pytest.raises(SubscriptionInUseError):
            second.locked(wait=0)
    first.register.release()
    second.locked()


def test_a_swap_replaces_all_tokens(owner):
    mine = owner()
    register = mine.locked()
    register.create(Text(b"1"))
    register.create(Text(b"2"))
    for body in (b"3", b"4" * 300_000):
        mine.swap(body)
        register.release()
        assert bodies(mine.locked().take()) == [body]


def test_a_token_is_given_back_when_its_owner_releases_ends_or_rolls_back(owner):
    mine = owner()
    mine.locked().create(Text(b"1"))
    assert bodies(mine.register.take()) == [b"1"]
    mine.register.release()
    mine.locked().take()
    mine.replace(b"2")
    mine.transactions.roll_back()
    mine.close()
    other = owner()
    assert bodies(other.locked().take(wait_seconds=SOON)) == [b"1"]
    other.register.take()
    other.replace(b"3")
    other.connection.drop()
    assert bodies(owner().locked().take(wait_seconds=SOON)) == [b"1"]


def test_reading_and_releasing_spends_no_delivery_attempt(owner):
    mine = owner()
    mine.locked().create(Text(b"1"))
    for _ in range(15):
        (token,) = mine.register.take()
        assert token.deliveries == 0
        mine.register.release()
        mine.locked()


def test_looking_at_a_token_spends_no_delivery_attempt_even_at_a_death(owner):
    first = owner()
    first.locked().create(Text(b"1"))
    first.connection.drop()
    for _ in range(4):
        mine = owner()
        assert [(seen.token, seen.deliveries) for seen in mine.locked().peek()] == [(b"1", 0)]
        mine.connection.drop()
    assert bodies(owner().locked().take()) == [b"1"]


def test_a_reader_waits_for_a_token_that_is_on_its_way(owner):
    mine = owner()
    register = mine.locked()
    threading.Timer(0.3, register.create, [Text(b"late")]).start()
    assert bodies(register.take(wait_seconds=SOON)) == [b"late"]


def test_a_first_token_is_sent_once(owner):
    """The broker knows it, when it is replaced or lost too."""
    mine = owner()
    register = mine.locked()
    for _ in range(2):
        register.create(Text(b"1"), once=True)
        assert bodies(register.take()) == [b"1"]
    mine.swap(b"2")
    register.create(Text(b"3"), once=True)
    assert bodies(register.take()) == [b"2"]
    register.accept()
    mine.transactions.commit()
    register.create(Text(b"4"), once=True)
    assert register.take() == ()
    register.create(Text(b"5"))
    assert bodies(register.take()) == [b"5"]


@pytest.mark.parametrize(("max_consumers", "is_lock"), [(None, True), (1, True), (2, False), (-1, False)])
def test_a_queue_of_an_administrator_is_a_lock_if_it_has_one_consumer(broker, owner, max_consumers, is_lock):
    mine = owner()
    queue = mine.register.place.queue
    if max_consumers is not None:
        control = broker.server.getActiveMQServerControl()
        address, name = queue.split("::")
        control.createQueue(address, "MULTICAST", name, None, True, max_consumers, False, True)
    mine.locked()
    for _ in range(3):
        if is_lock:
            mine.register.require_lock()
        else:
            with pytest.raises(MaxConsumersError, match=f"{queue}.*set its max-consumers to 1"):
                mine.register.require_lock()
    assert broker.consumer_count(queue.split("::")[1]) == 1


@pytest.mark.parametrize("user", ["artemis", "worker"], ids=["management", "no management"])
def test_a_subscription_of_another_topic_is_left_alone(restricted, queue, settings_for, opened, user):
    """An attach as the register would move its queue, without its messages."""
    password = {"artemis": restricted.password}.get(user, "pw")
    settings = settings_for(restricted, user=user, password=password)
    mine = opened(Owner(settings, queue))
    theirs = opened(Consumer(replace(settings, client_id=mine.register.place.container)))
    durable = mine.register.place.subscription
    theirs.subscribe(subscription_to(f"{queue}.theirs", kind="topic", durable=durable))
    theirs.close()
    put(restricted, f"{queue}.theirs", "one", "two", kind="topic")
    with pytest.raises(InvalidDestinationError, match="belongs to"):
        mine.register.require_same_topic(settings)
    mine.locked()
    with pytest.raises(InvalidDestinationError, match="Another application uses it"):
        mine.register.create(Text(b"1"))
    assert restricted.message_count(str(durable)) == 2


def test_a_queue_with_a_selector_is_no_register(broker, queue, owner, settings_for, opened):
    mine = owner()
    place = mine.register.place
    theirs = opened(Consumer(replace(settings_for(broker), client_id=place.container)))
    subscription = subscription_to(queue, kind="topic", durable=place.subscription, selector="JMSType = 'a'")
    theirs.subscribe(subscription)
    theirs.close()
    put(broker, queue, "one", kind="topic", subject=string("a"))
    await_count(broker, str(place.subscription), 1)
    with pytest.raises(InvalidDestinationError, match="has a selector"):
        mine.register.lock()
    await_count(broker, str(place.subscription), 1)


def test_who_lost_the_lock_cannot_commit(broker, queue, owner, settings_for, opened):
    """The broker ends the connection of an owner that does not notice it, and the next owner reads the old token."""
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        mine = opened(Owner(settings_for(broker, brokerUrl=proxy.url), queue))
        mine.locked().create(Text(b"1"))
        mine.register.take()
        mine.replace(b"zombie")
        proxy.cut()
        other = owner()
        assert bodies(other.locked().take(wait_seconds=SOON)) == [b"1"]
        other.swap(b"2")
        with pytest.raises(TransactionRolledBackError):
            mine.transactions.commit()
        assert bodies(other.register.take()) == [b"2"]


def test_a_swap_without_a_token_or_a_lock_is_refused(owner):
    mine = owner()
    with pytest.raises(IllegalStateError, match="without its lock"):
        mine.register.take()
    mine.locked()
    with pytest.raises(IllegalStateError, match="before it was read"):
        mine.replace(b"1")


@pytest.fixture(params=["newest", pytest.param("2.44", marks=pytest.mark.deep)])
def any_killable(request):
    if request.param == "newest":
        yield request.getfixturevalue("killable")
    else:
        with EmbeddedArtemis244() as broker:
            yield broker


@pytest.mark.broker
def test_a_committed_swap_survives_a_killed_broker(any_killable, queue, settings_for):
    settings = settings_for(any_killable)
    mine = Owner(settings, queue)
    mine.locked().create(Text(b"0"))
    for number in range(1, 6):
        mine.swap(b"%d" % number)
    mine.register.take()
    mine.replace(b"open")
    any_killable.kill()
    any_killable.start()
    wait_until(lambda: mine.connection.is_down)
    mine.close()
    after, second = Owner(settings, queue), Owner(settings, queue)
    assert bodies(after.locked().peek()) == bodies(after.register.take()) == [b"5"]
    with pytest.raises(SubscriptionInUseError):
        second.locked(wait=0)
    after.close()
    second.close()
