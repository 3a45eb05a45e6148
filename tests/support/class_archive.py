"""Archives the classes of a Spark job. A driver that maps the archive starts with half the CPU time.

    python tests/support/class_archive.py .venv/spark.jsa

Tests start some dozens of drivers. Java's own means (class data sharing, JEP 350); a Java that cannot use the archive
starts as it always did.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_FILE = Path(sys.prefix) / "spark.jsa"
_SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Drivers of tests live for minutes, in which Java's second compiler takes half of the CPU time.

Measured without the archive: 10 s instead of 22 s of CPU time for a start, 22 s instead of 37 s for 27 small batches.
"""


def environment():
    """The environment with which Spark needs less CPU time. It has the archive, if there is one."""
    archive = f" -XX:SharedArchiveFile={_FILE} {_QUIET}" if _FILE.exists() else ""
    return {"SPARK_SUBMIT_OPTS": _SMALL + archive}


def make(file):
    from pyspark_jms.testing import EmbeddedArtemis

    file.unlink(missing_ok=True)
    submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]"]
    options = f"-XX:ArchiveClassesAtExit={file} {_QUIET}"
    with EmbeddedArtemis() as broker, tempfile.TemporaryFile() as log:
        done = subprocess.run(
            [*submit, "--conf", "spark.ui.enabled=false", __file__, "--job", broker.url, broker.user, broker.password],
            env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_SUBMIT_OPTS": options},
            stdout=log,
            stderr=log,
            timeout=600,
            check=False,
        )
        if done.returncode:
            log.seek(0)
            sys.exit(f"The job failed:\n{log.read().decode(errors='replace')[-4000:]}")


def job(url, user, password):
    """A typical job of the tests, from queues or files to queues or files."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    access = {"brokerUrl": url, "user": user, "password": password}
    rows = spark.range(100).selectExpr("CAST(id AS STRING) text")
    rows.write.format("jms").mode("append").options(**access, queue="in").save()
    with tempfile.TemporaryDirectory() as folder:

        def run(stream, sink, trigger, **options):
            checkpoint = tempfile.mkdtemp(dir=folder)
            writer = stream.writeStream.format(sink).options(**options, checkpointLocation=checkpoint)
            query = writer.trigger(**trigger).start()
            query.processAllAvailable()
            query.stop()

        queue = spark.readStream.format("jms").options(**access, queue="in").load()
        run(queue, "parquet", {"availableNow": True}, path=f"{folder}/out")
        stored = spark.read.parquet(f"{folder}/out")
        stored.count()
        files = spark.readStream.schema(stored.schema).parquet(f"{folder}/out")
        run(files, "jms", {"availableNow": True}, **access, queue="in")
        run(queue, "jms", {"processingTime": "0 seconds"}, **access, queue="out")
    spark.stop()


if __name__ == "__main__":
    if sys.argv[1] == "--job":
        job(*sys.argv[2:])
    else:
        make(Path(sys.argv[1]).absolute())
