import os
import time

from pyspark.sql import SparkSession

access = {
    "brokerUrl": os.environ.get("JMS_BROKER_URL", "stomp://localhost:61613"),
    "user": "artemis",
    "password": "artemis",
}
data = os.path.abspath("data/blue-green")
spark = SparkSession.builder.appName("blue and green").getOrCreate()


def start(colour, text, **trigger):
    """The query of one colour: its own code, checkpoint, journal and output."""
    messages = spark.readStream.format("jms").options(
        **access, queue="events", deliveryGuarantee="exactly-once", journalLocation=f"{data}/journal-{colour}"
    )
    rows = messages.load().selectExpr("CAST(properties['n'] AS BIGINT) AS n", f"{text} AS text")
    files = rows.writeStream.format("parquet").option("path", f"{data}/{colour}")
    return files.option("checkpointLocation", f"{data}/checkpoint-{colour}").trigger(**trigger).start()


def rows_of(colour):
    return spark.read.schema("n BIGINT, text STRING").parquet(f"{data}/{colour}")


# A producer that never stops.
numbers = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
numbers = numbers.selectExpr("concat('event ', value) AS text", "map('n', string(value)) AS properties")
producer = numbers.writeStream.format("jms").options(**access, queue="events")
producer = producer.option("checkpointLocation", f"{data}/checkpoint-producer").start()

blue = start("blue", "text", processingTime="1 second")
while len(blue.recentProgress) < 5:
    time.sleep(0.2)

# The switch. 1. Stop blue: a batch may be interrupted, and messages may be in blue's journal. 2. Let blue finish: it
# completes that batch, reads what is in its journal and what was sent until now, and ends. 3. Start green.
blue.stop()
start("blue", "text", availableNow=True).awaitTermination()
green = start("green", "upper(text)", processingTime="1 second")
while len(green.recentProgress) < 5:
    time.sleep(0.2)

producer.stop()
green.stop()
start("green", "upper(text)", availableNow=True).awaitTermination()

both = rows_of("blue").select("n").unionAll(rows_of("green").select("n"))
sent = int(both.agg({"n": "max"}).first()[0]) + 1
first_green = rows_of("green").agg({"n": "min"}).first()[0]
print("blue has rows:", rows_of("blue").count() > 0, "- green has rows:", rows_of("green").count() > 0)
print("lost:", sent - both.distinct().count(), "- duplicates:", both.count() - both.distinct().count())
print("blue has rows after green's first one:", rows_of("blue").where(f"n > {first_green}").count())
