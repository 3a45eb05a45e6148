"""A query starts from checkpoints and journals that earlier releases wrote: one folder for each release.

``make.py`` writes the folder of a new release. Every query was stopped in the middle of its batch [3, 6).
"""

import json
import shutil
from pathlib import Path

import pytest
from numbered import fill
from rawstomp import RawStomp
from streaming import access, read, run_available

from pyspark_jms.source.offsets import mark_of, selector_digest, selector_of, sequence

RELEASES = sorted(path for path in Path(__file__).parent.iterdir() if (path / "queue").is_dir())
SELECTOR = "n <> 'x'"


def offsets(folder):
    """The offsets of the checkpoint's last batch: Spark writes its own version and settings before them."""
    last = max((folder / "checkpoint" / "offsets").iterdir(), key=lambda path: int(path.name))
    _version, _settings, *found = last.read_text().splitlines()
    return [json.loads(line) for line in found]


@pytest.fixture(params=RELEASES, ids=lambda path: path.name)
def release(request, tmp_path):
    return Path(shutil.copytree(request.param, tmp_path / request.param.name))


def test_there_is_a_release():
    assert RELEASES


def test_offsets_are_read(release):
    (plain,), (durable,), (journaled,) = (offsets(release / name) for name in ("queue", "subscription", "journal"))
    assert [sequence(each) for each in (plain, durable, journaled)] == [6, 6, 6]
    assert [selector_of(each) for each in (plain, durable, journaled)] == [None, selector_digest(SELECTOR), None]
    assert (mark_of(plain), mark_of(durable), mark_of(journaled).next) == (None, None, 6)


def test_keys_of_later_releases_are_ignored(release):
    (found,) = offsets(release / "queue")
    assert sequence(found | {"later": 1}) == 6


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
    where = access(broker) | {"brokerUrl": broker.url if protocol == "stomp" else broker.amqp_url}
    messages = spark.readStream.format("jms").options(**where, queue=queue).load()
    assert rows_of(spark, messages, release / "queue") == [(2, 6, 10), (2, 7, 11)]


@pytest.mark.deep
def test_a_batch_of_a_journal_is_repeated_with_its_rows(spark, fresh_broker, release):
    folder = release / "journal"
    messages = read(spark, fresh_broker(), queue="orders", journalLocation=str(folder / "journal"))
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
