"""Rows from queue to queue exactly once, as ``tests/formats`` writes them with one release and reads them with others.

A batch has two partitions.
"""

from streaming import access, run_available

TO_QUEUE = "copies"


def texts(first, end):
    return [f"text {number}".ljust(400, ".") for number in range(first, end)]


def read_once(spark, broker, **options):
    once = {"deliveryGuarantee": "exactly-once", "queue": "orders", "readers": "2"}
    return spark.readStream.format("jms").options(**access(broker, "amqp") | once | options).load()


def write_once(rows, broker, folder):
    target = access(broker, "amqp") | {"queue": TO_QUEUE, "deliveryGuarantee": "exactly-once"}
    return run_available(rows, folder / "checkpoint", "jms", **target)


def write_daily(spark, broker, count):
    """Run ``daily`` of a job with ``count`` rows."""
    rows = spark.range(0, count, 1, 2).selectExpr("concat('text ', id) AS text")
    target = access(broker, "amqp") | {"queue": TO_QUEUE, "deliveryGuarantee": "exactly-once"}
    rows.write.format("jms").mode("append").options(**target, writeId="job:nightly/daily").save()
