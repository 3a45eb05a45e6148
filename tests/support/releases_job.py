"""Reads four queues, each in one way, until they are empty. For tests that change the release of Spark.

    python releases_job.py FOLDER STOMP_URL AMQP_URL USER PASSWORD QUEUE

Queues are QUEUE.MODE. The checkpoint, the journal and the files of a mode are in FOLDER/MODE.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from streaming import run_available

MODES = ("plain", "journal", "once")


def read_all(spark, folder, stomp, amqp, user, password, queue):
    options = {
        "plain": {"brokerUrl": stomp},
        "journal": {
            "brokerUrl": stomp,
            "deliveryGuarantee": "exactly-once",
            "journalLocation": f"{folder}/journal/messages",
        },
        "once": {"brokerUrl": amqp, "deliveryGuarantee": "exactly-once", "readers": 2},
    }
    for mode in MODES:
        access = {"user": user, "password": password, "queue": f"{queue}.{mode}", "maxMessagesPerTrigger": 40}
        frame = spark.readStream.format("jms").options(**access | options[mode]).load().selectExpr("properties.n n")
        place = Path(folder, mode)
        run_available(frame, place / "checkpoint", "parquet", path=str(place / "out"))


def main(folder, *more):
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse").getOrCreate()
    read_all(spark, folder, *more)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
