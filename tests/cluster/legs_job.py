"""A job of legs, each a streaming query from a source to a sink: what ``tests/support/legs.py`` submits.

    spark-submit legs_job.py legs.json

The legs run one after another, or ``together``. At the end ``reported`` holds what they read.
"""

import json
import os
import sys
import time
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf


def main(order):
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    if order["register"]:
        import pyspark_jms  # a driver that leaves it to Spark need not have it

        spark.dataSource.register(pyspark_jms.DefaultSource)
    queries = []
    for leg in order["legs"]:
        queries.append(started(spark, leg))
        if not order["together"]:
            queries[-1].awaitTermination()
    for query in queries:
        query.awaitTermination()
    reported = {
        "application": spark.sparkContext.applicationId,
        "legs": [[json.loads(progress.json) for progress in query.recentProgress] for query in queries],
    }
    Path(order["reported"]).write_text(json.dumps(reported))
    spark.stop()


def started(spark, leg):
    source, sink = leg["source"], leg["sink"]
    reader = spark.readStream.format(source["format"]).options(**source["options"])
    rows = (reader.schema(source["schema"]) if "schema" in source else reader).load()
    if source["format"] == "jms":
        rows = rows.selectExpr("properties.n AS n", "text")
    if "hold" in leg:
        rows = rows.withColumn("n", held(**leg["hold"])("n"))
    rows = rows.selectExpr(*leg.get("columns", ["n", "text"]))
    writer = rows.writeStream.format(sink["format"]).options(**sink["options"])
    trigger = leg.get("trigger", {"availableNow": True})
    return writer.option("checkpointLocation", leg["checkpoint"]).trigger(**trigger).start()


def held(gate, at):
    """The number it is given; at one of them the first attempt waits for ``gate/open``. ``gate/PID``: the worker."""

    def hold(n):
        if n == at and TaskContext.get().attemptNumber() == 0 and not Path(gate, "open").exists():
            Path(gate, str(os.getpid())).touch()
            while not Path(gate, "open").exists():
                time.sleep(0.05)
        return n

    return udf(hold, "string")


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
