"""A query starts from what earlier releases left in its checkpoint, its journal and at the broker: one folder for each
release.

``make.py`` writes the folder of a new release. Every query was stopped in the middle of its batch [3, 6). The one that
reads and writes exactly once has two readers: of its last batch it had sent message 4, and not 5. A release may encode
rows in another way than those before; a replay of their batches is then ``[JMS_REPLAY_MISMATCH]`` with the same rows,
too, as docs/upgrading.md says.
"""

import base64
import json
import re
import shutil
from pathlib import Path

import pytest
from kept_messages import put_back
from moving_rows import TO_QUEUE, read_once, texts, write_daily, write_once
from numbered import fill
from rawstomp import RawStomp
from streaming import access, journal_in, left, read, run_available

from pyspark_jms.delivery.register.token import Token
from pyspark_jms.source.offsets import ReceivedOffset, selector_digest

RELEASES = sorted(path for path in Path(__file__).parent.iterdir() if (path / "queue").is_dir())
SELECTOR = "n <> 'x'"


def offsets(folder):
    """The offsets of the checkpoint's last batch: Spark writes its own version and settings before them."""
    batches = (path for path in (folder / "checkpoint" / "offsets").iterdir() if path.name.isdigit())
    last = max(batches, key=lambda path: int(path.name))
    _version, _settings, *found = last.read_text().splitlines()
    return [json.loads(line) for line in found]


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request, tmp_path):
    return Path(shutil.copytree(request.param, tmp_path / request.param.name))


def test_there_is_a_release():
    assert RELEASES


def test_offsets_are_read(release):
    found = [ReceivedOffset.parse(*offsets(release / name)) for name in ("queue", "subscription", "journal")]
    assert [each.sequence for each in found] == [6, 6, 6]
    assert [each.selector for each in found] == [None, selector_digest(SELECTOR), None]
    assert (found[0].journal, found[1].journal, found[2].journal.next) == (None, None, 6)


def test_tokens_of_read_partitions_have_the_metrics_of_their_batch(release):
    queues = json.loads((release / "once-amqp" / "broker.json").read_text())["queues"]
    newest = [base64.b64decode(queue["messages"][-1]) for queue in queues if ".staging." in queue["name"]]
    tokens = [Token.parse(re.search(rb'{"stream".*}', message)[0]) for message in newest]
    assert [dict(token.metrics).get("messages") for token in tokens] == [1, 1]


def test_keys_of_later_releases_are_ignored(release):
    (found,) = offsets(release / "queue")
    assert ReceivedOffset.parse(found | {"later": 1}).sequence == 6


def rows_of(spark, frame, folder):
    """The rows that the query reads: repeated batch and later ones."""
    found = []

    def keep(batch, number):
        found.extend((number, row.sequence, row.n) for row in batch.orderBy("sequence").collect())

    numbered = frame.selectExpr("sequence", "int(properties['n']) AS n")
    query = numbered.writeStream.foreachBatch(keep).option("checkpointLocation", str(folder / "checkpoint"))
    query = query.trigger(availableNow=True).start()
    assert query.awaitTermination(250)
    return found


@pytest.mark.deep
@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_a_queue_is_read_on(spark, broker, queue, release, protocol):
    fill(broker, queue, 2, first=10)
    messages = spark.readStream.format("jms").options(**access(broker, protocol), queue=queue).load()
    found = rows_of(spark, messages, release / "queue")
    assert [row[1:] for row in found] == [(6, 10), (7, 11)]
    assert found[0][0] == 2  # the other message may come in a batch of its own


@pytest.mark.deep
def test_a_batch_of_a_journal_is_repeated_with_its_rows(spark, fresh_broker, release):
    folder = release / "journal"
    messages = read(spark, fresh_broker(), queue="orders", **journal_in(folder / "journal"))
    assert rows_of(spark, messages, folder) == [(1, 3, 3), (1, 4, 4), (1, 5, 5)]


@pytest.mark.deep
def test_a_durable_subscription_keeps_its_selector(spark, fresh_broker, release, tmp_path):
    broker = fresh_broker()
    daily = {"topic": "prices", "subscriptionName": "daily", "clientId": "reports"}
    run_available(read(spark, broker, **daily, selector=SELECTOR), tmp_path / "first", sink="noop")
    with RawStomp(broker) as client:
        client.send("prices", [([("n", n)], f"text {n}") for n in (10, "x", 11)], topic=True)
    changed = read(spark, broker, **daily, selector="n <> 'y'")
    with pytest.raises(Exception, match="JMS_SELECTOR_CHANGED"):
        rows_of(spark, changed, Path(shutil.copytree(release / "subscription", tmp_path / "changed")))
    messages = read(spark, broker, **daily, selector=SELECTOR)
    assert [n for *_, n in rows_of(spark, messages, release / "subscription")] == [10, 11]


# --- exactly once: what is at the broker -------------------------------------------------------------


@pytest.fixture
def broker_of(fresh_broker):
    """``broker_of(folder)``: a broker with the messages that the release had left, and with its identity."""

    def start(folder):
        broker = fresh_broker()
        put_back(broker, folder / "broker.json")
        for log in (folder / "checkpoint" / "offsets").glob("[0-9]*"):
            log.write_text(re.sub(r'"broker": "[^"]*"', f'"broker": "{broker.server.getNodeID()}"', log.read_text()))
        return broker

    return start


def copies(broker):
    with RawStomp(broker) as client:
        return [message.body.decode() for message in client.read(TO_QUEUE, wanted=broker.message_count(TO_QUEUE))]


@pytest.mark.deep
def test_a_staged_batch_is_repeated_with_its_rows(spark, broker_of, release):
    folder = release / "once-amqp"
    broker = broker_of(folder)
    fill(broker, "orders", 2, first=6, size=400)
    found, columns = [], ["sequence", "text", "delivery_id"]

    def keep(batch, number):
        found.extend((number, *row) for row in batch.select(*columns).orderBy("sequence").collect())

    query = read_once(spark, broker).writeStream.foreachBatch(keep)
    query = query.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(250)
    assert sorted(found[:2]) == [(2, 2, text, f"orders/ID:{n}") for n, text in enumerate(texts(4, 6), 4)]
    assert sorted(text for _, _, text, _ in found[2:]) == texts(6, 8)
    assert left(broker, "orders") == 0


@pytest.mark.deep
def test_a_repeated_batch_sends_what_was_not_sent(spark, broker_of, release):
    folder = release / "once-amqp"
    broker = broker_of(folder)
    fill(broker, "orders", 2, first=6, size=400)
    write_once(read_once(spark, broker).select("text"), broker, folder)
    assert sorted(copies(broker)) == texts(5, 8)


@pytest.mark.deep
def test_a_repeated_batch_with_other_rows_is_refused(spark, broker_of, release):
    folder = release / "once-amqp"
    broker = broker_of(folder)
    rows = read_once(spark, broker).selectExpr("concat(text, '!') AS text")
    with pytest.raises(Exception, match=r"\[JMS_REPLAY_MISMATCH\]"):
        write_once(rows, broker, folder)
    assert broker.message_count(TO_QUEUE) == 0


@pytest.mark.deep
def test_a_repeated_batch_write_sends_nothing(spark, broker_of, release):
    broker = broker_of(release / "writes-amqp")
    with pytest.raises(Exception, match=r"\[JMS_REPLAY_MISMATCH\]"):
        write_daily(spark, broker, 7)
    write_daily(spark, broker, 6)
    assert broker.message_count(TO_QUEUE) == 0
