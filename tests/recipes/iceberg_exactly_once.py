import os
import sys

import pyspark
from pyspark.sql import SparkSession

access = {
    "brokerUrl": os.environ.get("JMS_BROKER_URL", "amqp://localhost:5672"),
    "user": "artemis",
    "password": "artemis",
}
data = os.path.abspath("data")
release = pyspark.__version__.rpartition(".")[0]
spark = (
    SparkSession.builder.appName("orders to Iceberg")
    .config("spark.jars.packages", f"org.apache.iceberg:iceberg-spark-runtime-{release}_2.13:1.12.0")
    .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.lake.type", "hadoop")
    .config("spark.sql.catalog.lake.warehouse", f"{data}/lake")
    .getOrCreate()
)
columns = "n BIGINT, text STRING, JMSTimestamp TIMESTAMP, JMSMessageID STRING"
spark.sql(f"CREATE TABLE IF NOT EXISTS lake.shop.orders ({columns}) USING iceberg")


def send():
    rows = spark.range(1000).selectExpr("concat('order ', id) AS text", "map('n', string(id)) AS properties")
    rows.write.format("jms").mode("append").options(**access, queue="orders.iceberg").save()


def read():
    orders = spark.readStream.format("jms").options(**access, queue="orders.iceberg", maxMessagesPerTrigger=200)
    orders = orders.option("deliveryGuarantee", "exactly-once").load()
    rows = orders.selectExpr("CAST(properties['n'] AS BIGINT) AS n", "text", "JMSTimestamp", "JMSMessageID")
    table = rows.writeStream.format("iceberg").option("checkpointLocation", f"{data}/checkpoint")
    query = table.toTable("lake.shop.orders")
    query.processAllAvailable()
    query.stop()


def count():
    table = spark.table("lake.shop.orders")
    print(f"rows: {table.count()}, different messages: {table.select('JMSMessageID').distinct().count()}")


for step in sys.argv[1:]:
    {"send": send, "read": read, "count": count}[step]()
