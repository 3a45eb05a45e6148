"""Messages with a number each, so that what became of every one of them can be told."""

from collections import Counter

import pyarrow.parquet as pq
from rawstomp import RawStomp


def fill(broker, queue, count, first=0, size=0):
    """Messages with property n and text "text n", made longer with dots if ``size`` characters are asked for."""
    with RawStomp(broker) as client:
        client.send(queue, [([("n", str(n))], f"text {n}".ljust(size, ".")) for n in range(first, first + count)])


def in_queue(broker, queue):
    """How often each number is in a queue that nobody writes to any more."""
    with RawStomp(broker) as client:
        messages = client.read(queue, wanted=broker.message_count(queue))
    assert all(message.body.decode() == f"text {message.headers['n']}" for message in messages)
    return Counter(int(message.headers["n"]) for message in messages)


def in_files(folder):
    """How often each number is in the files of a sink that was not interrupted."""
    return Counter(
        int(n) for file in folder.glob("*.parquet") for n in pq.read_table(file, columns=["n"])["n"].to_pylist()
    )
