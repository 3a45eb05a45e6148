"""Starts queries with the options of the test broker."""

import ast
import contextlib
import json
import time

import pytest
from broker_rows import access_over

PROTOCOL_PAIRS = [
    ("stomp", "amqp"),
    ("amqp", "stomp"),
    pytest.param("stomp", "stomp", marks=pytest.mark.deep),
    pytest.param("amqp", "amqp", marks=pytest.mark.deep),
]
"""The protocols of two clients of a broker. In `make test` they differ."""


def access(broker, protocol="stomp"):
    """The options by which a protocol reaches the broker. A broker without AMQP skips the test."""
    if protocol == "amqp" and not hasattr(broker, "amqp_url"):
        pytest.skip("needs an embedded broker")
    return access_over(broker, protocol)


@contextlib.contextmanager
def stopping(running):
    """A query, or another thing that can be stopped, until the end of the block."""
    try:
        yield running
    finally:
        running.stop()


def journal_in(folder):
    """The options of an exactly-once read with a journal."""
    return {"deliveryGuarantee": "exactly-once", "journalLocation": str(folder)}


def read(spark, broker, **options):
    return spark.readStream.format("jms").options(**access(broker), **options).load()


def run_available(frame, checkpoint, sink="memory", name=None, each=None, **options):
    """Write what is available and return the ended query; an error of the query is raised."""
    from pyspark_jms.spark.releases import HAS_ADMISSION_CONTROL  # imported here: `make unit` needs no pyspark

    writer = frame.writeStream.foreachBatch(each) if each else frame.writeStream.format(sink).options(**options)
    writer = writer.option("checkpointLocation", str(checkpoint))
    if name:
        writer = writer.queryName(name)
    if HAS_ADMISSION_CONTROL:
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(250), "the query did not end"
        return query
    with stopping(writer.start()) as query:
        query.processAllAvailable()
    return query


def last_offset(query):
    """The end of the last batch of the one source, as Spark logged it."""
    text = query.lastProgress["sources"][0]["endOffset"]
    return (
        json.loads(text) if text.startswith('{"') else ast.literal_eval(text)
    )  # before Spark 4.2, str() of the object


def left(broker, queue, expected=0, seconds=10):
    """The message count of the queue, after it is ``expected`` or ``seconds`` have passed."""
    deadline = time.monotonic() + seconds
    while broker.message_count(queue) != expected and time.monotonic() < deadline:
        time.sleep(0.02)
    return broker.message_count(queue)


def scheduled(broker, queue):
    """How many messages of the queue wait for their delivery time."""
    with broker._queue(queue) as found:
        return int(found.getScheduledCount())


def batches_done(folder):
    """The number of batches in the commit log of ``folder/checkpoint``."""
    commits = folder / "checkpoint" / "commits"
    return sum(path.name.isdigit() for path in commits.iterdir()) if commits.is_dir() else 0


def uncommit(checkpoint):
    """Make Spark believe that it crashed after the sink committed and before it wrote its commit log.

    Returns the entry of the commit log that Spark writes when it has repeated the batch.
    """
    last = max((path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()), key=lambda p: int(p.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()
    return last


def once_to(broker, queue, **more):
    return {
        "brokerUrl": access(broker, "amqp")["brokerUrl"],
        "queue": queue,
        "deliveryGuarantee": "exactly-once",
    } | more


def lines(tmp_path, files, count):
    """Text files in folder rows, for a batch each: lines 0-0, 0-1 …, 1-0 …"""
    (tmp_path / "rows").mkdir()
    for number in range(files):
        (tmp_path / "rows" / f"{number}.txt").write_text("\n".join(f"{number}-{n}" for n in range(count)))


def ledger_of(checkpoint):
    query = json.loads((checkpoint / "metadata").read_text())["id"]
    return f"pyspark-jms.commits.{query}"
