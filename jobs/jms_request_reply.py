r"""Requests from a queue, each answered where its JMSReplyTo says: a price service.

    export JMS_PASSWORD=artemis
    spark-submit jobs/jms_request_reply.py --broker-url stomp://localhost:61613 --user artemis \
        --password-env JMS_PASSWORD --queue prices --checkpoint out/checkpoint

A request is JSON, as text or UTF-8 bytes: {"quantity": 3, "price": 4.5}. Its answer is {"total":13.50}, or
{"error":"..."}, and has the request's JMSCorrelationID, or its JMSMessageID where it has none. Artemis does not show
a message id over STOMP: a requester sets JMSCorrelationID, or waits at a reply queue of its own. A request without a
JMSReplyTo, or with one that --reply-to does not allow, is answered to QUEUE.answers: one odd request must not stop
the service, and an answer that the broker refuses would. After a crash a batch may be answered again.
"""

import argparse
import contextlib

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyspark_jms.functions import jms_text

REQUEST = "quantity int, price decimal(10,2)"
ANSWER = """
    CASE WHEN request.quantity * request.price IS NOT NULL
         THEN to_json(named_struct('total', request.quantity * request.price))
         ELSE '{"error":"a request is JSON with quantity and price"}' END
"""
ADDRESSES = r"(queue|topic)://[\w.:/$-]+"


def main() -> None:
    job = arguments()
    access = {
        "brokerUrl": job.broker_url,
        "user": job.user,
        "passwordFile": job.password_file,  # an option that is None counts as not given
        "passwordEnv": job.password_env,
    }
    spark = SparkSession.builder.appName(f"answers to {job.queue}").getOrCreate()
    requests = spark.readStream.format("jms").options(**access, queue=job.queue)
    answers = answered(requests.option("maxMessagesPerTrigger", job.max_messages).load(), job.reply_to)
    sink = answers.writeStream.format("jms").options(**access, queue=job.answers or f"{job.queue}.answers")
    sink = sink.option("timeToLive", job.time_to_live).option("checkpointLocation", job.checkpoint)
    sink = sink.trigger(availableNow=True) if job.available_now else sink.trigger(processingTime=job.trigger)
    query = sink.start()
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C: Spark stops too, and gives back what was not answered
        query.awaitTermination()


def answered(requests: DataFrame, allowed: str) -> DataFrame:
    """A row for each request: what to say, to whom, and to which question."""
    reply_to = F.col("JMSReplyTo")
    return requests.withColumn("request", F.from_json(jms_text(requests), REQUEST)).select(
        F.when(reply_to.rlike(rf"\A({allowed})\z"), reply_to).alias("destination"),  # null: to the sink's default queue
        F.coalesce("JMSCorrelationID", "JMSMessageID").alias("JMSCorrelationID"),
        F.expr(ANSWER).alias("text"),
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Answer the requests of a JMS queue to their JMSReplyTo.")
    add = parser.add_argument
    add("--broker-url", required=True, metavar="URL", help="stomp://HOST:61613 or stomp+ssl://HOST:61614")
    add("--user")
    password = parser.add_mutually_exclusive_group()
    password.add_argument("--password-file", metavar="FILE", help="a file that holds the password")
    password.add_argument("--password-env", metavar="NAME", help="an environment variable that holds it")
    add("--queue", required=True, help="the queue to read")
    add("--reply-to", metavar="REGEX", default=ADDRESSES, help="where answers may go (default: %(default)s)")
    add("--answers", metavar="NAME", help="the queue of all other answers (default: QUEUE.answers)")
    add("--time-to-live", default="10m", metavar="TIME", help="an answer nobody fetches expires (default: %(default)s)")
    add("--checkpoint", required=True, metavar="DIR", help="where Spark keeps its place; one for each job")
    add("--max-messages", type=int, metavar="N", help="at most so many requests in a batch")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--available-now", action="store_true", help="answer what is there, then end")
    when.add_argument("--trigger", metavar="TIME", default="0 seconds", help="a batch every TIME: '10 seconds'")
    return parser.parse_args()


if __name__ == "__main__":
    main()
