import contextlib

import pytest

from pyspark_jms.delivery.ledger import Ledger
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.ack_loop import AckLoop
from pyspark_jms.source.diverting import DriverDiverter
from pyspark_jms.source.progress import Progress, compared
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.source.stores.journal import QueryJournal
from pyspark_jms.source.subscriptions import Subscriptions
from pyspark_jms.spark.protocols import reading_of


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
