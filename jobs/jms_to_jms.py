r"""Read orders from a queue, add their total, and send each order to a queue that depends on its content.

    export JMS_PASSWORD=artemis
    spark-submit jobs/jms_to_jms.py --broker-url stomp://localhost:61613 --user artemis \
        --password-env JMS_PASSWORD --queue orders --checkpoint out/checkpoint --available-now

An order is JSON, as text or UTF-8 bytes: {"order": 1001, "country": "DE", "quantity": 3, "price": 4.5}.
The job sends it to
    QUEUE.review    if quantity x price is 1000 or more,
    QUEUE.europe    if the country is in Europe,
    QUEUE.world     otherwise,
    QUEUE.invalid   unchanged, if the message is not a valid order.
Headers and properties are kept. Each task writes in one transaction. After a crash a batch may be written again.
"""

import argparse
import contextlib
import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyspark_jms.functions import jms_text

EUROPE = ("AT", "DE", "ES", "FR", "IT", "NL", "PL")

REPORTS = "spark.sql.streaming.numRecentProgressUpdates"


def main() -> None:
    job = arguments()
    access = {
        "brokerUrl": job.broker_url,
        "user": job.user,
        "passwordFile": job.password_file,  # the connector ignores options that are None
        "password": os.environ[job.password_env] if job.password_env else None,
    }
    spark = SparkSession.builder.appName(f"{job.queue} to JMS").getOrCreate()
    if job.available_now:
        spark.conf.set(REPORTS, 100_000)  # the last line counts all batches of the run
    messages = spark.readStream.format("jms").options(**access, queue=job.queue)
    orders = routed(messages.option("maxMessagesPerTrigger", job.max_messages).load(), job.queue)
    sink = orders.writeStream.format("jms").options(**access).option("checkpointLocation", job.checkpoint)
    sink = sink.trigger(availableNow=True) if job.available_now else sink.trigger(processingTime=job.trigger)
    query = sink.start()
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C also stops Spark; unread messages go back to the queue
        query.awaitTermination()
        batches = [each.numInputRows for each in query.recentProgress if each.numInputRows]
        print(f"messages: {sum(batches):,}, batches: {len(batches):,}, sent from {job.queue}")


def routed(messages: DataFrame, queue: str) -> DataFrame:
    """The received rows with the property `total` and the column `destination`; the sink accepts all other columns."""
    order = F.from_json(jms_text(messages), "country string, quantity int, price decimal(10,2)")
    messages = messages.withColumn("order", order).withColumn("total", F.expr("order.quantity * order.price"))
    target = (
        F.when(F.col("total").isNull(), "invalid")
        .when(F.col("total") >= 1000, "review")
        .when(F.col("order.country").isin(*EUROPE), "europe")
        .otherwise("world")
    )
    with_total = F.map_concat("properties", F.create_map(F.lit("total"), F.col("total").cast("string")))
    return (
        messages.withColumn("destination", F.concat(F.lit(f"queue://{queue}."), target))
        .withColumn("properties", F.when(F.col("total").isNull(), F.col("properties")).otherwise(with_total))
        .drop("order", "total")
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Add the total to the orders of a JMS queue and route them by content."
    )
    add = parser.add_argument
    add(
        "--broker-url", required=True, metavar="URL", help="stomp://HOST:61613, amqp://HOST:5672; TLS: stomp+ssl, amqps"
    )
    add("--user")
    password = parser.add_mutually_exclusive_group()
    password.add_argument("--password-file", metavar="FILE", help="file that contains the password")
    password.add_argument("--password-env", metavar="NAME", help="environment variable that contains the password")
    add("--queue", required=True, help="queue to read; the job writes to QUEUE.europe and so on")
    add("--checkpoint", required=True, metavar="DIR", help="checkpoint folder of Spark; each job needs its own")
    add("--max-messages", type=int, metavar="N", help="maximum number of messages in a batch")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--available-now", action="store_true", help="route the messages on the queue, then end")
    when.add_argument("--trigger", metavar="TIME", default="0 seconds", help="time between batches: '10 seconds'")
    return parser.parse_args()


if __name__ == "__main__":
    main()
