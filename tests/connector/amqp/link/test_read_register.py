import uuid

import numpy as np
import pytest
from waiting import await_count, wait_until

from pyspark_jms.amqp.link import register as register_module
from pyspark_jms.amqp.link.consumer import ReaderConsumer
from pyspark_jms.amqp.link.read_register import ReadRegister, RegisterName, connected, keep
from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.blocks.staged import pack
from pyspark_jms.delivery.register.token import StoredToken, Token
from pyspark_jms.errors import DataLossError, SubscriptionInUseError

FIRST = Token(stream="s", name="t", reader=1, batch=0)
SECOND = Token(stream="s", name="t", reader=1, batch=1, blocks=2, first=0, next=3, metrics=(("bytes", 7),))


def packed(*messages):
    data = [each.encode() for each in messages]
    block = MessageBlock(b"".join(data), ends=index_of(np.cumsum([len(each) for each in data])))
    return pack(block, 0, len(messages), source="queue://q", dialect="artemis")


@pytest.fixture
def name():
    return RegisterName(f"pyspark-jms.staging.s{uuid.uuid4().hex[:8]}", 1)


@pytest.mark.parametrize("address", ["a.0", "a.12", "a.b.3", "a.2024.1", "a.07.0"])
def test_a_name_is_that_of_its_address(address):
    assert RegisterName.of(address).address == address


@pytest.mark.parametrize(
    "address", ["a", "a.", ".1", "a.b", "a.06647148", "a.01", "a.\u0663", "a.\u00b2", "a.-1", "a.1234567"]
)
def test_no_register_has_another_address(address):
    assert RegisterName.of(address) is None


@pytest.fixture
def registers(broker, settings_for, name, opened):
    """``registers()`` connects another holder of the same register."""
    return lambda **options: opened(ReadRegister(settings_for(broker, **options), name))


def locked(registers):
    register = registers()
    wait_until(lambda: _locks(register))
    return register


def _locks(register):
    try:
        register.lock()
    except SubscriptionInUseError:
        return False
    return True


def with_value(registers):
    """A register of batch 1 with two blocks."""
    register = locked(registers)
    register.create(FIRST)
    replaced(register, SECOND, 1, [(0, 2, packed("a", "b")), (2, 1, packed("c" * 300_000))])
    return register


def replaced(register, token, expected, blocks=(), accepted=()):
    register.open()
    register.take(expected)
    register.accept()
    assert register.send_value(token.stream, token.batch, blocks) == len(blocks)
    register.replace(token, accepted)


def test_one_connection_has_the_lock_until_it_ends(registers):
    first, second = locked(registers), registers()
    with pytest.raises(SubscriptionInUseError):
        second.lock()
    first.require_lock()
    first.prove()
    first.drop()
    wait_until(lambda: _locks(second))


def test_a_value_is_seen_by_the_next_holder_as_it_was_sent(registers):
    with_value(registers).close()
    register = locked(registers)
    assert register.peek() == (StoredToken(SECOND),)
    blocks = register.browse("s", 1)
    assert [(block.first, block.end) for block in blocks] == [(0, 2), (2, 3)]
    assert [block.block.messages.message(0) for block in blocks] == [b"a", b"c" * 300_000]
    assert register.browse("s", 2) == []


@pytest.mark.parametrize("expected", [1, 3, 9])
def test_all_of_a_value_is_replaced_however_much_was_expected(registers, broker, name, expected, monkeypatch):
    monkeypatch.setattr(register_module, "_TAKE_SECONDS", 1.0)
    register = with_value(registers)
    register.open()
    assert (register.take(expected), register.blocks) == ((StoredToken(SECOND),), (("s", 1),))
    register.accept()
    third = Token(stream="s", name="t", reader=1, batch=2, first=3, next=3)
    register.replace(third)
    assert register.peek() == (StoredToken(third),)
    await_count(broker, name.queue.partition("::")[2], 1)


def test_whoever_looks_sees_tokens_only_and_costs_no_delivery(registers):
    register = with_value(registers)
    for _ in range(3):
        looking = registers()
        assert looking.peek() == (StoredToken(SECOND),)
        looking.browse("s", 1)
        looking.drop()
    assert register.peek() == (StoredToken(SECOND),)


def test_a_death_before_the_discharge_changes_nothing_but_a_count(
    registers, broker, queue, put, subscription_to, settings_for
):
    put(broker, queue, "one")
    register = with_value(registers)
    _, block = received(register, subscription_to(queue), settings_for(broker))
    register.open()
    register.take(3)
    register.accept()
    register.send_value("s", 2, [(3, 1, pack(block, 0, 1, source="q", dialect="artemis"))])
    register.drop()
    register = locked(registers)
    wait_until(register.peek)
    [seen] = register.peek()
    assert seen.token == SECOND
    assert seen.deliveries <= 1
    assert len(register.browse("s", 1)) == 2
    assert register.browse("s", 2) == []
    wait_until(lambda: broker.message_count(queue) == 1)


def received(register, subscription, settings):
    source = ReaderConsumer(register.connection, subscription, settings)
    source.begin()
    source.resume()
    wait_until(lambda: source.waiting()[0] == 1)
    source.pause()
    [block] = source.take()
    return source, block


def test_one_transaction_moves_what_a_source_has(registers, broker, queue, put, subscription_to, settings_for):
    put(broker, queue, "one")
    register = with_value(registers)
    source, block = received(register, subscription_to(queue), settings_for(broker))
    third = Token(stream="s", name="t", reader=1, batch=2, blocks=1, first=3, next=4)
    data = pack(block, 0, 1, source=f"queue://{queue}", dialect="artemis")
    replaced(register, third, 3, [(3, 1, data)], [(source.receiver, block.ids)])
    await_count(broker, queue, 0)
    [seen] = register.browse("s", 2)
    assert (seen.first, seen.block.messages.data) == (3, block.data)
    assert register.browse("s", 1) == []


def test_a_message_of_somebody_else_is_not_taken_for_a_token(registers, broker, name):
    register = locked(registers)
    register.transactions.send(
        name.address, "topic", MessageBlock(b"\x00\x53\x77\xa1\x01x", ends=index_of(np.array([6])))
    )
    register.transactions.discharge()
    assert register.peek() == (), "it is not browsed"
    register.open()
    with pytest.raises(DataLossError, match="not a token"):
        register.take(1)


def test_names_are_below_the_staging_queue():
    name = RegisterName("base", 3)
    assert (name.address, name.queue) == ("base.3", "base.3::base.3")
    durable = RegisterName("base", 0, client_id="me")
    assert (durable.container, durable.queue) == ("me", "base.0::me.base.0")


# --- connections that a worker keeps between its tasks -----------------------------------------------


@pytest.fixture
def settings(broker, settings_for):
    return settings_for(broker)


def test_a_connection_that_was_kept_is_used_by_one_at_a_time(settings):
    connection, transacted = connected(settings)
    keep(settings, connection, transacted)
    first, _ = connected(settings)
    assert first is connection
    second, others = connected(settings)
    assert second is not connection
    keep(settings, first, transacted)
    keep(settings, second, others)  # one is enough
    wait_until(lambda: first.is_down)
    assert connected(settings)[0] is second
    second.close()


def test_a_connection_that_has_ended_is_not_used(settings):
    connection, transacted = connected(settings)
    keep(settings, connection, transacted)
    connection.drop()
    other, _ = connected(settings)
    assert other is not connection
    other.close()
