r"""Write the messages of a queue to Parquet files.

    export JMS_PASSWORD=artemis
    spark-submit jobs/jms_to_parquet.py --broker-url stomp://localhost:61613 --user artemis \
        --password-env JMS_PASSWORD --queue orders --output out/orders --checkpoint out/checkpoint --available-now

A message is acknowledged after its batch is written. A crash loses no message and may repeat the messages of the last
batch. The repeated rows have the same delivery_id.

Keep checkpoint and output together. Spark's file sink skips every batch whose number is in OUTPUT/_spark_metadata. A
new checkpoint starts at batch 0 again, so its messages would be acknowledged and never written. The job refuses to
start in this case.
"""

import argparse
import contextlib
import os
import sys
from typing import Any

from pyspark.sql import SparkSession

REPORTS = "spark.sql.streaming.numRecentProgressUpdates"


def main() -> None:
    job = arguments()
    spark = SparkSession.builder.appName(f"{job.queue} to parquet").getOrCreate()
    if job.available_now:
        spark.conf.set(REPORTS, 100_000)  # the last line counts all batches of the run
    if exists(spark, f"{job.output}/_spark_metadata") and not exists(spark, f"{job.checkpoint}/metadata"):
        sys.exit(
            f"{job.output} was written with another checkpoint than {job.checkpoint}. Spark would skip batches, and"
            " their messages would be lost. Restore the checkpoint, or name a new output folder."
        )
    messages = (
        spark.readStream.format("jms")
        .option("brokerUrl", job.broker_url)
        .option("user", job.user)
        .option("passwordFile", job.password_file)  # the connector ignores options that are None
        .option("password", os.environ[job.password_env] if job.password_env else None)
        .option("queue", job.queue)
        .option("maxMessagesPerTrigger", job.max_messages)
        .load()
    )
    files = messages.writeStream.format("parquet").option("path", job.output)
    files = files.option("checkpointLocation", job.checkpoint)
    files = files.trigger(availableNow=True) if job.available_now else files.trigger(processingTime=job.trigger)
    query = files.start()
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C also stops Spark; unread messages go back to the queue
        query.awaitTermination()
        batches = [each.numInputRows for each in query.recentProgress if each.numInputRows]
        print(f"messages: {sum(batches):,}, batches: {len(batches):,}, written to {job.output}")


def exists(spark: SparkSession, name: str) -> bool:
    """Whether the path exists on the file system of its URI, as Spark sees it."""
    java: Any = spark._jvm  # noqa: SLF001  # Spark has no public API for this in Python
    path = java.org.apache.hadoop.fs.Path(name)
    return bool(path.getFileSystem(spark._jsc.hadoopConfiguration()).exists(path))  # noqa: SLF001


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Write the messages of a JMS queue to Parquet files.")
    add = parser.add_argument
    add(
        "--broker-url", required=True, metavar="URL", help="stomp://HOST:61613, amqp://HOST:5672; TLS: stomp+ssl, amqps"
    )
    add("--user")
    password = parser.add_mutually_exclusive_group()
    password.add_argument("--password-file", metavar="FILE", help="file that contains the password")
    password.add_argument("--password-env", metavar="NAME", help="environment variable that contains the password")
    add("--queue", required=True, help="queue to read")
    add("--output", required=True, metavar="DIR", help="output folder of the Parquet files")
    add("--checkpoint", required=True, metavar="DIR", help="checkpoint folder of Spark; each job needs its own")
    add("--max-messages", type=int, metavar="N", help="maximum number of messages in a batch")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--available-now", action="store_true", help="write the messages on the queue, then end")
    when.add_argument("--trigger", metavar="TIME", default="0 seconds", help="time between batches: '10 seconds'")
    return parser.parse_args()


if __name__ == "__main__":
    main()
