import os

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyspark_jms.functions import jms_text, write_id

access = {
    "brokerUrl": os.environ.get("JMS_AMQP_URL", "amqp://localhost:5672"),
    "user": "artemis",
    "password": "artemis",
}
ORDER = "id BIGINT, customer STRING, amount DECIMAL(10,2)"
data = os.path.abspath("data")
spark = SparkSession.builder.appName("orders").getOrCreate()

examples = [
    '{"id": 1, "customer": "ada", "amount": 12.50}',
    '{"id": 2, "customer": "bob", "amount": "much"}',
    '{"customer": "eve", "amount": 3}',
    "not JSON at all",
    '{"id": 5, "customer": "ada", "amount": 7.25}',
]
rows = spark.createDataFrame([(text,) for text in examples], "text STRING")
rows.write.format("jms").mode("append").options(**access, queue="orders").save()


def process(batch, number):
    order = F.from_json(jms_text(batch), ORDER)
    error = F.when(order["id"].isNull(), "id is missing").when(order["amount"].isNull(), "amount is no number")
    parsed = batch.withColumn("order", order).withColumn("error", error).persist()

    good = parsed.where("error IS NULL").select("order.*", "JMSTimestamp", "delivery_id")
    good.write.mode("overwrite").parquet(f"{data}/orders/batch={number}")

    reason = F.map_from_arrays(F.array(F.lit("spark_jms_error")), F.array("error"))
    dead = parsed.where("error IS NOT NULL").withColumn("properties", F.map_concat("properties", reason))
    writer = dead.select("text", "bytes", "properties", "JMSCorrelationID", "JMSType").write.format("jms")
    once = {"deliveryGuarantee": "exactly-once", "writeId": write_id(batch, number)}
    writer.options(**access, **once, queue="orders.dead").mode("append").save()
    parsed.unpersist()


orders = spark.readStream.format("jms").options(**access, queue="orders", deliveryGuarantee="exactly-once").load()
query = orders.writeStream.foreachBatch(process).option("checkpointLocation", f"{data}/checkpoint")
query.trigger(availableNow=True).start().awaitTermination()

for row in spark.read.parquet(f"{data}/orders").orderBy("id").collect():
    print(f"order {row.id}: {row.customer} {row.amount}")
dead_letters = spark.read.format("jms").options(**access, queue="orders.dead").load()
for row in dead_letters.orderBy("text").collect():
    print(f"dead letter: {row.properties['spark_jms_error']}: {row.text}")
