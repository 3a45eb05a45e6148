"""Exactly-once reads over AMQP by Spark: the staging queue, deaths of the driver, two drivers of one checkpoint."""

from collections import Counter

import pytest
from amqp_sending import put
from streaming import access, left, run_available


def read(spark, broker, queue, **options):
    if not hasattr(broker, "amqp_url"):
        pytest.skip("needs an embedded broker")
    given = access(broker) | {"brokerUrl": broker.amqp_url, "queue": queue, "deliveryGuarantee": "exactly-once"}
    return spark.readStream.format("jms").options(**given | options).load()


def test_available_now_reads_each_message_once_and_leaves_nothing(spark, broker, queue, tmp_path):
    put(broker, queue, *map(str, range(500)))
    frame = read(spark, broker, queue, maxMessagesPerTrigger="200").select("text")
    run_available(frame, tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))
    found = Counter(int(row.text) for row in spark.read.parquet(str(tmp_path / "out")).collect())
    assert found == Counter(range(500))
    assert left(broker, queue) == 0
    put(broker, queue, *map(str, range(500, 600)))
    run_available(frame, tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))
    found = Counter(int(row.text) for row in spark.read.parquet(str(tmp_path / "out")).collect())
    assert found == Counter(range(600))
