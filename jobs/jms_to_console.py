r"""Messages of a queue on the console, a table a batch: the first thing to try on a queue of your own.

    export JMS_PASSWORD=artemis
    spark-submit jobs/jms_to_console.py --broker-url stomp://localhost:61613 --user artemis \
        --password-env JMS_PASSWORD --queue orders

It consumes: what was shown is acknowledged and gone from the queue. Stop it with Ctrl-C or SIGTERM.
"""

import argparse
import contextlib

from pyspark.sql import SparkSession

COLUMNS = ("sequence", "JMSTimestamp", "JMSType", "JMSCorrelationID", "properties", "body_type", "text")


def main() -> None:
    job = arguments()
    spark = SparkSession.builder.appName(f"{job.queue} to console").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    messages = (
        spark.readStream.format("jms")
        .option("brokerUrl", job.broker_url)
        .option("user", job.user)
        .option("passwordFile", job.password_file)  # an option that is None counts as not given
        .option("passwordEnv", job.password_env)
        .option("queue", job.queue)
        .option("maxMessagesPerTrigger", job.max_messages)
        .load()
    )
    console = messages.select(*COLUMNS).writeStream.format("console").option("truncate", "false")
    if job.checkpoint:
        console = console.option("checkpointLocation", job.checkpoint)
    console = console.trigger(availableNow=True) if job.available_now else console.trigger(processingTime=job.trigger)
    query = console.start()
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C: Spark stops too, and gives back what was not shown
        query.awaitTermination()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Show the messages of a JMS queue on the console, consuming them.")
    add = parser.add_argument
    add("--broker-url", required=True, metavar="URL", help="stomp://HOST:61613 or stomp+ssl://HOST:61614")
    add("--user")
    password = parser.add_mutually_exclusive_group()
    password.add_argument("--password-file", metavar="FILE", help="a file that holds the password")
    password.add_argument("--password-env", metavar="NAME", help="an environment variable that holds it")
    add("--queue", required=True, help="the queue to read")
    add("--checkpoint", metavar="DIR", help="where Spark keeps its place; without one, sequence begins at 0 again")
    add("--max-messages", type=int, metavar="N", help="at most so many messages in a table")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--available-now", action="store_true", help="show what is there, then end")
    when.add_argument("--trigger", metavar="TIME", default="0 seconds", help="a table every TIME: '10 seconds'")
    return parser.parse_args()


if __name__ == "__main__":
    main()
