import os
import sys

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyspark_jms.functions import jms_text, write_id

access = {
    "brokerUrl": os.environ.get("JMS_BROKER_URL", "amqp://localhost:5672"),
    "user": "artemis",
    "password": "artemis",
}
ORDER = "id BIGINT, customer STRING, amount DECIMAL(10,2)"
data = os.path.abspath("data")
release = pyspark.__version__.rpartition(".")[0]
spark = (
    SparkSession.builder.appName("orders to Delta")
    .config("spark.jars.packages", f"io.delta:delta-spark_{release}_2.13:4.4.0")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.databricks.delta.snapshotPartitions", 2)  # a small table; the default is 50
    .getOrCreate()
)


def send():
    order = F.expr("to_json(named_struct('id', id, 'customer', 'ada', 'amount', id / 4))")
    text = F.when(F.col("id") % 10 == 9, "not JSON at all").otherwise(order).alias("text")
    rows = spark.range(1000).select(text, F.expr("map('region', if(id % 2 = 0, 'eu', 'us')) AS properties"))
    rows.write.format("jms").mode("append").options(**access, queue="orders.json").save()


def save(batch, number):
    once = write_id(batch, number)  # query:ID/NUMBER
    parsed = batch.withColumn("order", F.from_json(jms_text(batch), ORDER)).persist()

    good = parsed.where("order.id IS NOT NULL")
    rows = good.selectExpr("order.*", "properties['region'] AS region", "JMSTimestamp", "JMSMessageID")
    table = rows.write.format("delta").mode("append")
    table.options(txnAppId=once.rpartition("/")[0], txnVersion=number).save(f"{data}/orders")

    reason = F.create_map(F.lit("spark_jms_error"), F.lit("not the JSON of an order"))
    dead = parsed.where("order.id IS NULL").withColumn("properties", F.map_concat("properties", reason))
    letters = dead.select("text", "bytes", "properties", "JMSCorrelationID", "JMSType").write.format("jms")
    letters.options(**access, deliveryGuarantee="exactly-once", writeId=once, queue="orders.json.dead")
    letters.mode("append").save()
    parsed.unpersist()


def read():
    orders = spark.readStream.format("jms").options(**access, queue="orders.json", maxMessagesPerTrigger=200)
    orders = orders.option("deliveryGuarantee", "exactly-once").load()
    query = orders.writeStream.foreachBatch(save).option("checkpointLocation", f"{data}/checkpoint").start()
    query.processAllAvailable()
    query.stop()


def count():
    table = spark.read.format("delta").load(f"{data}/orders")
    dead = spark.read.format("jms").options(**access, queue="orders.json.dead").load()
    messages = table.select("JMSMessageID").distinct().count()
    print(f"rows: {table.count()}, different messages: {messages}, dead letters: {dead.count()}")


for step in sys.argv[1:]:
    {"send": send, "read": read, "count": count}[step]()
