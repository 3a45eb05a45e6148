import os
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

access = {
    "brokerUrl": os.environ.get("JMS_BROKER_URL", "stomp://localhost:61613"),
    "user": "artemis",
    "password": "artemis",
}
data = os.path.abspath("data")
spark = SparkSession.builder.appName("readings").config("spark.sql.shuffle.partitions", 2).getOrCreate()


def send(count, delay=0):
    """Readings of now; the broker delivers them after ``delay`` milliseconds."""
    rows = spark.range(count).selectExpr("concat('reading ', id) AS text", f"{delay}L AS delivery_delay")
    rows.write.format("jms").mode("append").options(**access, queue="readings").save()


def run():
    """Count the readings on the queue. Returns how many of them were too late."""
    readings = spark.readStream.format("jms").options(**access, queue="readings").load()
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


print("three readings, and one that its broker delivers seven seconds later")
send(1, delay=7_000)
send(3)
run()
print("two readings four seconds later: they close the windows of the first three")
time.sleep(4)
send(2)
run()
print("the delayed reading arrives")
time.sleep(4)
run()
