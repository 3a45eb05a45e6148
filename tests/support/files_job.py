"""A query from a queue to files that tests kill, and its next run, which ends.

    python files_job.py OPTIONS FOLDER

runs it until it is killed. The checkpoint and the files (``out``) are in FOLDER.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from own_process import started
from streaming import run_available


def running(options, folder):
    return started([sys.executable, __file__, json.dumps(options), str(folder)], folder / "job.log")


def read_on(spark, options, folder):
    """Read until the queue is empty. Returns number -> how often it is in the files, by the log of the file sink."""
    query = run_available(_rows(spark, options), folder / "checkpoint", "parquet", path=str(folder / "out"))
    assert sum(progress.numInputRows for progress in query.recentProgress), "nothing was left to be read"
    read = spark.read.parquet(str(folder / "out"))
    return Counter(int(row.n) for row in read.select("n").toLocalIterator())


def start(spark, options, folder):
    writer = _rows(spark, options).writeStream.format("parquet").option("path", str(folder / "out"))
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def _rows(spark, options):
    return spark.readStream.format("jms").options(**options).load().selectExpr("properties.n n", "text")


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    OPTIONS, FOLDER = json.loads(sys.argv[1]), Path(sys.argv[2])
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.warehouse.dir", str(FOLDER / "warehouse")).getOrCreate()
    start(session, OPTIONS, FOLDER).awaitTermination()
