import os

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message, message_factory
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

access = {
    "brokerUrl": os.environ.get("JMS_AMQP_URL", "amqp://localhost:5672"),
    "user": "artemis",
    "password": "artemis",
}
FIELDS = [  # of message Order in order.proto: see below
    {"name": "id", "number": 1, "type": "TYPE_INT64", "label": "LABEL_OPTIONAL"},
    {"name": "customer", "number": 2, "type": "TYPE_STRING", "label": "LABEL_OPTIONAL"},
    {"name": "cents", "number": 3, "type": "TYPE_INT64", "label": "LABEL_OPTIONAL"},
    {"name": "items", "number": 4, "type": "TYPE_STRING", "label": "LABEL_REPEATED"},
]
FILE = {
    "name": "order.proto",
    "package": "shop",
    "syntax": "proto3",
    "messageType": [{"name": "Order", "field": FIELDS}],
}
PROTO = json_format.ParseDict(FILE, descriptor_pb2.FileDescriptorProto()).SerializeToString()
data = os.path.abspath("data")
spark = SparkSession.builder.appName("orders in Protobuf").getOrCreate()


def order_class():
    """With protoc: `from order_pb2 import Order`."""
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(PROTO)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


@F.udf("id BIGINT, customer STRING, cents BIGINT, items ARRAY<STRING>")
def from_protobuf(body):
    try:
        order = order_class().FromString(body or b"")
    except message.DecodeError:
        return None
    return (order.id, order.customer, order.cents, list(order.items)) if order.id else None


Order = order_class()
examples = [Order(id=1, customer="ada", cents=1250, items=["A-7", "B-1"]), Order(id=2, customer="bob", cents=725)]
bodies = [(order.SerializeToString(),) for order in examples] + [(b"no order",)]
bodies = spark.createDataFrame(bodies, "bytes BINARY")
bodies.write.format("jms").mode("append").options(**access, queue="orders.protobuf").save()

orders = spark.readStream.format("jms").options(**access, queue="orders.protobuf", deliveryGuarantee="exactly-once")
orders = orders.schema("bytes BINARY, text STRING, JMSMessageID STRING, JMSTimestamp TIMESTAMP").load()
rows = orders.withColumn("order", from_protobuf("bytes"))
body = F.coalesce("bytes", F.encode("text", "UTF-8"), F.lit(b""))
unreadable = F.when(F.col("order").isNull(), body).alias("unreadable")
rows = rows.select("order.*", "JMSMessageID", "JMSTimestamp", unreadable)
files = rows.writeStream.format("parquet").option("path", f"{data}/orders")
query = files.option("checkpointLocation", f"{data}/checkpoint").start()
query.processAllAvailable()
query.stop()

for row in spark.read.parquet(f"{data}/orders").orderBy("id").collect():
    if row.unreadable is None:
        print(f"order {row.id}: {row.customer} {row.cents / 100:.2f} {row['items']}")
    else:
        print(f"not in Protobuf: {bytes(row.unreadable)}")
