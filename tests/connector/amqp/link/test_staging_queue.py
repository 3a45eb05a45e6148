import uuid

import numpy as np
import pytest
from waiting import await_count, wait_until

from pyspark_jms.amqp.link.lane import Lane
from pyspark_jms.amqp.link.staging_queue import Names, Outgoing, StagingQueue, block_of
from pyspark_jms.amqp.wire.sections import APPLICATION_PROPERTIES
from pyspark_jms.amqp.wire.values import Described, encode
from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.blocks.staged import pack
from pyspark_jms.errors import MaxConsumersError, SubscriptionInUseError, TransactionRolledBackError


@pytest.fixture
def names():
    return Names(f"pyspark-jms.staging.{uuid.uuid4().hex[:8]}", "s1")


def texts(*messages):
    data = [each.encode() for each in messages]
    return MessageBlock(b"".join(data), ends=index_of(np.cumsum([len(each) for each in data])))


def packed(*messages):
    return pack(texts(*messages), 0, len(messages), source="queue://q", dialect="artemis")


@pytest.fixture
def staging(broker, settings_for, names, opened):
    """``staging()`` connects another owner of the same stream."""
    return lambda **options: opened(StagingQueue(settings_for(broker, **options), names))


def owner(staging):
    queue = staging()
    queue.lock()
    return queue


def test_one_connection_has_the_lock_until_it_ends(staging):
    first = owner(staging)
    second = staging()
    with pytest.raises(SubscriptionInUseError):
        second.lock()
    first.drop()

    def locked():
        try:
            second.lock()
        except SubscriptionInUseError:
            return False
        return True

    wait_until(locked)


def test_blocks_and_tokens_are_seen_by_the_next_owner_as_they_were_sent(staging):
    first = owner(staging)
    assert (first.tokens(), first.blocks()) == ([], [])
    first.create_token("one")
    assert first.take_tokens() == ["one"]
    first.send_blocks([(0, 2, packed("a", "bc")), (2, 1, packed("d" * 300_000))])
    first.commit("two")
    first.drop()
    next_ = staging()
    wait_until(lambda: _locks(next_))
    assert [(token.text, token.deliveries) for token in next_.tokens()] == [("two", 0)]
    blocks = next_.blocks()
    assert [(block.first, block.end) for block in blocks] == [(0, 2), (2, 3)]
    assert [block.block.messages.message(0) for block in blocks] == [b"a", b"d" * 300_000]
    assert {(block.block.source, block.block.dialect) for block in blocks} == {("queue://q", "artemis")}
    assert next_.blocks() == [] or len(next_.blocks()) == 2


def _locks(queue):
    try:
        queue.lock()
    except SubscriptionInUseError:
        return False
    return True


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("browsed", [True, False])
def test_finished_blocks_are_deleted_with_the_commit(broker, staging, names, browsed, asked):
    queue = owner(staging)
    queue.create_token("a")
    queue.take_tokens()
    queue.send_blocks([(0, 10, packed(*"0123456789")), (10, 5, packed(*"01234")), (15, 1, packed("x"))])
    queue.commit("b")
    if browsed:
        queue.blocks()
    else:
        queue.close()
        queue = owner(staging)
        queue.tokens()
    if asked:
        queue.send_blocks([], finished=15)
    if asked and browsed:
        wait_until(lambda: len(queue._lock.receiver.transfers) == 2)
    queue.take_tokens()
    assert queue.take_finished(15) == 2
    queue.commit("c")
    assert [(block.first, block.end) for block in queue.blocks()] == [(15, 16)]
    assert [token.text for token in queue.tokens()] == ["c"]


@pytest.mark.parametrize("browsed", [True, False])
def test_blocks_of_another_stream_are_not_seen_and_stay(broker, staging, names, settings_for, browsed):
    other = StagingQueue(settings_for(broker), Names(names.address, "s2"))
    other.lock()
    other.create_token("a")
    other.send_blocks([(0, 1, packed("theirs"))])
    other.commit("b")
    other.close()
    queue = owner(staging)
    queue.send_blocks([(0, 1, packed("m")), (1, 1, packed("n"))])
    queue.commit("c")
    if browsed:
        assert [(block.first, block.stream) for block in queue.blocks()] == [(0, "s1"), (1, "s1")]
    queue.take_tokens()
    assert queue.take_finished(2) == 2
    queue.commit("d")
    assert queue.blocks() == []
    await_count(broker, f"{names.address}.owner", 1)


def test_a_queue_of_an_administrator_without_a_limit_of_consumers_is_no_lock(broker, staging, names):
    control = broker.server.getActiveMQServerControl()
    control.createQueue(names.address, "MULTICAST", f"{names.address}.owner", None, True, -1, False, True)
    with pytest.raises(MaxConsumersError):
        staging().lock()


def test_a_death_before_the_commit_changes_nothing(staging):
    queue = owner(staging)
    queue.create_token("a")
    queue.take_tokens()
    queue.send_blocks([(0, 1, packed("m"))])
    queue.commit("b")
    queue.take_tokens()
    queue.take_finished(1)
    queue.drop()
    queue = staging()
    wait_until(lambda: _locks(queue))
    assert [token.text for token in queue.tokens()] == ["b"]
    assert [(block.first, block.end) for block in queue.blocks()] == [(0, 1)]


def test_one_transaction_moves_what_sources_have(broker, queue, put, subscription_to, staging, settings_for):
    put(broker, queue, "one", "two", "three")
    staged = owner(staging)
    staged.create_token("a")
    lane = Lane(staged.connection, subscription_to(queue), settings_for(broker))
    staged.connection.on_received = lane.grant
    assert lane.waiting() == (0, 0)
    lane.resume()
    wait_until(lambda: lane.waiting()[0] == 3)
    lane.pause()
    [block] = lane.take()
    lane.release([block.ids[2]])
    staged.take_tokens()
    data = pack(block, 0, 1, source=f"queue://{queue}", dialect="artemis")
    staged.send_blocks([(0, 1, data)])
    staged.commit("b", [(lane.receiver, block.ids[:1])])
    staged.divert(lane.receiver, block.ids[1:2], Outgoing(f"{queue}.dead", block_of(block.message(1))))
    wait_until(lambda: broker.message_count(queue) == 1)
    await_count(broker, f"{queue}.dead", 1)
    [seen] = staged.blocks()
    assert (seen.block.messages.data, seen.block.messages.ends) == (block.slice(0, 1).data, block.ends[:1])
    assert lane.was_empty
    lane.resume()
    assert not lane.was_empty
    wait_until(lambda: lane.waiting()[0] == 1)  # it was given back
    lane.pause()
    lane.resume()
    lane.pause()
    assert lane.was_empty


def test_the_reason_of_a_refused_commit(broker, queue, staging, subscription_to, settings_for):
    staged = owner(staging)
    lane = Lane(staged.connection, subscription_to(queue), settings_for(broker))
    known = encode(Described(APPLICATION_PROPERTIES, {"_AMQ_DUPL_ID": queue})) + b"\x00\x53\x77\x40"
    letters = Outgoing(f"{queue}.dead", block_of(known))
    staged.divert(lane.receiver, [], letters)
    with pytest.raises(TransactionRolledBackError, match="Duplicate message detected"):
        staged.divert(lane.receiver, [], letters)
    await_count(broker, f"{queue}.dead", 1)
