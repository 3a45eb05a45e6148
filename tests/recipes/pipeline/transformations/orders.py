import os

from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyspark_jms.functions import jms_text

spark = SparkSession.active()
access = {
    "brokerUrl": os.environ.get("JMS_AMQP_URL", "amqp://localhost:5672"),
    "user": "artemis",
    "passwordFile": os.environ.get("JMS_PASSWORD_FILE", "/run/secrets/jms"),
    "deliveryGuarantee": "exactly-once",
}


@dp.table
def orders():
    """A streaming table: every message of queue pipeline.orders, as typed columns."""
    messages = spark.readStream.format("jms").options(**access, queue="pipeline.orders").load()
    order = F.from_json(jms_text(messages), "id BIGINT, amount DECIMAL(10,2)")
    return messages.select(order.alias("order"), "JMSTimestamp", "delivery_id").select("order.*", "JMSTimestamp")


dp.create_sink("large_orders", "jms", access | {"queue": "pipeline.large"})


@dp.append_flow(target="large_orders")
def to_large_orders():
    large = spark.readStream.table("orders").where("amount >= 100")
    return large.selectExpr("to_json(struct(id, amount)) AS text", "'large order' AS JMSType")


@dp.materialized_view
def totals():
    return spark.read.table("orders").groupBy().agg(F.count("*").alias("orders"), F.sum("amount").alias("amount"))
