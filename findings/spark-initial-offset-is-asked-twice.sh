#!/usr/bin/env bash
# Believed: Spark asks a Python data source for its initial offset once, for the first batch of a new checkpoint, and the batch
#   begins at the offset from which it was planned.
# So (PySpark 4.3.0): it asks twice. The first answer is given to latestOffset, the second one, when the end of the batch is
#   known, is where the batch begins. A reader that resolves "from now on" at each question skips what came between, and
#   none of the offsets in the checkpoint shows it.
# Why it matters here: a source of messages that looks at its queue or its journal to answer finds its own first batch there.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet 'pyspark==4.3.0' 'pyarrow==22.0.0'

cat > twice.py <<'PY'
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

CALLS = Path("calls").absolute()


def told(line):
    with CALLS.open("a") as calls:
        print(line, file=calls)


class Numbers(DataSource):
    @classmethod
    def name(cls):
        return "numbers"

    def schema(self):
        return "n INT"

    def streamReader(self, schema):
        return Reader()


class Part(InputPartition):
    pass


class Reader(DataSourceStreamReader):
    now = 0

    def initialOffset(self):
        Reader.now += 5  # what has come until now
        told(f"initialOffset {Reader.now}")
        return {"n": Reader.now}

    def latestOffset(self, start=None, limit=None):
        end = max(start["n"], 20)
        if start["n"] < 20:
            told(f"latestOffset from {start['n']} to {end}")
        return {"n": end}

    def partitions(self, start, end):
        told(f"partitions from {start['n']} to {end['n']}")
        return [Part((start["n"], end["n"]))]

    def read(self, partition):
        yield from ((n,) for n in range(*partition.value))


def show(batch, number):
    told(f"batch {number}: {batch.count()} rows")


spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.dataSource.register(Numbers)
query = spark.readStream.format("numbers").load().writeStream.foreachBatch(show).option("checkpointLocation", "checkpoint").start()
query.processAllAvailable()
query.stop()
offsets = Path("checkpoint/offsets/0").read_text().splitlines()
told(f"offsets in the log of batch 0: {offsets[-1]}")
PY
PYSPARK_PYTHON=$PWD/venv/bin/python timeout 300 venv/bin/python twice.py > log 2>&1 || { tail -20 log; exit 1; }
cat calls

diff - calls <<'OUT'
initialOffset 5
latestOffset from 5 to 20
initialOffset 10
partitions from 10 to 20
batch 0: 10 rows
offsets in the log of batch 0: {"n": 20}
OUT
echo "as stated"
