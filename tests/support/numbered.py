"""Numbered messages, so that a test can find lost and duplicated messages."""

import contextlib
import itertools
import json
import threading
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow.parquet as pq
from rawstomp import RawStomp


def fill(broker, queue, count, first=0, size=0):
    """Messages with property n and text "text n", made longer with dots up to ``size`` characters."""
    with RawStomp(broker) as client:
        client.send(queue, [([("n", str(n))], f"text {n}".ljust(size, ".")) for n in range(first, first + count)])


@contextlib.contextmanager
def sending_on_and_on(broker, queue, first=0, pause_seconds=0.01):
    """As ``fill``, until the end of the block. Yields a list of the numbers that were sent, which grows."""
    sent, enough = [], threading.Event()

    def send():
        with RawStomp(broker) as client:
            for n in itertools.count(first):
                client.send(queue, [([("n", str(n))], f"text {n}")])
                sent.append(n)
                if enough.wait(pause_seconds):
                    return

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield sent
    finally:
        enough.set()
        thread.join()


def in_queue(broker, queue):
    """Number -> how often it is in a queue that has no writer any more."""
    with RawStomp(broker) as client:
        messages = client.read(queue, wanted=broker.message_count(queue))
    assert all(message.body.decode() == f"text {message.headers['n']}" for message in messages)
    return Counter(int(message.headers["n"]) for message in messages)


def in_files(folder):
    """Number -> how often it is in the files of a sink that was not interrupted."""
    return Counter(
        int(n) for file in folder.glob("*.parquet") for n in pq.read_table(file, columns=["n"])["n"].to_pylist()
    )


def in_committed_files(folder, column="n"):
    """Number -> how often it is in the files that the log of Spark's file sink names: other files do not count."""
    lines = [line for log in listed_batches(folder).values() for line in log.read_text().splitlines()]
    files = {urlsplit(json.loads(line)["path"]).path for line in lines if line.startswith("{")}
    return Counter(int(n) for file in files for n in pq.read_table(Path(file), columns=[column])[column].to_pylist())


def listed_batches(folder):
    """Batch -> its file in the log of Spark's file sink; some of them have the entries of earlier batches too."""
    logs = [path for path in (folder / "_spark_metadata").glob("[0-9]*") if path.suffix in {"", ".compact"}]
    return {int(path.stem): path for path in logs}
