r"""Messages of a queue on the console: the first thing to try on a queue of your own.

    export JMS_PASSWORD=artemis
    spark-submit jobs/jms_to_console.py --broker-url stomp://localhost:61613 --user artemis \
        --password-env JMS_PASSWORD --queue orders --peek

With --peek it looks at the first messages and removes none. Without it, it consumes: a table for each batch, with every
message of the batch; what was shown is acknowledged and gone from the queue. Stop it with Ctrl-C or SIGTERM.
"""

import argparse
import contextlib

from pyspark.sql import Column, SparkSession

from pyspark_jms.functions import jms_text

HEADERS = ("sequence", "JMSTimestamp", "JMSType", "JMSCorrelationID", "properties", "body_type")


def main() -> None:
    job = arguments()
    access = {
        "brokerUrl": job.broker_url,
        "user": job.user,
        "passwordFile": job.password_file,  # an option that is None counts as not given
        "passwordEnv": job.password_env,
        "queue": job.queue,
    }
    spark = SparkSession.builder.appName(f"{job.queue} to console").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if job.peek:
        rows = spark.read.format("jms").options(**access, maxMessages=job.max_messages).load()
        rows.select(*shown()).show(job.max_messages, truncate=False)
        return
    messages = spark.readStream.format("jms").options(**access, maxMessagesPerTrigger=job.max_messages).load()
    console = messages.select(*shown()).writeStream.format("console").option("truncate", "false")
    console = console.option("numRows", job.max_messages)  # Spark shows 20 of a batch unless it is told otherwise
    if job.checkpoint:
        console = console.option("checkpointLocation", job.checkpoint)
    console = console.trigger(availableNow=True) if job.available_now else console.trigger(processingTime=job.trigger)
    query = console.start()
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C: Spark stops too, and gives back what was not shown
        query.awaitTermination()


def shown() -> list[str | Column]:
    return [*HEADERS, jms_text()]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Show the messages of a JMS queue on the console.")
    add = parser.add_argument
    add("--broker-url", required=True, metavar="URL", help="stomp://HOST:61613 or stomp+ssl://HOST:61614")
    add("--user")
    password = parser.add_mutually_exclusive_group()
    password.add_argument("--password-file", metavar="FILE", help="a file that holds the password")
    password.add_argument("--password-env", metavar="NAME", help="an environment variable that holds it")
    add("--queue", required=True, help="the queue to read")
    add("--peek", action="store_true", help="look at the first messages, once; none is removed from the queue")
    add("--checkpoint", metavar="DIR", help="where Spark keeps its place; without one, sequence begins at 0 again")
    shown = "at most so many messages in a table; all of them are shown (default: %(default)s)"
    add("--max-messages", type=int, metavar="N", default=100, help=shown)
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--available-now", action="store_true", help="show what is there, then end")
    when.add_argument("--trigger", metavar="TIME", default="0 seconds", help="a table every TIME: '10 seconds'")
    return parser.parse_args()


if __name__ == "__main__":
    main()
