import contextlib
import time

import pytest
from numbered import fill
from streaming import access, left
from waiting import await_count, wait_until

from pyspark_jms.delivery.ledger import Ledger
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.ack_loop import AckLoop, Progress, compared
from pyspark_jms.source.diverting import DriverDiverter
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.source.stores.received import QueryJournal
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


# --- what the progress of the query shows ---------------------------------------------------------


def metrics(watched=None, **more):
    options = SourceOptions.parse({"brokerUrl": "stomp://h"} | more)
    stop = StopRequest()
    with contextlib.closing(QueryJournal(reading_of(options), stop)) as journal:
        subscriptions = Subscriptions(reading_of(options), stop.pause)
        subscriptions.reconnects, subscriptions.condition.counts["lostCredit"] = 2, 5
        loop = AckLoop(subscriptions, Ledger([None], 7), journal.store())
        return Progress(options, loop, DriverDiverter(reading_of(options), stop.pause)).metrics(watched or {}, 0)


def test_the_metrics_of_a_query():
    found = metrics({"depth": 4}, queue="q")
    assert {"seq": 7, "reconnects": 2, "lostCredit": 5}.items() <= found.items()
    assert "journalBytes" not in found


def test_the_metrics_of_a_journal(tmp_path):
    found = metrics(queue="q", deliveryGuarantee="exactly-once", journalLocation=str(tmp_path))
    assert (found["journalBytes"], found["backlogAgeSeconds"]) == (0, None)
    assert "journalKeeps" not in found


@pytest.mark.parametrize(
    ("more", "journal", "watched", "guarantee"),
    [
        ({"topic": "t"}, False, {}, "at-most-once"),
        ({"queue": "q"}, False, {"consumers": 5}, "at-least-once"),
        ({"queue": "q"}, True, {"consumers": 0}, "exactly-once into Spark"),
        ({"queue": "q"}, True, {"consumers": 1}, "at-least-once (other consumers"),
    ],
)
def test_the_guarantee(more, journal, watched, guarantee, tmp_path, caplog):
    place = {"deliveryGuarantee": "exactly-once", "journalLocation": str(tmp_path)} if journal else {}
    assert metrics(watched, **more, **place)["guarantee"].startswith(guarantee)
    assert ("other consumers" in caplog.text) == ("other" in guarantee)


@pytest.mark.parametrize(
    ("read", "is_compared"),
    [
        ({"queue": "q"}, True),
        ({"queue": "q", "selector": "a = 1"}, False),
        ({"queue": '["q", "p"]', "selector": "a = 1"}, False),
        ({"topic": "t", "subscriptionName": "n", "clientId": "c", "selector": "a = '1'"}, True),
    ],
)
def test_counts_of_a_queue_are_compared_if_the_query_reads_all_of_its_messages(read, is_compared):
    received = compared(SourceOptions.parse({"brokerUrl": "amqp://h"} | read), lambda: 7)
    assert (received is not None) is is_compared
    assert received is None or received() == 7
