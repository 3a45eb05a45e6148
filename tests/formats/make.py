"""Writes what this release leaves in files and at a broker, for the tests of later releases. Once for each release:

    .venv/bin/python tests/formats/make.py tests/formats/0.1.0 [FOLDER …]

``queue``, ``journal``, ``subscription``: the checkpoint of a query, copied in the middle of its last batch: the batch
is in the offset log, and not in the commit log. ``journal`` has the query's journal too, copied at the same time.

``once-amqp``: the checkpoint of a query from queue to queue, exactly once, that failed in its last batch, after all of
its tasks but the last had committed. ``broker.json`` has what was then in the connector's queues
(``tests/support/kept_messages.py``): the staging queues of two readers, and the token of the commit ledger.

``writes-amqp``: only ``broker.json``, with the commit ledger after a ``df.write``.
"""

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from amqp_sending import put
from kept_messages import keep
from moving_rows import read_once, texts, write_daily, write_once
from rawstomp import RawStomp
from streaming import read, run_available

from pyspark_jms.testing import EmbeddedArtemis

QUERIES = {
    "queue": {"queue": "orders"},
    "journal": {"queue": "orders"},
    "subscription": {"topic": "prices", "subscriptionName": "daily", "clientId": "reports", "selector": "n <> 'x'"},
}
NUMBERS = 6


def main():
    target, chosen = Path(sys.argv[1]).resolve(), sys.argv[2:]
    from pyspark.sql import SparkSession

    # one core: tasks run in the order of their numbers
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    makers = dict.fromkeys(QUERIES, write) | {
        "once-amqp": write_until_it_fails,
        "writes-amqp": write_batch,
    }
    for name in chosen or makers:
        with EmbeddedArtemis() as broker:
            makers[name](spark, broker, target / name)
    spark.stop()


def write(spark, broker, target):
    options = QUERIES[target.name]
    with tempfile.TemporaryDirectory() as temporary:
        running = Path(temporary)
        if target.name == "journal":
            options = options | {"deliveryGuarantee": "exactly-once", "journalLocation": str(running / "journal")}
        messages = read(spark, broker, **options, maxMessagesPerTrigger=NUMBERS // 2)
        if "topic" in options:  # creates the subscription
            run_available(messages, running / "checkpoint", sink="noop")
        with RawStomp(broker) as client:
            numbered = [([("n", str(n))], f"text {n}") for n in range(NUMBERS)]
            client.send(options.get("queue", "prices"), numbered, topic="topic" in options)
        batches = messages.writeStream.foreachBatch(lambda *_: copied(running, target))
        batches = batches.option("checkpointLocation", str(running / "checkpoint")).trigger(availableNow=True)
        assert batches.start().awaitTermination(250)


def write_until_it_fails(spark, broker, target):
    put(broker, "orders", *texts(0, NUMBERS))
    with tempfile.TemporaryDirectory() as temporary:
        running = Path(temporary)
        rows = read_once(spark, broker, maxMessagesPerTrigger=NUMBERS // 3)
        last = f"text like 'text {NUMBERS - 1}.%'"
        rows = rows.selectExpr(f"if({last}, raise_error('as planned'), text) AS text")
        try:
            write_once(rows, broker, running)
        except Exception as error:
            if "as planned" not in str(error):
                raise
        copied(running, target)
        keep(broker, target / "broker.json")


def write_batch(spark, broker, target):
    write_daily(spark, broker, NUMBERS)
    target.mkdir(parents=True, exist_ok=True)
    keep(broker, target / "broker.json")


def copied(running, target):
    """The folders as they are in the middle of a batch, without what Spark makes again."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(running, target, ignore=shutil.ignore_patterns("*.crc", ".*", "lock", "sources"))


if __name__ == "__main__":
    main()
