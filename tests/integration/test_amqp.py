"""`amqp://`: what Java sends is what Spark sees, and what Spark writes is what Java receives."""

import json

import pytest
from streaming import access
from waiting import await_count, wait_until

from pyspark_jms.testing import JmsClient, Typed

pytestmark = [pytest.mark.broker, pytest.mark.spark]

PROPERTIES = {
    "boolean": Typed("boolean", True),
    "byte": Typed("byte", -128),
    "short": Typed("short", 32767),
    "int": Typed("int", -(2**31)),
    "long": Typed("long", 2**63 - 1),
    "float": Typed("float", 1.5),
    "double": Typed("double", -0.1),
    "string": Typed("string", "ä, : \\ \n"),
}
MAP = {**PROPERTIES, "char": Typed("char", "ö"), "bytes": Typed("bytes", b"\0\xff")}
STREAM = [Typed("int", 1), Typed("string", "two"), Typed("double", 3.0), Typed("char", "4")]


@pytest.fixture
def over_amqp(broker):
    return access(broker, "amqp")


def test_what_java_sends_is_what_spark_sees(spark, broker, queue, over_amqp):
    with JmsClient(broker) as java:
        for body in ("text", "", b"\0\xff", MAP, STREAM, None):
            java.send(queue, body, properties=PROPERTIES, correlation_id="c", type="t", priority=7)
    rows = spark.read.format("jms").options(**over_amqp, queue=queue).load().orderBy("sequence").collect()
    assert [row.body_type for row in rows] == ["text", "text", "bytes", "map", "stream", "message"]
    assert [rows[0].text, rows[1].text, bytes(rows[2].bytes)] == ["text", "", b"\0\xff"]
    for row in rows:
        assert (row.JMSCorrelationID, row.JMSType, row.JMSPriority) == ("c", "t", 7)
        assert row.JMSMessageID.startswith("ID:")
        assert row.delivery_id == f"{queue}/{row.JMSMessageID}"
        assert {name: row.property_types[name] for name in PROPERTIES} == {name: name for name in PROPERTIES}
        assert row.properties["long"] == str(2**63 - 1)
        assert row.properties["JMSXDeliveryCount"] == "1"
        assert row.body_error is None
    assert {name: value.type for name, value in rows[3].map.items()} == {name: name for name in MAP}
    assert [(value.type, value.value) for value in rows[4].stream] == [
        ("int", "1"), ("string", "two"), ("double", "3.0"), ("char", "4"),
    ]  # fmt: skip
    await_count(broker, queue, 6)


def test_a_stream_reads_and_acknowledges(spark, broker, queue, over_amqp, tmp_path):
    with JmsClient(broker) as java:
        for number in range(250):
            java.send(queue, str(number))
    stream = spark.readStream.format("jms").options(**over_amqp, queue=queue, maxMessagesPerTrigger=100).load()
    writer = stream.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    query = writer.start()
    assert query.awaitTermination(120)
    assert query.exception() is None
    texts = [row.text for row in spark.read.parquet(str(tmp_path / "out")).orderBy("sequence").collect()]
    assert texts == list(map(str, range(250)))
    await_count(broker, queue, 0)
    progress = json.loads(query.lastProgress["sources"][0]["latestOffset"])
    assert progress["guarantee"] == "at-least-once"


def test_what_spark_writes_is_what_java_receives(spark, broker, queue, over_amqp):
    value = "named_struct('type', '{}', 'value', '{}')".format
    rows = spark.range(1).selectExpr(
        "explode(array('text', 'map', 'stream', 'bytes')) body_type",
        "'t' JMSType",
        "'c' JMSCorrelationID",
        "8 JMSPriority",
        "map('n', '5', 's', 'x') properties",
        "map('n', 'short') property_types",
    )
    rows = rows.selectExpr(
        "*",
        "IF(body_type = 'text', 'hello', NULL) text",
        "IF(body_type = 'bytes', X'00FF', NULL) bytes",
        f"IF(body_type = 'map', map('a', {value('int', '1')}, 'b', {value('bytes', 'AP8=')}), NULL) map",
        f"IF(body_type = 'stream', array({value('char', 'x')}, {value('double', '0.5')}), NULL) stream",
    )
    rows.coalesce(1).write.format("jms").mode("append").options(**over_amqp, queue=queue).save()
    with JmsClient(broker) as java:
        found = {message.body_type.value: message for message in (java.receive(queue) for _ in range(4))}
    assert found["text"].body == "hello"
    assert found["bytes"].body == b"\0\xff"
    assert found["map"].body == {"a": Typed("int", 1), "b": Typed("bytes", b"\0\xff")}
    assert found["stream"].body == [Typed("char", "x"), Typed("double", 0.5)]
    for message in found.values():
        assert (message.type, message.correlation_id, message.priority) == ("t", "c", 8)
        assert message.properties["n"] == Typed("short", 5)
        assert message.properties["s"] == Typed("string", "x")


def test_rows_name_their_destinations(spark, broker, queue, over_amqp):
    rows = spark.range(10).selectExpr("CAST(id AS STRING) text", f"concat('queue://{queue}.', id % 2) destination")
    rows.coalesce(1).write.format("jms").mode("append").options(**over_amqp).save()
    wait_until(lambda: [broker.message_count(f"{queue}.{n}") for n in (0, 1)] == [5, 5])


def test_a_task_that_fails_leaves_nothing(spark, broker, queue, over_amqp):
    rows = spark.range(0, 1_000, 1, 1).selectExpr("IF(id = 950, raise_error('stop'), CAST(id AS STRING)) text")
    with pytest.raises(Exception, match="stop"):
        rows.write.format("jms").mode("append").options(**over_amqp, queue=queue).save()
    await_count(broker, queue, 0)


@pytest.mark.parametrize("transaction", ["none", "300"])
def test_other_transactions(spark, broker, queue, over_amqp, transaction):
    rows = spark.range(0, 1_000, 1, 1).selectExpr("CAST(id AS STRING) text")
    rows.write.format("jms").mode("append").options(**over_amqp, queue=queue, transaction=transaction).save()
    await_count(broker, queue, 1_000)


@pytest.mark.deep
def test_a_batch_write_is_sent_once(spark, broker, queue, over_amqp):
    """Also when it has ended, and has one entry for all of its tasks."""
    once = over_amqp | {"queue": queue, "deliveryGuarantee": "exactly-once"}
    rows = spark.range(0, 100, 1, 4).selectExpr("CAST(id AS STRING) text")
    for _ in range(3):
        rows.write.format("jms").mode("append").options(**once, writeId=f"job:{queue}/1").save()
    await_count(broker, queue, 100)
    for others in (rows.limit(50), rows.coalesce(1)):
        with pytest.raises(Exception, match=r"\[JMS_REPLAY_MISMATCH\].*already sent with 100 rows.*another writeId"):
            others.write.format("jms").mode("append").options(**once, writeId=f"job:{queue}/1").save()
    rows.write.format("jms").mode("append").options(**once, writeId=f"job:{queue}/2").save()
    await_count(broker, queue, 200)


def test_a_journal_is_refused_before_anything_connects(spark, queue, over_amqp):
    with pytest.raises(Exception, match=r"JMS_UNSUPPORTED.*journalLocation"):
        spark.readStream.format("jms").options(
            **over_amqp, queue=queue, deliveryGuarantee="exactly-once", journalLocation="/tmp/x"
        ).load()
