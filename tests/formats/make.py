"""Writes checkpoints and a journal of this release, for the tests of later releases. Run it once for each release:

    .venv/bin/python tests/formats/make.py tests/formats/0.1.0

Each folder has the checkpoint of a query, copied in the middle of its last batch: the batch is in the offset log, and
not in the commit log. ``journal`` has the query's journal too, copied at the same time.
"""

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

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
    target = Path(sys.argv[1]).resolve()
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    for name, options in QUERIES.items():
        with EmbeddedArtemis() as broker:
            write(spark, broker, target / name, options)
    spark.stop()


def write(spark, broker, target, options):
    with tempfile.TemporaryDirectory() as temporary:
        running = Path(temporary)
        if target.name == "journal":
            options = options | {"journalLocation": str(running / "journal")}
        messages = read(spark, broker, **options, maxMessagesPerTrigger=NUMBERS // 2)
        if "topic" in options:  # creates the subscription
            run_available(messages, running / "checkpoint", sink="noop")
        with RawStomp(broker) as client:
            numbered = [([("n", str(n))], f"text {n}") for n in range(NUMBERS)]
            client.send(options.get("queue", "prices"), numbered, topic="topic" in options)
        batches = messages.writeStream.foreachBatch(lambda *_: copied(running, target))
        batches = batches.option("checkpointLocation", str(running / "checkpoint")).trigger(availableNow=True)
        assert batches.start().awaitTermination(250)


def copied(running, target):
    """The folders as they are in the middle of a batch, without what Spark makes again."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(running, target, ignore=shutil.ignore_patterns("*.crc", ".*", "lock", "sources"))


if __name__ == "__main__":
    main()
