r"""Read requests from a queue and send each answer to the request's JMSReplyTo: a price service.

    export JMS_PASSWORD=artemis
    spark-submit jobs/jms_request_reply.py --broker-url stomp://localhost:61613 --user artemis \
        --password-env JMS_PASSWORD --queue prices --checkpoint out/checkpoint

A request is JSON, as text or UTF-8 bytes: {"quantity": 3, "price": 4.5}. Its answer is {"total":13.50} or
{"error":"..."}. The answer has the request's JMSCorrelationID, or its JMSMessageID if the correlation id is missing.
Artemis does not show message ids over STOMP: a requester must set JMSCorrelationID, or use a reply queue of its own.

If a request has no JMSReplyTo, or one that --reply-to does not allow, its answer goes to QUEUE.answers. Otherwise the
broker could refuse the answer, and one invalid request would stop the service. After a crash the answers of a batch may
be sent again.
"""

import argparse
import contextlib
import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyspark_jms.functions import jms_text

REQUEST = "quantity int, price decimal(10,2)"
ANSWER = """
    CASE WHEN request.quantity * request.price IS NOT NULL
         THEN to_json(named_struct('total', request.quantity * request.price))
         ELSE '{"error":"a request is JSON with quantity and price"}' END
"""
ADDRESSES = r"(temp-)?(queue|topic)://[\w.:/$-]+"


def main() -> None:
    job = arguments()
    access = {
        "brokerUrl": job.broker_url,
        "user": job.user,
        "passwordFile": job.password_file,  # the connector ignores options that are None
        "password": os.environ[job.password_env] if job.password_env else None,
    }
    spark = SparkSession.builder.appName(f"answers to {job.queue}").getOrCreate()
    requests = spark.readStream.format("jms").options(**access, queue=job.queue)
    answers = answered(requests.option("maxMessagesPerTrigger", job.max_messages).load(), job.reply_to)
    answers = answers.withColumn("time_to_live", F.lit(1000 * job.time_to_live))
    sink = answers.writeStream.format("jms").options(**access, queue=job.answers or f"{job.queue}.answers")
    sink = sink.option("checkpointLocation", job.checkpoint)
    sink = sink.trigger(availableNow=True) if job.available_now else sink.trigger(processingTime=job.trigger)
    query = sink.start()
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C also stops Spark; unread requests go back to the queue
        query.awaitTermination()


def answered(requests: DataFrame, allowed: str) -> DataFrame:
    """One row for each request: the answer, its destination and the correlation id."""
    reply_to = F.col("JMSReplyTo")
    return requests.withColumn("request", F.from_json(jms_text(requests), REQUEST)).select(
        F.when(reply_to.rlike(rf"\A({allowed})\z"), reply_to).alias("destination"),  # null: the sink's default queue
        F.coalesce("JMSCorrelationID", "JMSMessageID").alias("JMSCorrelationID"),
        F.expr(ANSWER).alias("text"),
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Send an answer to the JMSReplyTo of each request in a JMS queue.")
    add = parser.add_argument
    add(
        "--broker-url", required=True, metavar="URL", help="stomp://HOST:61613, amqp://HOST:5672; TLS: stomp+ssl, amqps"
    )
    add("--user")
    password = parser.add_mutually_exclusive_group()
    password.add_argument("--password-file", metavar="FILE", help="file that contains the password")
    password.add_argument("--password-env", metavar="NAME", help="environment variable that contains the password")
    add("--queue", required=True, help="queue to read")
    add("--reply-to", metavar="REGEX", default=ADDRESSES, help="allowed values of JMSReplyTo (default: %(default)s)")
    add("--answers", metavar="NAME", help="queue for all other answers (default: QUEUE.answers)")
    add("--time-to-live", type=int, default=600, metavar="SECONDS", help="until an unread answer expires (%(default)s)")
    add("--checkpoint", required=True, metavar="DIR", help="checkpoint folder of Spark; each job needs its own")
    add("--max-messages", type=int, metavar="N", help="maximum number of requests in a batch")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--available-now", action="store_true", help="answer the requests on the queue, then end")
    when.add_argument("--trigger", metavar="TIME", default="0 seconds", help="time between batches: '10 seconds'")
    return parser.parse_args()


if __name__ == "__main__":
    main()
