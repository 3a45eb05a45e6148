"""Exactly-once writes in ``foreachBatch`` on Spark Connect, which tells the function no query: named, or refused."""

import os
import sys
from pathlib import Path

import own_process
import pytest

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.deep]

JOB = """
import sys
from pyspark.sql import SparkSession
from pyspark_jms.functions import write_id

folder, url, user, password = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
options = {"brokerUrl": url, "user": user, "password": password, "queue": "answers"}
options["deliveryGuarantee"] = "exactly-once"


def started(writer):
    # Spark gives the process of a function ten seconds to start, and a busy machine may need longer.
    for _ in range(20):
        try:
            return writer.start()
        except Exception as error:
            if "connect back" not in str(error):
                raise
    sys.exit("the process of foreachBatch does not start")


def run(name, identify):
    def write(batch, number):
        rows = batch.selectExpr("value AS text").write.format("jms").options(**options)
        rows.options(writeId=identify(batch, number)).mode("append").save()
        rows.options(writeId=identify(batch, number)).mode("append").save()  # as a retry does

    rows = spark.readStream.text(f"{folder}/rows").writeStream.foreachBatch(write)
    query = started(rows.option("checkpointLocation", f"{folder}/{name}").trigger(availableNow=True))
    try:
        query.awaitTermination()
    except Exception as error:
        print(name, "stopped:", "[JMS_WRITE_IDENTITY]" in str(error), flush=True)
    else:
        print(name, "ended", flush=True)


run("a", lambda batch, number: write_id(batch, number, query="a"))
run("b", lambda batch, number: write_id(batch, number, query="b"))
run("c", lambda batch, number: f"dead-{number}")
run("d", lambda batch, number: write_id(batch, number))
spark.stop()
"""


@pytest.mark.timeout(600)
def test_a_query_is_named_or_its_write_is_refused(fresh_broker, tmp_path):
    """Four queries with the same rows: two are named, and two are not."""
    broker = fresh_broker()
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "0.txt").write_text("the same")
    (tmp_path / "job.py").write_text(JOB)
    command = [sys.executable, str(tmp_path / "job.py"), str(tmp_path), broker.amqp_url, broker.user, broker.password]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PATH": path, "SPARK_TESTING": "1"}  # a free port
    ended = own_process.run(command, seconds=550, env=environment)
    assert ended.stdout.splitlines() == ["a ended", "b ended", "c stopped: True", "d stopped: True"]
    assert broker.message_count("answers") == 2
