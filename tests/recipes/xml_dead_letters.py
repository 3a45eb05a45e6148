import os

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyspark_jms.functions import jms_text, write_id

access = {
    "brokerUrl": os.environ.get("JMS_AMQP_URL", "amqp://localhost:5672"),
    "user": "artemis",
    "password": "artemis",
}
ORDER = """_id BIGINT, customer STRING, amount DECIMAL(10,2),
    item ARRAY<STRUCT<_sku STRING, _VALUE INT>>, _corrupt_record STRING"""
data = os.path.abspath("data")
spark = SparkSession.builder.appName("orders in XML").getOrCreate()

examples = [
    """<order id="1"><customer>ada</customer><amount>12.50</amount>
       <item sku="A-7">2</item><item sku="B-1">1</item></order>""",
    '<order id="2"><customer>bob</customer><amount>much</amount></order>',
    "<order><customer>eve</customer><amount>3.00</amount></order>",
    '<order id="4"><customer>cut off',
    '<?xml version="1.0" encoding="UTF-8"?><order id="5"><customer>Zoë</customer><amount>7.25</amount></order>',
]
rows = spark.createDataFrame([(text,) for text in examples], "text STRING")
rows.write.format("jms").mode("append").options(**access, queue="orders.xml").save()


def process(batch, number):
    order = F.from_xml(jms_text(batch), ORDER, {"mode": "PERMISSIVE"})
    bad = order.isNull() | order["_corrupt_record"].isNotNull()
    error = F.when(bad, "not the XML of an order").when(order["_id"].isNull(), "id is missing")
    parsed = batch.withColumn("order", order).withColumn("error", error).persist()

    columns = "order._id id", "order.customer", "order.amount", "order.item items", "JMSTimestamp"
    good = parsed.where("error IS NULL").selectExpr(*columns)
    good.write.mode("overwrite").parquet(f"{data}/orders/batch={number}")

    reason = F.map_from_arrays(F.array(F.lit("spark_jms_error")), F.array("error"))
    dead = parsed.where("error IS NOT NULL").withColumn("properties", F.map_concat("properties", reason))
    writer = dead.select("text", "bytes", "properties", "JMSCorrelationID", "JMSType").write.format("jms")
    once = {"deliveryGuarantee": "exactly-once", "writeId": write_id(batch, number)}
    writer.options(**access, **once, queue="orders.xml.dead").mode("append").save()
    parsed.unpersist()


orders = spark.readStream.format("jms").options(**access, queue="orders.xml", deliveryGuarantee="exactly-once").load()
query = orders.writeStream.foreachBatch(process).option("checkpointLocation", f"{data}/checkpoint")
query.trigger(availableNow=True).start().awaitTermination()

for row in spark.read.parquet(f"{data}/orders").orderBy("id").collect():
    items = [f"{item['_VALUE']} x {item['_sku']}" for item in row["items"] or []]
    print(f"order {row.id}: {row.customer} {row.amount} {items}")
dead_letters = spark.read.format("jms").options(**access, queue="orders.xml.dead").load()
for row in dead_letters.orderBy("text").collect():
    print(f"dead letter: {row.properties['spark_jms_error']}: {row.text}")
