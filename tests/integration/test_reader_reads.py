"""Exactly-once reads by Spark whose tasks receive from the broker: option ``readers``."""

import json
from collections import Counter

import pytest
from amqp_sending import put
from streaming import access, left, run_available

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def read(spark, broker, queue, **options):
    if not hasattr(broker, "amqp_url"):
        pytest.skip("needs an embedded broker")
    given = access(broker) | {"brokerUrl": broker.amqp_url, "queue": queue, "deliveryGuarantee": "exactly-once"}
    return spark.readStream.format("jms").options(**given | options).load()


def numbers(spark, folder):
    return Counter(int(row.text) for row in spark.read.parquet(str(folder)).collect())


@pytest.mark.releases
def test_available_now_reads_each_message_once_with_any_number_of_readers(spark, broker, queue, tmp_path):
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    for run, readers in enumerate((2, 1, 3)):
        put(broker, queue, *map(str, range(300 * run, 300 * run + 300)))
        frame = read(spark, broker, queue, readers=str(readers), maxMessagesPerTrigger="200").select("text")
        run_available(frame, checkpoint, "parquet", path=str(out))
        assert numbers(spark, out) == Counter(range(300 * run + 300))
        assert left(broker, queue) == 0
    offsets = sorted((checkpoint / "offsets").iterdir(), key=lambda path: int(path.name) if path.name.isdigit() else -1)
    last = json.loads(offsets[-1].read_text().splitlines()[-1])
    assert len(last["names"]) == 3


def test_a_stream_that_is_united_with_itself_has_each_message_twice(spark, broker, queue, tmp_path):
    """Two tasks read each register at a time, on the same cores."""
    put(broker, queue, *map(str, range(200)))
    frame = read(spark, broker, queue, readers="2").select("text")
    run_available(frame.union(frame), tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))
    found = numbers(spark, tmp_path / "out")
    assert set(found.values()) <= {2}
    assert set(found) == set(range(200))


@pytest.mark.releases
def test_trigger_once_reads_one_batch(spark, broker, queue, tmp_path):
    put(broker, queue, *map(str, range(30)))
    frame = read(spark, broker, queue, readers="1", maxMessagesPerTrigger="20").select("text")
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    for rows in (20, 30):
        query = writer.option("path", str(tmp_path / "out")).trigger(once=True).start()
        assert query.awaitTermination(60)
        assert numbers(spark, tmp_path / "out") == Counter(range(rows))
