"""A register on the real broker: one owner at a time, and what the next one finds after each way to end."""

import threading

import pytest
from artemis_244 import EmbeddedArtemis244
from proxy import Proxy
from waiting import wait_until

from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.link.register import Register, register_settings
from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.errors import IllegalStateError, SubscriptionInUseError, TransactionRolledBackError
from pyspark_jms.testing import EmbeddedArtemis

SOON = 20.0


class Owner:
    """A register on a connection of its own."""

    def __init__(self, settings, name):
        self.connection = connect(register_settings(settings, f"owner-{name}"))
        self.transactions = Transactions(self.connection)
        self.register = Register(self.connection, name)

    def close(self):
        self.connection.close()

    def locked(self, wait=SOON):
        self.register.lock(wait)
        return self.register

    def swap(self, body):
        """Replace all tokens, as one transaction."""
        self.register.read()
        self.replace(body)
        self.transactions.commit()

    def replace(self, body):
        self.register.accept(self.transactions)
        self.register.send(body, self.transactions)


@pytest.fixture
def owner(broker, queue, settings_for, opened):
    return lambda: opened(Owner(settings_for(broker), queue))


def bodies(tokens):
    return [token.body for token in tokens]


def test_a_new_register_is_empty_until_it_is_created(owner):
    register = owner().locked()
    assert not register.existed
    assert register.read(0.1) == ()
    register.create(b"first")
    assert bodies(register.read()) == bodies(register.read()) == [b"first"]
    register.release()
    again = owner().locked()
    assert again.existed
    assert bodies(again.read()) == [b"first"]


def test_there_is_one_owner_of_the_lock(owner):
    first, second = owner(), owner()
    first.locked().create(b"1")
    with pytest.raises(SubscriptionInUseError):
        second.locked(wait=0.3)
    threading.Timer(0.5, first.register.release).start()
    assert bodies(second.locked().read()) == [b"1"]


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
    register.create(b"1")
    register.create(b"2")
    for body in (b"3", b"4" * 300_000):
        mine.swap(body)
        register.release()
        assert bodies(mine.locked().read()) == [body]


def test_a_token_is_given_back_when_its_owner_releases_ends_or_rolls_back(owner):
    mine = owner()
    mine.locked().create(b"1")
    assert bodies(mine.register.read()) == [b"1"]
    mine.register.release()
    mine.locked().read()
    mine.replace(b"2")
    mine.transactions.roll_back()
    mine.close()
    other = owner()
    assert bodies(other.locked().read(SOON)) == [b"1"]
    other.register.read()
    other.replace(b"3")
    other.connection.drop()
    assert bodies(owner().locked().read(SOON)) == [b"1"]


def test_reading_and_releasing_spends_no_delivery_attempt(owner):
    mine = owner()
    mine.locked().create(b"1")
    for _ in range(15):
        (token,) = mine.register.read()
        assert token.delivery_count == 0
        mine.register.release()
        mine.locked()


def test_looking_at_a_token_spends_no_delivery_attempt_even_at_a_death(owner, queue):
    first = owner()
    first.locked().create(b"1")
    first.connection.drop()
    for _ in range(4):
        mine = owner()
        assert [(token.body, token.delivery_count) for token in mine.locked().peek(f"owner-{queue}")] == [(b"1", 0)]
        mine.connection.drop()
    assert bodies(owner().locked().read()) == [b"1"]


def test_a_reader_waits_for_a_token_that_is_on_its_way(owner):
    mine = owner()
    register = mine.locked()
    threading.Timer(0.3, register.create, [b"late"]).start()
    assert bodies(register.read(SOON)) == [b"late"]


def test_who_lost_the_lock_cannot_commit(broker, queue, owner, settings_for, opened):
    """The broker ends the connection of an owner that does not notice it, and the next owner reads the old token."""
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        mine = opened(Owner(settings_for(broker, brokerUrl=proxy.url), queue))
        mine.locked().create(b"1")
        mine.register.read()
        mine.replace(b"zombie")
        proxy.cut()
        other = owner()
        assert bodies(other.locked().read(SOON)) == [b"1"]
        other.swap(b"2")
        with pytest.raises(TransactionRolledBackError):
            mine.transactions.commit()
        assert bodies(other.register.read()) == [b"2"]


def test_a_swap_without_a_token_or_a_lock_is_refused(owner):
    mine = owner()
    with pytest.raises(IllegalStateError, match="without its lock"):
        mine.register.read()
    mine.locked()
    with pytest.raises(IllegalStateError, match="before it was read"):
        mine.replace(b"1")


@pytest.mark.parametrize("kind", [EmbeddedArtemis, pytest.param(EmbeddedArtemis244, marks=pytest.mark.deep)])
def test_a_committed_swap_survives_a_killed_broker(kind, settings_for):
    with kind() as broker:
        settings = settings_for(broker)
        mine = Owner(settings, "reg")
        mine.locked().create(b"0")
        for number in range(1, 6):
            mine.swap(b"%d" % number)
        mine.register.read()
        mine.replace(b"open")
        broker.kill()
        broker.start()
        wait_until(lambda: mine.connection.is_down)
        mine.close()
        after, second = Owner(settings, "reg"), Owner(settings, "reg")
        assert bodies(after.locked().peek("owner-reg")) == bodies(after.register.read()) == [b"5"]
        with pytest.raises(SubscriptionInUseError):
            second.locked(wait=0)
        after.close()
        second.close()
