import json
import os

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

access = {
    "brokerUrl": os.environ.get("JMS_BROKER_URL", "stomp://localhost:61613"),
    "user": "artemis",
    "password": "artemis",
}
QUEUES = ["shop.orders", "shop.invoices", "shop.returns"]
data = os.path.abspath("data/several-queues")
spark = SparkSession.builder.appName("shop").getOrCreate()

for count, queue in enumerate(QUEUES, start=1):
    rows = spark.range(count).selectExpr(f"concat('{queue} ', id) AS text")
    rows.write.format("jms").mode("append").options(**access, queue=queue).save()

# At most eight connections for all queues. The prefetch window (windowBytes) is divided among the queues.
messages = spark.readStream.format("jms").options(**access, queue=json.dumps(QUEUES)).load()
named = messages.withColumn("queue", F.regexp_replace("JMSDestination", "^queue://", ""))
files = named.select("queue", "text", "JMSTimestamp", "delivery_id").writeStream.format("parquet").partitionBy("queue")
files = files.option("path", f"{data}/shop").option("checkpointLocation", f"{data}/checkpoint")
files.trigger(availableNow=True).start().awaitTermination()

for row in spark.read.parquet(f"{data}/shop").groupBy("queue").count().orderBy("queue").collect():
    print(f"{row['queue']}: {row['count']}")
