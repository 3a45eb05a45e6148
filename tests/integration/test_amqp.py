"""`amqp://` and Spark: what Java sends is what Spark sees, and writes that fail or are repeated.

What Spark writes, to Java: tests/brokers/test_java_over_amqp.py. Streams: tests/brokers/test_over_amqp.py, and in
`make test` a cell of tests/faults.
"""

import pytest
from streaming import access
from waiting import await_count

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


def test_a_task_that_fails_leaves_nothing(spark, broker, queue, over_amqp):
    rows = spark.range(0, 1_000, 1, 1).selectExpr("IF(id = 950, raise_error('stop'), CAST(id AS STRING)) text")
    with pytest.raises(Exception, match="stop"):
        rows.write.format("jms").mode("append").options(**over_amqp, queue=queue).save()
    await_count(broker, queue, 0)


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
