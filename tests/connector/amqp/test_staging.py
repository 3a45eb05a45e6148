import uuid

import pytest
from waiting import await_count, wait_until

from pyspark_jms.amqp.link.staging_queue import Names
from pyspark_jms.amqp.staging import AmqpStagedLink
from pyspark_jms.delivery.staging.tokens import SourceToken
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import DurableSubscription
from pyspark_jms.network.arrivals import Arrivals

TOKENS = [SourceToken(id="s", name="t", next=next_, floor=0).text() for next_ in range(2)]


@pytest.fixture
def link(broker, settings_for, opened):
    name = f"pyspark-jms.staging.{uuid.uuid4().hex[:8]}"
    link = opened(AmqpStagedLink(settings_for(broker), Names(name, "s"), Arrivals()))
    link.lock()
    link.create_token(TOKENS[0])
    return link


def test_messages_of_two_sources_move_in_one_transaction(broker, queue, put, subscription_to, link):
    put(broker, queue, "a", "b")
    put(broker, f"{queue}.2", "c")
    link.subscribe([subscription_to(queue), subscription_to(f"{queue}.2")])
    accepted = []
    for number, lane in enumerate(link.lanes):
        lane.resume()
        wait_until(lambda lane=lane, number=number: lane.waiting()[0] == 2 - number)
        lane.pause()
        accepted += [(number, [each for each in block.ids if each]) for block in lane.take()]
    link.take_tokens()
    link.move(TOKENS[1], accepted)
    assert broker.message_count(queue) == broker.message_count(f"{queue}.2") == 0
    assert [token.text for token in link.tokens()] == [TOKENS[1]]


def test_a_durable_subscription_and_the_lock_are_one_connection(broker, queue, subscription_to, settings_for, opened):
    durable = DurableSubscription("sub", f"client-{queue}")
    names = Names(f"{queue}.staging", "s", durable.client_id)
    link = opened(AmqpStagedLink(settings_for(broker), names, Arrivals()))
    link.lock()
    link.create_token(TOKENS[0])
    link.subscribe([subscription_to(f"{queue}.topic", kind="topic", durable=durable)])
    link.take_tokens()
    link.send_blocks([(0, 1, (b"da", b"ta"))])
    link.commit(TOKENS[1])
    await_count(broker, f"{durable.client_id}.{queue}.staging", 1)
    assert broker.has_queue(str(durable))
    link.close()
    assert broker.has_queue(str(durable))


def test_a_broker_that_cannot_is_refused_when_it_is_known(broker, queue, settings_for):
    with pytest.raises(UnsupportedError, match="a staging queue needs a broker that refuses a second consumer"):
        AmqpStagedLink(settings_for(broker, broker="classic"), Names(queue, "s"), Arrivals())


def test_the_patience_outlasts_the_idle_time_out(link):
    assert link.patience_seconds == pytest.approx(70)
