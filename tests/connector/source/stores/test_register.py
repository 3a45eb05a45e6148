import threading

import pytest
from amqp_sending import settings_of, subscription_to
from proxy import Proxy
from registers import ReaderQuery
from streaming import left
from waiting import wait_until

from pyspark_jms.amqp.link.consumer import Consumer
from pyspark_jms.amqp.link.read_register import ReadRegister, RegisterName
from pyspark_jms.errors import (
    DataLossError,
    InvalidDestinationError,
    NotDeliveredError,
    OptionConflictError,
    SourceFencedError,
    UnsupportedError,
)
from pyspark_jms.jms.model import DurableSubscription
from pyspark_jms.management.queue_watch import QueueWatch
from pyspark_jms.tools.check.exactly_once import ExactlyOnce
from pyspark_jms.tools.check.findings import Verdict


def numbered(*numbers):
    return [f"text {number}" for number in range(*numbers)]


def test_each_message_is_read_once(broker, queue, put, query):
    put(broker, queue, *numbered(30))
    running = query(maxMessagesPerTrigger=12)
    assert running.texts(30) == numbered(30)
    assert not running.plan()
    assert left(broker, queue) == 0
    assert running.source.progress()["readers"] == 1


@pytest.mark.parametrize("readers", [(1, 3, 2), (3, 1, 1)])
def test_any_run_has_any_number_of_readers(broker, queue, put, query, readers):
    running = query()
    for run, count in enumerate(readers):
        put(broker, queue, *numbered(20 * run, 20 * run + 20))
        running.source.stop()
        running.start()
        running.source.store._readers = count
        assert sorted(running.texts(20)) == sorted(numbered(20 * run, 20 * run + 20))
    assert len(running.log[-1]["names"]) == max(readers)


def test_a_batch_that_is_repeated_has_the_same_rows(broker, queue, put, query):
    put(broker, queue, *numbered(50))
    running = query(readers=2)
    assert running.plan()
    before = running.rows()
    put(broker, queue, "later")
    assert running.rows() == before
    running.start()
    assert running.rows() == before
    running.commit()
    assert running.texts(1) == ["later"]


def test_an_earlier_batch_is_fenced(broker, queue, put, query):
    put(broker, queue, "one")
    running = query()
    running.texts(1)
    [earlier] = running.tasks()
    put(broker, queue, "two")
    assert running.texts(1) == ["two"]
    with pytest.raises(SourceFencedError, match="received batch 2"):
        running.read(earlier)
    put(broker, queue, "three")
    running.log.pop()
    with pytest.raises(SourceFencedError):
        running.plan()


def test_rows_that_nobody_reads_stay_in_the_queue(broker, queue, put, query):
    put(broker, queue, "one")
    running = query()
    running.plan()
    [late] = running.tasks()
    running.commit()
    assert not running.plan(), "it waits before it plans the same again"
    wait_until(running.plan)
    assert running.read(late) == [], "it was closed, and receives nothing"
    assert [row["text"] for task in running.rows() for row in task] == ["one"]


def test_the_longer_nobody_reads_the_longer_a_query_waits(broker, queue, put, query, caplog):
    put(broker, queue, "one")
    running = query()
    pauses = []
    for _ in range(4):
        wait_until(running.plan)
        running.commit()
        assert not running.plan()
        pauses.append(running.source.store._history._until)
    assert pauses == sorted(set(pauses))
    assert [line for line in caplog.messages if "no task has read batch" in line] == [caplog.messages[0]]
    assert running.texts(1) == ["one"]
    assert running.source.store._history.fruitless in {0, 4}
    assert left(broker, queue) == 0


def test_messages_that_no_reader_gets_make_few_empty_batches(broker, queue, put, query, caplog, monkeypatch):
    put(broker, queue, "one")
    paused = broker.server.locateQueue(queue)
    paused.pause()
    running = query()
    monkeypatch.setattr("pyspark_jms.source.readers.history._FIRST_PAUSE_SECONDS", 0.05)
    for batch in range(4):
        wait_until(running.plan)
        assert running.rows() == [[]]
        running.commit()
        assert not running.plan(), f"batch {batch} took nothing"
        assert running.source.progress()["emptyBatches"] == batch + 1
    assert sum("batches in a row got no message" in line for line in caplog.messages) == 1
    paused.resume()
    assert running.texts(1) == ["one"]
    assert running.source.store._history.fruitless < 5


def test_available_now_ends_when_the_readers_that_were_read_have_all(broker, queue, put, query):
    """As with ``limit`` or ``isEmpty``, which need the rows of the first task only."""
    put(broker, queue, *numbered(3))
    running = query(readers=2)
    running.source.drain()
    running.plan()
    first, _ = running.tasks()
    assert len(running.read(first)) == 3
    running.commit()
    put(broker, queue, "later")  # or the planner would not look at the tokens
    assert not running.plan()


def test_the_metrics_of_a_run(broker, queue, put, query, monkeypatch):
    monkeypatch.setitem(QueueWatch.__init__.__kwdefaults__, "every", 0.5)  # seconds; the default is 30
    put(broker, queue, *numbered(30))
    running = query(maxMessagesPerTrigger=20, readers=2)
    names = ("moved", "retired", "staged", "backlog", "seq")
    assert [running.source.progress()[name] for name in names] == [0, 0, 0, 0, 0]
    assert len(running.texts(30)) == 30
    assert not running.plan(), "idle"
    metrics = running.source.progress()
    assert [metrics[name] for name in ("moved", "backlog", "seq")] == [30, 0, 30]
    assert metrics["staged"] + metrics["retired"] == 30
    assert sum(metrics["movedByReader"]) == 30
    assert sum(metrics["movedBytesByReader"]) == metrics["movedBytes"] > 30 * len("text 1")
    assert (metrics["reconnects"], metrics["redelivered"], metrics["selectorDropped"]) == (0, 0, 0)
    wait_until(lambda: running.source.progress().get("depth") == 0)
    assert "stuckInDelivery" not in running.source.progress()
    running.source.stop()
    running.start()
    assert not running.plan()
    again = running.source.progress()
    assert (again["moved"], again["staged"], again["retired"]) == (0, metrics["staged"], 0)


def test_what_the_selector_drops_is_counted_once(broker, queue, put, query):
    put(broker, queue, *numbered(5))
    running = query(selector="JMSXDeliveryCount = 5", selectorInSpark="residual")
    running.plan()
    assert running.rows() == running.rows() == [[]]
    running.commit()
    assert not running.plan()
    assert running.source.progress()["selectorDropped"] == 5
    assert running.source.progress()["moved"] == 5


def test_a_planner_waits_for_a_broker_that_is_away(broker, queue, put, query, caplog):
    put(broker, queue, "one")
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        running = query(brokerUrl=proxy.url)
        assert running.texts(1) == ["one"]
        proxy.refuse()
        proxy.cut()
        threading.Timer(0.5, proxy.accept).start()
        put(broker, queue, "two")
        assert running.texts(1) == ["two"]
        assert any("connection of the planner ended" in line for line in caplog.messages)
        assert running.source.progress()["reconnects"] == 1
        running.source.stop()


def test_available_now_does_not_go_on_for_ever_when_nobody_reads(broker, queue, put, query):
    put(broker, queue, "one")
    running = query()
    running.source.drain()
    running.plan()
    running.commit()
    with pytest.raises(UnsupportedError, match="No task has read batch 1"):
        running.plan()


def test_a_register_that_is_gone_is_a_loss(broker, queue, put, query, monkeypatch):
    put(broker, queue, "one", "two")
    running = query(maxMessagesPerTrigger=1)
    running.texts(1)
    register = ReadRegister(settings_of(broker), RegisterName(running.log[-1]["address"], 0))
    register.lock()
    register.open()
    register.take(2)
    register.accept()
    register.transactions.discharge()
    register.close()
    monkeypatch.setattr("pyspark_jms.amqp.reading._IDLE_SECONDS", 0.1)
    monkeypatch.setattr("pyspark_jms.amqp.reading.ReaderLink.patience_seconds", 0.3)
    with pytest.raises(DataLossError, match=r"token .* of reader 0 is not at the broker"):
        running.plan()
    put(broker, queue, "three")
    assert left(broker, queue, 2) == 2


def test_no_number_comes_twice_where_a_staging_queue_was_emptied(broker, queue, put, query, monkeypatch):
    monkeypatch.setattr("pyspark_jms.amqp.reading.ReaderLink.patience_seconds", 0.3)
    put(broker, queue, *numbered(6))
    running = query(maxMessagesPerTrigger=3, failOnDataLoss="false")
    found = []
    for first in (0, 6, 9):
        put(broker, queue, *numbered(first, first + 3) if first else ())
        while len(found) < first + (6 if first == 0 else 3):
            if running.plan():
                found += [row["sequence"] for rows in running.rows() for row in rows]
                running.commit()
        assert broker.purge(f"{running.log[-1]['address']}.0")
        running.source.stop()
        running.start()
    assert found[:6] == list(range(6))
    assert len(found) == len(set(found)) == 12
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("user", "text"), [("artemis", "It is paused"), ("worker", "Is it paused, or")], ids=["management", "no management"]
)
def test_a_staging_queue_that_shows_its_token_and_delivers_nothing(restricted, queue, put, monkeypatch, user, text):
    monkeypatch.setattr("pyspark_jms.amqp.reading.ReaderLink.patience_seconds", 0.5)
    monkeypatch.setattr("pyspark_jms.amqp.link.register._TAKE_SECONDS", 0.2)
    password = {"artemis": restricted.password}.get(user, "pw")
    put(restricted, queue, "one")
    running = ReaderQuery(restricted, queue=queue, user=user, password=password)
    assert running.texts(1) == ["one"]
    put(restricted, queue, "two")
    staging = f"{running.log[-1]['address']}.0"
    with restricted._queue(staging) as found:
        found.pause()
        assert running.plan()
        with pytest.raises(NotDeliveredError, match=f"token of {staging}::{staging} and does not deliver it.*{text}"):
            running.rows()
        found.resume()
    assert [row["text"] for rows in running.rows() for row in rows] == ["two"]
    running.source.stop()


def test_a_message_of_somebody_else_in_a_staging_queue_stops_the_query(broker, queue, put, query):
    """The messages of the source stay, without a delivery attempt."""
    put(broker, queue, *numbered(4))
    running = query(maxMessagesPerTrigger=1)
    assert running.texts(1) == numbered(1)
    put(broker, f"{running.log[-1]['address']}.0", "hello", kind="topic")
    with pytest.raises(DataLossError, match="a message that is not a token"):
        running.texts(3)
    assert left(broker, queue, 2) >= 2
    assert set(broker.delivery_counts(queue)) == {0}


def test_a_staging_queue_of_another_query_is_refused(broker, queue, put, query):
    put(broker, queue, *numbered(3))
    own = {"stagingQueue": f"{queue}.mine"}
    first = query(**own)
    assert first.texts(3) == numbered(3)
    first.source.stop()
    put(broker, queue, "later")
    with pytest.raises(SourceFencedError, match="is used by another query"):
        query(**own).plan()
    assert left(broker, queue, 1) == 1


def test_another_address_is_a_loss(broker, queue, put, query):
    put(broker, queue, "one")
    running = query()
    running.texts(1)
    other = query(stagingQueue=f"{queue}.other")
    other.log = running.log
    put(broker, queue, "two")
    with pytest.raises(DataLossError, match="address"):
        other.plan()


def test_the_client_id_is_a_part_of_the_address(broker, queue, put, query):
    def subscribed(client_id):
        return query(queue=None, topic=queue, subscriptionName="s", clientId=client_id)

    running = subscribed("a")
    running.plan()
    put(broker, queue, "one", kind="topic")
    running.texts(1)
    running.source.stop()
    again, other = subscribed("a"), subscribed("b")
    again.log = other.log = running.log
    put(broker, queue, "two", kind="topic")
    with pytest.raises(DataLossError, match=r"below the address a\.pyspark-jms\..*, and this is b\.pyspark-jms\."):
        other.plan()
    assert again.texts(1) == ["two"]


def test_an_offset_of_another_way_to_read_is_refused(query):
    running = query()
    running.log.append({"seq": 3})
    with pytest.raises(OptionConflictError, match=r"\[JMS_OPTION_CONFLICT\].* another read, .* new output folder"):
        running.plan()


def test_a_queue_that_is_named_as_a_staging_queue_is_left_alone(broker, queue, put):
    base = f"{queue}.staging"
    broker.create_queue(f"{base}.0")
    put(broker, queue, "one")
    running = ReaderQuery(broker, queue=queue, stagingQueue=base)
    with pytest.raises(InvalidDestinationError, match=r"actual type was: ANYCAST.*give another stagingQueue"):
        running.plan()
    running.source.stop()
    assert ExactlyOnce(settings_of(broker)).staging_queue(base).advice.endswith("give another stagingQueue.")


@pytest.mark.parametrize("user", ["artemis", "worker"], ids=["management", "no management"])
def test_a_subscription_that_is_named_as_a_staging_queue_is_left_alone(restricted, queue, put, user):
    base = queue.replace(".", "-")
    password = {"artemis": restricted.password}.get(user, "pw")
    subscribed = settings_of(restricted, topic=f"{queue}.news", queue=None, clientId=base, subscriptionName="0")
    theirs = Consumer(subscribed)
    theirs.subscribe(subscription_to(f"{queue}.news", kind="topic", durable=DurableSubscription("0", base)))
    theirs.close()
    put(restricted, f"{queue}.news", "one", "two", kind="topic")
    put(restricted, queue, "three")
    running = ReaderQuery(restricted, queue=queue, stagingQueue=base, user=user, password=password)
    with pytest.raises(InvalidDestinationError, match="give another stagingQueue"):
        running.plan()
    running.source.stop()
    state = ExactlyOnce(settings_of(restricted, user=user, password=password))
    assert state.staging_queue(base).verdict is Verdict.PROBLEM
    assert restricted.message_count(f"{base}.0") == 2
