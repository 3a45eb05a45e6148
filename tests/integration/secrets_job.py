"""Run by test_secrets under spark-submit: queries that work and queries that fail; what a user sees goes to stdout."""

import json
import logging
import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyspark_jms.functions import jms_property

order = json.loads(sys.argv[1])
folder, password, payload = order["folder"], os.environ["SECRETS_PASSWORD"], os.environ["SECRETS_PAYLOAD"]
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, force=True, format="%(levelname)s %(name)s %(message)s")
logging.getLogger("py4j").setLevel(logging.WARNING)
logging.getLogger("pyspark_jms").debug("every word of ours is logged")

access = {"brokerUrl": order["url"], "user": order["user"], "password": password}
by_file = access | {"passwordFile": f"{folder}/password"}
del by_file["password"]
spark = SparkSession.builder.getOrCreate()


def read(access=access, queue="in", **options):
    return spark.readStream.format("jms").options(**access, queue=queue, idleTimeout="500ms", **options).load()


def run(stream, name, sink="parquet", **options):
    writer = stream.writeStream.format(sink).options(**options)
    if sink == "parquet":
        writer = writer.option("path", f"{folder}/{name}")
    query = writer.option("checkpointLocation", f"{folder}/checkpoints/{name}").trigger(availableNow=True).start()
    query.awaitTermination()
    query.explain(extended=True)
    show(query.lastProgress)


def show(*facts):
    sys.stdout.write(" ".join(map(str, facts)) + "\n")


def show_failure(name, do):
    try:
        do()
    except Exception as error:  # noqa: BLE001 - of whatever kind: it is searched
        show(name, error)
    else:
        sys.exit(f"{name} did not fail")


peek = spark.read.format("jms").options(**access, queue="in").load()
peek.explain("extended")
show(peek, peek.count(), peek.schema)

with_journal = read(deliveryGuarantee="exactly-once", journalLocation=f"{folder}/journal")
show(with_journal, repr(with_journal))
run(with_journal, "journal", "jms", **by_file | order["once"], queue="out")
run(read(by_file, queue="out"), "files")

rows = spark.read.parquet(f"{folder}/files")
show("files hold the payload:", {row.text for row in rows.collect()} == {payload})
sink = rows.write.format("jms").mode("append")
show_failure("a wrong password", lambda: sink.options(**access | {"password": payload}, queue="out").save())
bad_name = rows.select("text", F.create_map(F.lit("JMSName"), "text").alias("properties"))
show_failure("a bad row", lambda: bad_name.write.format("jms").mode("append").options(**access, queue="out").save())
show_failure("a conversion", lambda: rows.select(jms_property(rows, "p", "int")).collect())
show_failure("a bad message", lambda: run(read(queue="wrong", onBadMessage="fail"), "wrong"))
spark.stop()
