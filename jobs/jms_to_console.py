r"""Show the messages of a queue on the console: a first look at your own queue.

    export JMS_PASSWORD=artemis
    spark-submit jobs/jms_to_console.py --broker-url stomp://localhost:61613 --user artemis \
        --password-env JMS_PASSWORD --queue orders --peek

With --peek the job shows the first messages, removes none, and ends. Without --peek it consumes messages: it shows a
table with every message of a batch, then acknowledges the batch, which removes the messages from the queue. Stop the
job with Ctrl-C or SIGTERM.
"""

import argparse
import contextlib
import os
import sys
from io import TextIOWrapper

from pyspark.sql import Column, SparkSession

from pyspark_jms.functions import jms_text

HEADERS = ("sequence", "JMSTimestamp", "JMSType", "JMSCorrelationID", "properties", "body_type")


def main() -> None:
    job = arguments()
    access = {
        "brokerUrl": job.broker_url,
        "user": job.user,
        "passwordFile": job.password_file,  # the connector ignores options that are None
        "password": os.environ[job.password_env] if job.password_env else None,
        "queue": job.queue,
    }
    spark = SparkSession.builder.appName(f"{job.queue} to console").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if job.peek:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # a text may have characters that the terminal has not
        rows = spark.read.format("jms").options(**access, maxMessagesPerTrigger=job.max_messages).load()
        rows.select(*shown()).show(job.max_messages, truncate=False)
        return
    messages = spark.readStream.format("jms").options(**access, maxMessagesPerTrigger=job.max_messages).load()
    console = messages.select(*shown()).writeStream.format("console").option("truncate", "false")
    console = console.option("numRows", job.max_messages)  # by default Spark shows 20 rows of a batch
    if job.checkpoint:
        console = console.option("checkpointLocation", job.checkpoint)
    console = console.trigger(availableNow=True) if job.available_now else console.trigger(processingTime=job.trigger)
    query = console.start()
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C also stops Spark; unread messages go back to the queue
        query.awaitTermination()


def shown() -> list[str | Column]:
    return [*HEADERS, jms_text()]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Show the messages of a JMS queue on the console.")
    add = parser.add_argument
    add(
        "--broker-url", required=True, metavar="URL", help="stomp://HOST:61613, amqp://HOST:5672; TLS: stomp+ssl, amqps"
    )
    add("--user")
    password = parser.add_mutually_exclusive_group()
    password.add_argument("--password-file", metavar="FILE", help="file that contains the password")
    password.add_argument("--password-env", metavar="NAME", help="environment variable that contains the password")
    add("--queue", required=True, help="queue to read")
    add("--peek", action="store_true", help="show the first messages once and remove none from the queue")
    add("--checkpoint", metavar="DIR", help="checkpoint folder of Spark; without it, sequence starts at 0 again")
    shown = "maximum number of messages in a table (default: %(default)s)"
    add("--max-messages", type=int, metavar="N", default=100, help=shown)
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--available-now", action="store_true", help="show the messages on the queue, then end")
    when.add_argument("--trigger", metavar="TIME", default="0 seconds", help="time between batches: '10 seconds'")
    return parser.parse_args()


if __name__ == "__main__":
    main()
