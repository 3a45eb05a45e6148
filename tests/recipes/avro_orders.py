import os

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro, to_avro

access = {
    "brokerUrl": os.environ.get("JMS_AMQP_URL", "amqp://localhost:5672"),
    "user": "artemis",
    "password": "artemis",
}
ORDER = """{"type": "record", "name": "Order", "namespace": "shop", "fields": [
    {"name": "id", "type": "long"},
    {"name": "customer", "type": "string"},
    {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    {"name": "items", "type": {"type": "array", "items": "string"}, "default": []}]}"""
data = os.path.abspath("data")
version = {"4.0": "4.0.2", "4.1": "4.1.1", "4.2": "4.2.0"}[pyspark.__version__.rpartition(".")[0]]
packages = f"org.apache.spark:spark-avro_2.13:{version}"
spark = SparkSession.builder.appName("orders in Avro").config("spark.jars.packages", packages).getOrCreate()

examples = spark.sql("""
    SELECT 1L AS id, 'ada' AS customer, 12.50BD AS amount, array('A-7', 'B-1') AS items UNION ALL
    SELECT 2L, 'bob', 7.25BD, array()""")
order = F.struct("id", "customer", F.col("amount").cast("decimal(10,2)").alias("amount"), "items")
bodies = examples.select(to_avro(order, ORDER).alias("bytes"))
bodies = bodies.union(spark.sql("SELECT CAST('no order' AS BINARY)"))
bodies.write.format("jms").mode("append").options(**access, queue="orders.avro").save()

orders = spark.readStream.format("jms").options(**access, queue="orders.avro", deliveryGuarantee="exactly-once")
orders = orders.schema("bytes BINARY, text STRING, JMSMessageID STRING, JMSTimestamp TIMESTAMP").load()
rows = orders.withColumn("order", from_avro("bytes", ORDER, {"mode": "PERMISSIVE"}))
body = F.coalesce("bytes", F.encode("text", "UTF-8"), F.lit(b""))
unreadable = F.when(F.col("order.id").isNull(), body).alias("unreadable")
rows = rows.select("order.*", "JMSMessageID", "JMSTimestamp", unreadable)
files = rows.writeStream.format("parquet").option("path", f"{data}/orders")
query = files.option("checkpointLocation", f"{data}/checkpoint").start()
query.processAllAvailable()
query.stop()

for row in spark.read.parquet(f"{data}/orders").orderBy("id").collect():
    if row.unreadable is None:
        print(f"order {row.id}: {row.customer} {row.amount} {row['items']}")
    else:
        print(f"not in Avro: {bytes(row.unreadable)}")
