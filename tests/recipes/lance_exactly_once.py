import os
import sys

import lance
from pyspark.sql import SparkSession

access = {
    "brokerUrl": os.environ.get("JMS_BROKER_URL", "amqp://localhost:5672"),
    "user": "artemis",
    "password": "artemis",
}
data = os.path.abspath("data")
table = f"{data}/orders.lance"
spark = SparkSession.builder.appName("orders to Lance").getOrCreate()


def send():
    rows = spark.range(1000).selectExpr("concat('order ', id) AS text", "map('n', string(id)) AS properties")
    rows.write.format("jms").mode("append").options(**access, queue="orders.lance").save()


def save(batch, number):
    rows = batch.selectExpr("CAST(properties['n'] AS BIGINT) AS n", "text", "JMSTimestamp", "JMSMessageID").toArrow()
    try:
        dataset = lance.dataset(table)
    except ValueError:  # before the first batch
        dataset = lance.write_dataset(rows.slice(0, 0), table)
    dataset.merge_insert("JMSMessageID").when_not_matched_insert_all().execute(rows)


def read():
    orders = spark.readStream.format("jms").options(**access, queue="orders.lance", maxMessagesPerTrigger=200)
    orders = orders.option("deliveryGuarantee", "exactly-once").load()
    query = orders.writeStream.foreachBatch(save).option("checkpointLocation", f"{data}/checkpoint").start()
    query.processAllAvailable()
    query.stop()


def count():
    found = lance.dataset(table).to_table(columns=["JMSMessageID"])
    print(f"rows: {len(found)}, different messages: {len(found['JMSMessageID'].unique())}")


for step in sys.argv[1:]:
    {"send": send, "read": read, "count": count}[step]()
