import contextlib
import time

from numbered import fill
from streaming import access, left
from waiting import await_count, wait_until

from pyspark_jms.delivery.ledger import Ledger
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.ack_loop import AckLoop
from pyspark_jms.source.subscriptions import Subscriptions
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.stomp.source import StompSource


@contextlib.contextmanager
def running(broker, queue, count):
    """``count`` messages of the queue are in a batch of the ledger."""
    fill(broker, queue, count)
    subscriptions = Subscriptions(reading_of(SourceOptions.parse(access(broker) | {"queue": queue})), time.sleep)
    subscriptions.open(None, 0.0)
    with contextlib.closing(subscriptions):
        ledger = Ledger([StompSource().recognition("artemis")], 0)
        wait_until(lambda: subscriptions.links[0].waiting()[0] == count)
        receive(subscriptions, ledger)
        assert ledger.offer(max_messages=None, max_bytes=None) == count
        loop = AckLoop(subscriptions, ledger, None)
        yield loop, subscriptions, ledger, loop.counts


def receive(subscriptions, ledger):
    for block in subscriptions.links[0].take():
        ledger.receive(0, block, len(block))


def test_only_what_is_due_is_acknowledged_and_confirmed_later(broker, queue):
    with running(broker, queue, 10) as (ack_loop, _, ledger, counts):
        ack_loop.acknowledge_all()
        await_count(broker, queue, 10)
        ledger.finish(10)
        ack_loop.acknowledge_all()
        assert left(broker, queue) == 0
        ack_loop.confirm(0)
        assert (counts.acknowledged, ledger.unconfirmed(0)) == (10, [])


def test_messages_of_a_lost_connection_are_acknowledged_when_they_are_redelivered(broker, queue):
    with running(broker, queue, 10) as (ack_loop, subscriptions, ledger, counts):
        subscriptions.links[0].drop()
        wait_until(lambda: subscriptions.lost() == [0])
        ledger.finish(0)
        ack_loop.run()
        assert (subscriptions.lost(), ledger.expects(0)) == ([], True)
        wait_until(lambda: subscriptions.links[0].waiting()[0] == 10)
        receive(subscriptions, ledger)
        assert ledger.recognised == 10
        ledger.finish(10)
        ack_loop.acknowledge_all()
        assert left(broker, queue) == 0
        ack_loop.confirm(0)
        assert counts.acknowledged == 10
