"""A user's program, for an environment that has pyspark-jms and nothing of these tests.

    python session.py [--connect=REMOTE] [--register] URL USER PASSWORD QUEUE

Numbers go to QUEUE by a batch, from there to QUEUE.copies by one stream and to QUEUE.again by another one.
"""

import argparse
import importlib.util
import tempfile

from pyspark.sql import SparkSession

NUMBERS = 500


def main():
    options = arguments()
    spark = (
        SparkSession.builder.remote(options.connect).getOrCreate()
        if options.connect
        else SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    if options.register:
        import pyspark_jms

        spark.dataSource.register(pyspark_jms.DefaultSource)
    access = {"brokerUrl": options.url, "user": options.user, "password": options.password}
    numbers = spark.range(NUMBERS).selectExpr("string(id) AS text")
    numbers.write.format("jms").mode("append").options(**access, queue=options.queue).save()
    peek = spark.read.format("jms").options(**access, queue=options.queue, maxMessagesPerTrigger=10).load()
    assert peek.count() == 10

    def again(batch, _):
        batch.write.format("jms").mode("append").options(**access, queue=f"{options.queue}.again").save()

    copies = messages(spark, access, options.queue).writeStream.format("jms").options(**access)
    finish(copies.option("queue", f"{options.queue}.copies"))
    finish(messages(spark, access, f"{options.queue}.copies").writeStream.foreachBatch(again))
    print("Spark", spark.version, "Connect" if options.connect else "")  # noqa: T201 - a program of its own
    spark.stop()


def messages(spark, access, queue):
    return spark.readStream.format("jms").options(**access, queue=queue).load().select("text", "properties")


def finish(writer):
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = writer.option("checkpointLocation", checkpoint)
        if importlib.util.find_spec("pyspark.sql.streaming.datasource"):
            query = writer.trigger(availableNow=True).start()
        else:  # AvailableNow of earlier releases is one batch
            query = writer.start()
            query.processAllAvailable()
            query.stop()
        assert query.awaitTermination(150), "the query did not end"
        assert query.exception() is None, query.exception()


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--connect")
    parser.add_argument("--register", action="store_true")
    for name in ("url", "user", "password", "queue"):
        parser.add_argument(name)
    return parser.parse_args()


if __name__ == "__main__":
    main()
