"""The recipe of docs/bad-messages.md: rows that the user's own code cannot process go to a dead-letter queue, once."""

import pytest
from pyspark.sql import functions as F
from rawstomp import RawStomp
from streaming import access, journal_in, left, read

from pyspark_jms.functions import jms_text, write_id

pytestmark = [pytest.mark.broker, pytest.mark.spark]

BODIES = [
    '{"id": 1, "amount": 1.5}', "no JSON", '{"id": 2, "amount": 2.5}', '{"amount": 3}', '{"id": 4, "amount": 0}',
    b'{"id": 5, "amount": 5.5}', b'{"amount": 6}', b"\xff no UTF-8",
]  # fmt: skip
"""As clients send them: a str without content-length arrives in ``text``, bytes with one in ``bytes``."""


def test_bad_rows_go_to_the_dead_letter_queue_and_the_query_goes_on(spark, broker, queue, tmp_path):
    with RawStomp(broker) as client:
        client.send(queue, [([("n", str(n)), ("type", "order")], body) for n, body in enumerate(BODIES)])
    runs = []

    def process(batch, number):
        parsed = batch.withColumn("order", F.from_json(jms_text(batch), "id INT, amount DOUBLE")).persist()
        good = F.col("order.id").isNotNull()
        parsed.where(good).select("order.*").write.mode("overwrite").parquet(f"{tmp_path}/out/batch={number}")
        error = F.map_from_arrays(F.array(F.lit("spark_jms_error")), F.array(F.lit("no order: id is missing")))
        dead = parsed.where(~good).withColumn("properties", F.map_concat("properties", error))
        (
            dead.select("text", "bytes", "properties", "JMSCorrelationID", "JMSType")
            .write.format("jms")
            .options(**access(broker, "amqp"), queue=f"{queue}.dead")
            .options(deliveryGuarantee="exactly-once", writeId=write_id(batch, number))
            .mode("append")
            .save()
        )
        parsed.unpersist()
        runs.append(number)
        if len(runs) == 1:
            raise RuntimeError("after all of it, as a crash would")

    frame = read(spark, broker, queue=queue, **journal_in(tmp_path / "journal"))
    writer = frame.writeStream.foreachBatch(process).option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(Exception, match="as a crash would"):
        writer.trigger(availableNow=True).start().awaitTermination(60)
    assert writer.trigger(availableNow=True).start().awaitTermination(60)
    assert runs[0] == runs[1], "the batch was repeated"
    rows = spark.read.parquet(f"{tmp_path}/out").orderBy("id").collect()
    assert [(row.id, row.amount) for row in rows] == [(1, 1.5), (2, 2.5), (4, 0.0), (5, 5.5)]
    with RawStomp(broker) as client:
        letters = client.read(f"{queue}.dead")
    assert [letter.body for letter in letters] == [b"no JSON", b'{"amount": 3}', b'{"amount": 6}', b"\xff no UTF-8"]
    assert [letter.headers["n"] for letter in letters] == ["1", "3", "6", "7"]
    assert {letter.headers["spark_jms_error"] for letter in letters} == {"no order: id is missing"}
    assert left(broker, queue) == 0
