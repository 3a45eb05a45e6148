"""Writes checkpoints and a journal of this release, for the tests of later releases. Run it once for each release:

    .venv/bin/python tests/formats/make.py tests/formats/0.1.0

Each folder has the checkpoint of a query that ended between its sink and Spark's commit log: the last batch is in the
offset log, and not in the commit log. ``journal`` has the query's journal too.
"""

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from rawstomp import RawStomp  # noqa: E402 - after the path
from streaming import read, run_available  # noqa: E402

from pyspark_jms.testing import EmbeddedArtemis  # noqa: E402

QUERIES = {
    "queue": {"queue": "orders"},
    "journal": {"queue": "orders"},
    "subscription": {"topic": "prices", "subscriptionName": "daily", "clientId": "reports", "selector": "n >= '0'"},
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


def write(spark, broker, folder, options):
    if folder.name == "journal":
        options = options | {"journalLocation": str(folder / "journal")}
    messages = read(spark, broker, **options, maxMessagesPerTrigger=NUMBERS // 2)
    if "topic" in options:
        run_available(messages, folder / "checkpoint", sink="noop")  # creates the subscription
    with RawStomp(broker) as client:
        numbered = [([("n", str(n))], f"text {n}") for n in range(NUMBERS)]
        client.send(options.get("queue", "prices"), numbered, topic="topic" in options)
    run_available(messages, folder / "checkpoint", sink="noop")
    commits = folder / "checkpoint" / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    (commits / str(last)).unlink()
    for unneeded in [*folder.rglob("*.crc"), *folder.rglob("lock")]:
        unneeded.unlink()
    shutil.rmtree(folder / "checkpoint" / "sources", ignore_errors=True)


if __name__ == "__main__":
    main()
