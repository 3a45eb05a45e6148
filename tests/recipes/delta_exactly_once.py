import os
import sys

import pyspark
from pyspark.sql import SparkSession

access = {
    "brokerUrl": os.environ.get("JMS_BROKER_URL", "stomp://localhost:61613"),
    "user": "artemis",
    "password": "artemis",
}
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
    rows = spark.range(1000).selectExpr("concat('order ', id) AS text", "map('n', string(id)) AS properties")
    rows.write.format("jms").mode("append").options(**access, queue="orders.delta").save()


def read():
    orders = spark.readStream.format("jms").options(**access, queue="orders.delta", maxMessagesPerTrigger=200)
    orders = orders.option("deliveryGuarantee", "exactly-once").option("journalLocation", f"{data}/journal").load()
    rows = orders.selectExpr("CAST(properties['n'] AS BIGINT) AS n", "text", "JMSTimestamp", "delivery_id")
    table = rows.writeStream.format("delta").option("checkpointLocation", f"{data}/checkpoint")
    query = table.start(f"{data}/orders")
    query.processAllAvailable()
    query.stop()


def count():
    table = spark.read.format("delta").load(f"{data}/orders")
    print(f"rows: {table.count()}, different messages: {table.select('delivery_id').distinct().count()}")


for step in sys.argv[1:]:
    {"send": send, "read": read, "count": count}[step]()
