"""2,500 mixed messages, each in Spark once, byte for byte; the same through source and sink and back.

`make test-deep` sends 10,000, `make test-all` 40,000. Most are under 2 KB, one in 1,000 is 1 MB, some are empty. Text
has any unicode, bytes have NULs, property values have colons, line ends, backslashes, are empty or 64 KB long.
"""

import hashlib
import random

import pyarrow.parquet as pq
import pytest
from generated import examples
from pyspark.sql import functions as F
from rawstomp import RawStomp
from streaming import access, left, read, run_available
from waiting import await_count

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.examples, pytest.mark.timeout(900)]

COUNT = examples(10_000)
LARGE = 1 << 20
ODD_NAME, JMS_NAME = "odd: name\\", "odd__name_"
"""A name that STOMP has no objection to, and what the sink, which keeps to the names of JMS, will have instead."""

ALPHABET = "abcdefghij \n\r\t:\\äöüßéñ漢字かなقـ😀𝄞\u0001\u001f\u2028\ufeff"
VALUES = ("", "plain", "a:b", "line\nline", "cr\rlf\r\n", "back\\slash\\n\\c", "😀:\\\n", "\u0001", " lead and trail ")


def messages(seed):
    """(headers, body): body str is text, bytes is bytes. The property n tells each one."""
    chance = random.Random(seed)
    text = "".join(chance.choices(ALPHABET, k=1 << 16))
    binary = chance.randbytes(1 << 16)
    for n in range(COUNT):
        size = 0 if n % 997 == 0 else chance.randrange(1, 1900)
        start = chance.randrange(60_000)
        body = text[start : start + size // 3] if n % 3 else binary[start : start + size]
        if n % 1000 == 500:
            body = (binary * 17)[start : start + LARGE] if n % 2000 == 500 else "ä:\n" * (LARGE // 4)
        headers = [("n", str(n)), (ODD_NAME, chance.choice(VALUES))]
        if n % 10_000 == 7:
            headers.append(("long", "x:\\\n" * (1 << 14)))
        if n % 5 == 0:
            headers.append(("correlation-id", f"c:{n}"))
        yield headers, body


def digest(headers, body):
    """Of everything a message carries, whatever reads it."""
    binary = body.encode() if isinstance(body, str) else body
    kind = "text" if isinstance(body, str) else "bytes"
    reported = repr((kind, sorted(headers))).encode()
    return hashlib.blake2b(reported + b"\0" + binary, digest_size=8).hexdigest()


def row_digest(row, properties):
    headers = list(properties.items())
    if row["JMSCorrelationID"] is not None:
        headers.append(("correlation-id", row["JMSCorrelationID"]))
    return digest(headers, row[row["body_type"]])


def stored_rows(folder):
    columns = ["JMSCorrelationID", "properties", "body_type", "text", "bytes", "body_error"]
    for file in sorted(folder.glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(1000, columns=columns):
            yield from batch.to_pylist()


@pytest.fixture(scope="module")
def sent():
    return {int(headers[0][1]): digest(headers, body) for headers, body in messages(1)}


@pytest.fixture
def preloaded(broker, queue):
    """The queue with every message on it; at the end it must be empty, and nothing new in the dead-letter queue."""
    dead = broker.message_count("DLQ")
    with RawStomp(broker, timeout=120) as client:
        client.send(queue, messages(1))
    yield queue
    assert left(broker, queue) == 0
    await_count(broker, "DLQ", dead)


def test_every_message_is_in_spark_once(spark, broker, preloaded, sent, tmp_path):

    def batch(frame, _batch_id):
        """What Spark sees, to a file; the rows themselves are compared below, not in here."""
        frame.write.mode("append").parquet(str(tmp_path / "seen"))

    frame = read(spark, broker, queue=preloaded, idleTimeout="1s")
    query = frame.writeStream.foreachBatch(batch).option("checkpointLocation", str(tmp_path / "first"))
    query = query.trigger(availableNow=True).start()
    assert query.awaitTermination(240)
    seen = {}
    for row in stored_rows(tmp_path / "seen"):
        assert row["body_error"] is None
        properties = dict(row["properties"])
        assert int(properties["n"]) not in seen
        seen[int(properties["n"])] = row_digest(row, properties)
    assert seen == sent


@pytest.mark.deep
def test_every_message_goes_on_as_it_came(spark, broker, preloaded, sent, tmp_path):
    onward = f"{preloaded}.onward"
    frame = read(spark, broker, queue=preloaded, idleTimeout="1s")
    renamed = F.transform_keys("properties", lambda name, _: F.regexp_replace(name, "[^A-Za-z]", "_"))
    run_available(frame.withColumn("properties", renamed), tmp_path, sink="jms", queue=onward, **access(broker))
    seen = {}
    with RawStomp(broker, timeout=60) as client:
        for message in client.read(onward, wanted=COUNT):
            number, reported = _raw_digest(message)
            assert number not in seen
            seen[number] = reported
    assert seen == sent


_PLUMBING = {
    "subscription", "message-id", "destination", "expires", "redelivered", "priority", "persistent", "timestamp",
    "destination-type", "transaction", "receipt", "ack", "content-length", "_AMQ_LARGE_SIZE",
}  # fmt: skip


def _raw_digest(message):
    names = [name for name, _ in message.lines]
    is_bytes = "content-length" in names and names.index("content-length") != len(names) - 1
    headers = [
        (ODD_NAME if name == JMS_NAME else name, value) for name, value in message.lines if name not in _PLUMBING
    ]
    body = message.body if is_bytes else message.body.decode()
    return int(dict(headers)["n"]), digest(headers, body)


def test_the_comparison_can_fail(sent):
    headers, body = next(messages(1))
    assert sent[0] == digest(headers, body)
    assert sent[0] != digest([*headers[:-1], (headers[-1][0], headers[-1][1] + "x")], body)
