"""Rows from queue to queue exactly once, as ``tests/formats`` writes them with one release and reads them with others.

A batch of three messages has several partitions.
"""

from streaming import access, run_available

TO_QUEUE = "copies"


def texts(first, end):
    return [f"text {number}".ljust(400, ".") for number in range(first, end)]


def broker_access(broker, protocol):
    return access(broker) | {"brokerUrl": broker.amqp_url if protocol == "amqp" else broker.url}


def read_once(spark, broker, folder, protocol, **options):
    """The staging queue over AMQP, a journal in ``folder`` over STOMP."""
    once = {"deliveryGuarantee": "exactly-once"} if protocol == "amqp" else {"journalLocation": str(folder / "journal")}
    given = broker_access(broker, protocol) | once | {"queue": "orders", "partitionBytes": "1k"} | options
    return spark.readStream.format("jms").options(**given).load()


def write_once(rows, broker, folder, protocol):
    target = broker_access(broker, protocol) | {"queue": TO_QUEUE, "deliveryGuarantee": "exactly-once"}
    return run_available(rows, folder / "checkpoint", "jms", **target)


def write_daily(spark, broker, protocol, count):
    """A batch write with ``count`` rows and the ``writeId`` daily."""
    rows = spark.range(0, count, 1, 2).selectExpr("concat('text ', id) AS text")
    target = broker_access(broker, protocol) | {"queue": TO_QUEUE, "deliveryGuarantee": "exactly-once"}
    rows.write.format("jms").mode("append").options(**target, writeId="daily").save()
