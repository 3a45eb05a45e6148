"""Messages that cannot become rows go to a queue of the user's choice, with the reason, and are acknowledged then."""

import contextlib
import json
from pathlib import Path

import pytest
from proxy import Proxy
from pyspark.sql.streaming.datasource import ReadMaxBytes
from rawstomp import RawStomp, read_all
from streaming import access, journal_in, left, read, run_available, stopping
from waiting import wait_until

from pyspark_jms.errors import JMSError, MessageTooLargeError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.spark.stream_reader import JmsStreamReader
from pyspark_jms.stomp.link import prefetch

ENVELOPE = [("spark_jms_body", "map")]
BAD = [
    ([*ENVELOPE, ("n", "0"), ("type", "order"), ("correlation-id", "c"), ("priority", "7")], b'{"map":[{]}'),
    ([*ENVELOPE, ("n", "1"), ("_AMQ_DUPL_ID", "x"), ("reply-to", "queue://r")], b'{"map":1, "secret":"\0"}'),
]
GOOD = [([("n", str(n))], f"text {n}") for n in range(2, 12)]


def put_good_and_bad(broker, queue):
    with RawStomp(broker) as client:
        client.send(queue, [GOOD[0], BAD[0], *GOOD[1:5], BAD[1], *GOOD[5:]])


@pytest.mark.spark
@pytest.mark.parametrize("journal", [pytest.param(False, marks=pytest.mark.deep), True])
def test_what_cannot_be_mapped_is_sent_with_the_reason_and_makes_no_row(spark, broker, queue, tmp_path, journal):
    put_good_and_bad(broker, queue)
    options = {"queue": queue, "onBadMessage": "deadLetter", "deadLetterQueue": f"{queue}.dead"}
    options |= journal_in(tmp_path / "journal") if journal else {}
    name = f"dead_letters_{journal}"
    query = run_available(read(spark, broker, **options), tmp_path / "checkpoint", name=name)
    rows = spark.sql(f"select properties.n n, body_error from {name} order by sequence").collect()
    assert [(row.n, row.body_error) for row in rows] == [(str(n), None) for n in range(2, 12)]
    assert left(broker, queue) == 0
    metrics = json.loads(query.lastProgress["sources"][0]["latestOffset"])
    assert (metrics["deadLetters"], metrics["received"]) == (2, 12)
    first, second = read_all(broker, f"{queue}.dead")
    assert [first.body, second.body] == [body for _, body in BAD]
    kept = {"type": "order", "correlation-id": "c", "priority": "7", "spark_jms_body": "map", "n": "0"}
    assert kept.items() <= first.headers.items()
    assert first.headers["spark_jms_source"] == f"queue://{queue}"
    assert first.headers["persistent"] == "true"
    assert "map" in first.headers["spark_jms_error"]
    assert "secret" not in second.headers["spark_jms_error"]
    assert second.headers["reply-to"] == "queue://r"
    assert "_AMQ_DUPL_ID" not in second.headers
    assert first.headers["spark_jms_message_id"] != second.headers["spark_jms_message_id"]


@pytest.mark.deep
@pytest.mark.spark
@pytest.mark.parametrize(("choice", "count"), [("deadLetter", 1), ("drop", 0)])
def test_a_message_above_the_limit_does_not_stop_the_query(spark, broker, queue, tmp_path, choice, count):
    with RawStomp(broker) as client:
        client.send(queue, [([], "before"), ([("n", "1")], bytes(range(256)) * 20_000), ([], "after")])
    options = {"maxMessageBytes": "1m", "onTooLarge": choice}
    options |= {"deadLetterQueue": f"{queue}.dead"} if count else {}
    name = f"too_large_{choice}"
    query = run_available(read(spark, broker, queue=queue, **options), tmp_path, name=name)
    assert [row.text for row in spark.sql(f"select text from {name} order by sequence").collect()] == [
        "before",
        "after",
    ]
    assert left(broker, queue) == 0
    metrics = json.loads(query.lastProgress["sources"][0]["latestOffset"])
    assert (metrics["deadLetters"], metrics["droppedTooLarge"]) == (count, 1 - count)
    for letter in read_all(broker, f"{queue}.dead"):
        assert letter.body == bytes(range(256)) * 20_000
        assert letter.headers["n"] == "1"
        assert letter.headers["spark_jms_error"] == "5,120,000 bytes exceed maxMessageBytes (1,048,576)"


def test_a_bad_message_that_is_in_the_journal_makes_a_row_and_no_dead_letter(broker, queue, tmp_path):
    """It was stored with onBadMessage=keep, and its acknowledgement did not reach the broker."""
    with RawStomp(broker) as client:
        client.send(queue, [BAD[0]])
    raw = access(broker) | {"queue": queue, "reconnectTimeout": "0"} | journal_in(tmp_path)
    with Proxy(broker.host, broker.port) as proxy:
        proxy.to_broker.cut_at(b"ACK\n")
        reader = JmsStreamReader(SourceOptions.parse(raw | {"brokerUrl": proxy.url}))
        with contextlib.suppress(JMSError):
            reader.latestOffset({"seq": 0}, ReadMaxBytes(1))
        reader.stop()
    assert left(broker, queue, 1) == 1
    letters = {"onBadMessage": "deadLetter", "deadLetterQueue": f"{queue}.dead"}
    with stopping(JmsStreamReader(SourceOptions.parse(raw | letters))) as reader:
        end = reader.latestOffset({"seq": 0}, ReadMaxBytes(1))
        (part,) = reader.partitions({"seq": 0}, end)
        (rows,) = reader.read(part)
        assert rows.column("body_error").null_count == 0
        reader.latestOffset(end, ReadMaxBytes(1))
        assert left(broker, queue) == 0
    assert read_all(broker, f"{queue}.dead") == []


def test_a_full_disk_stops_the_query_and_costs_the_others_one_delivery_attempt(broker, queue, monkeypatch):
    """Not one for every reconnection, until the broker takes all of them for poison."""
    with RawStomp(broker) as client:
        client.send(queue, [([], "small"), ([], b"x" * 5_000_000), ([], "small")])
    monkeypatch.setattr(prefetch, "KEPT", {"deadLetter": lambda: Path("/dev/full").open("wb", buffering=0)})  # noqa: SIM115
    letters = {"maxMessageBytes": "1m", "onTooLarge": "deadLetter", "deadLetterQueue": f"{queue}.dead"}
    with (
        stopping(JmsStreamReader(SourceOptions.parse(access(broker) | {"queue": queue} | letters))) as reader,
        pytest.raises(MessageTooLargeError, match=r"\[JMS_MESSAGE_TOO_LARGE\].*No space left on device.*TMPDIR"),
    ):
        wait_until(lambda: reader.latestOffset({"seq": 0}, ReadMaxBytes(1)) == {"seq": 3})
    assert left(broker, queue, 3) == 3
    wait_until(lambda: len(broker.delivery_counts(queue)) == 3, what="the return of the messages to their queue")
    assert max(broker.delivery_counts(queue)) <= 1
