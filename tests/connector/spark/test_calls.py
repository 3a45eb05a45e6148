import logging
import subprocess
import sys
import traceback

import pyarrow as pa
import pytest

from pyspark_jms.errors import IllegalStateError, JMSError, OptionError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.spark.batch_reader import JmsPeek
from pyspark_jms.spark.calls import short_traceback, short_traceback_of_rows
from pyspark_jms.spark.stream_reader import JmsStreamReader
from pyspark_jms.spark.writers import JmsBatchWriter

NOWHERE = {"brokerUrl": "stomp://127.0.0.1:1", "queue": "q"}


def frames(call):
    """How many frames of the connector Spark would print."""
    with pytest.raises(JMSError) as caught:
        call()
    return sum(
        "/connector/pyspark_jms/" in frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)
    )


def test_what_spark_calls_has_at_most_two_frames():
    stream = JmsStreamReader(SourceOptions.parse(NOWHERE, "stream"))
    assert frames(lambda: stream.latestOffset(stream.initialOffset(), None)) <= 2
    assert frames(lambda: list(JmsPeek(SourceOptions.parse(NOWHERE, "batch")).read(None))) <= 2
    rows = pa.RecordBatch.from_pydict({"text": ["a"]})
    writer = JmsBatchWriter(SinkOptions.parse(NOWHERE), overwrite=False)
    assert frames(lambda: writer.write(iter([rows]))) <= 2


@pytest.mark.parametrize(("kind", "shown"), [(OptionError, False), (IllegalStateError, True), (ValueError, True)])
def test_a_bug_keeps_its_frames_and_the_log_has_the_others(kind, shown, caplog):
    caplog.set_level(logging.DEBUG, "pyspark_jms")

    def deep():
        raise kind("It broke.", "Mend it.")

    def rows():
        yield 1
        deep()

    for call in (short_traceback(deep), lambda: list(short_traceback_of_rows(rows()))):
        caplog.clear()
        with pytest.raises(kind) as caught:
            call()
        assert ("in deep" in "".join(traceback.format_tb(caught.value.__traceback__))) is shown
        assert ("in deep" in caplog.text) is not shown


PROBE = """
import gc
from pyspark_jms.spark.calls import freeze_gc
freeze_gc()
first = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
freeze_gc()
second = gc.get_freeze_count()
import wave
freeze_gc()
print(first > 1000, second == first, gc.get_freeze_count() > second + 1000)
"""


def test_freezes_again_only_after_an_import():
    ended = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout == "True True True\n"


PLAN = """
import gc
from pyspark.sql.types import StringType, StructField, StructType
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.spark.source import JmsDataSource
from pyspark_jms.spark.writers import JmsBatchWriter
OPTIONS = {"brokerUrl": "stomp://127.0.0.1:1", "queue": "q"}
TEXT = StructType([StructField("text", StringType())])
before = gc.get_freeze_count()
CALL
print(before, gc.get_freeze_count() > 1000)
"""


@pytest.mark.parametrize(
    "call",
    [
        "JmsDataSource(OPTIONS).streamWriter(TEXT, overwrite=False)",
        "JmsDataSource(OPTIONS).writer(TEXT, overwrite=False)",
        "JmsBatchWriter(SinkOptions.parse(OPTIONS), overwrite=False).commit([])",
    ],
)
def test_a_plan_and_a_commit_of_a_write_leave_modules_out_of_collections(call):
    code = PLAN.replace("CALL", call)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "0 True\n"
