"""Reads three queues, each with one guarantee, until they are empty. For tests that change the release of Spark.

    python releases_job.py FOLDER STOMP_URL AMQP_URL USER PASSWORD QUEUE

Queues are QUEUE.MODE. The checkpoint, the journal and the files of a mode are in FOLDER/MODE.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_jms.spark.releases import HAS_ADMISSION_CONTROL

MODES = ("plain", "journal", "staged")


def main(folder, stomp, amqp, user, password, queue):
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse").getOrCreate()
    options = {
        "plain": {"brokerUrl": stomp},
        "journal": {"brokerUrl": stomp, "journalLocation": f"{folder}/journal/messages"},
        "staged": {"brokerUrl": amqp, "deliveryGuarantee": "exactly-once"},
    }
    for mode in MODES:
        access = {"user": user, "password": password, "queue": f"{queue}.{mode}", "maxMessagesPerTrigger": 40}
        frame = spark.readStream.format("jms").options(**access | options[mode]).load().selectExpr("properties.n n")
        place = Path(folder, mode)
        writer = frame.writeStream.format("parquet").option("path", str(place / "out"))
        run(writer.option("checkpointLocation", str(place / "checkpoint")))
    spark.stop()


def run(writer):
    if HAS_ADMISSION_CONTROL:
        query = writer.trigger(availableNow=True).start()
    else:
        query = writer.start()
        query.processAllAvailable()
        query.stop()
    assert query.awaitTermination(300), "the query did not end"


if __name__ == "__main__":
    main(*sys.argv[1:])
