"""Starts queries with the options of the test broker."""

import time


def access(broker):
    return {"brokerUrl": broker.url, "user": broker.user, "password": broker.password}


def read(spark, broker, **options):
    return spark.readStream.format("jms").options(**access(broker), **options).load()


def run_available(frame, checkpoint, sink="memory", name=None, **options):
    """Write what is available and return the ended query; an error of the query is raised."""
    writer = frame.writeStream.format(sink).options(**options).option("checkpointLocation", str(checkpoint))
    if name:
        writer = writer.queryName(name)
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(250), "the query did not end"
    return query


def left(broker, queue, expected=0, seconds=10):
    """The message count of the queue, after it is ``expected`` or ``seconds`` have passed."""
    deadline = time.monotonic() + seconds
    while broker.message_count(queue) != expected and time.monotonic() < deadline:
        time.sleep(0.02)
    return broker.message_count(queue)


def batches_done(folder):
    """The number of batches in the commit log of ``folder/checkpoint``."""
    commits = folder / "checkpoint" / "commits"
    return sum(path.name.isdigit() for path in commits.iterdir()) if commits.is_dir() else 0
