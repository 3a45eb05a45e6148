#!/usr/bin/env bash
# Believed: the process in which Spark commits the batches of a Python sink imports its libraries once, and then costs as much
#   as the sink's own commit does.
# So (PySpark 4.3.0): Spark keeps the process, and after each commit runs a full garbage collection in it, over all objects of
#   all imported modules; the same after each plan of a batch, in another process. With the modules of a real sink that was
#   20 ms of CPU for each of the two. A gc.freeze() after the imports makes it less than a tenth.
# Why it matters here: with a batch every 100 ms, two processes that do nothing took nearly half a core.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet 'pyspark==4.3.0' 'pyarrow==22.0.0'

cat > commits.py <<'PY'
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage

SEEN = Path("seen").absolute()
BATCHES, TRIES = 8, 5


def least(call):
    times = []
    for _ in range(TRIES):
        began = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - began)
    return min(times)


class Nothing(DataSource):
    @classmethod
    def name(cls):
        return "nothing"

    def streamWriter(self, schema, overwrite):
        return Writer()


class Writer(DataSourceStreamWriter):
    def write(self, rows):
        for _ in rows:
            pass
        return WriterCommitMessage()

    def commit(self, messages, batchId):
        import gc
        import os

        import pyarrow.compute

        found = gc.get_stats()[2]["collections"]
        took = least(gc.collect)
        if batchId == BATCHES - 1:
            gc.freeze()
        with SEEN.open("a") as seen:
            print(os.getpid(), found, took, least(gc.collect), file=seen)

    def abort(self, messages, batchId):
        pass


spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.dataSource.register(Nothing)
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
query = rows.writeStream.format("nothing").option("checkpointLocation", "checkpoint").start()
until = time.monotonic() + 120
while query.isActive and time.monotonic() < until and (not SEEN.exists() or len(SEEN.read_text().splitlines()) < BATCHES):
    time.sleep(0.1)
query.stop()
seen = [list(map(int, line.split())) for line in SEEN.read_text().splitlines()[:BATCHES]]
counts = [count for _, count, _, _ in seen]
print("batches", len(seen), "in processes", len({pid for pid, *_ in seen}))
print("full collections between two commits", sorted({b - a - 2 * TRIES for a, b in zip(counts, counts[1:])}))
_, _, before, after = seen[-1]
print("one takes with frozen modules less than a tenth:", after < before / 10)
PY
PYSPARK_PYTHON=$PWD/venv/bin/python timeout 300 venv/bin/python commits.py > out 2> log || { tail -20 log; exit 1; }
cat out

diff - out <<'OUT'
batches 8 in processes 1
full collections between two commits [1]
one takes with frozen modules less than a tenth: True
OUT
echo "as stated"
