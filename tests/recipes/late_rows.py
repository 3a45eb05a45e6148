import json
import os
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

access = {
    "brokerUrl": os.environ.get("JMS_BROKER_URL", "stomp://localhost:61613"),
    "user": "artemis",
    "password": "artemis",
}
data = os.path.abspath("data/late-rows")
spark = SparkSession.builder.appName("readings").config("spark.sql.shuffle.partitions", 2).getOrCreate()


def send(queue, count):
    rows = spark.range(count).selectExpr("concat('reading ', id) AS text")
    rows.write.format("jms").mode("append").options(**access, queue=queue).save()


def run(*queues):
    """Count the readings on the queues."""
    readings = spark.readStream.format("jms").options(**access, queue=json.dumps(queues)).load()
    windows = (
        readings.where("JMSTimestamp IS NOT NULL")
        .withWatermark("JMSTimestamp", "2 seconds")
        .groupBy(F.window("JMSTimestamp", "1 second"))
        .count()
    )
    files = windows.writeStream.format("parquet").option("path", f"{data}/windows").outputMode("append")
    query = files.option("checkpointLocation", f"{data}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()
    late = sum(state["numRowsDroppedByWatermark"] for each in query.recentProgress for state in each["stateOperators"])
    counted = spark.read.schema(windows.schema).parquet(f"{data}/windows").agg(F.sum("count")).first()[0] or 0
    print(f"readings in closed windows: {counted}, dropped as late: {late}")


print("three readings arrive, and one waits in the queue of a gateway that is offline")
send("gateway", 1)
send("readings", 3)
run("readings")
print("two readings four seconds later close the windows of the first three")
time.sleep(4)
send("readings", 2)
run("readings")
print("the gateway is back")
run("readings", "gateway")
