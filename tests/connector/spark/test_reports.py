import subprocess
import sys

import pytest

from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.tasks import Sent, TaskResult
from pyspark_jms.spark.reports import TaskReport, finish

NOWHERE = {"brokerUrl": "amqp://127.0.0.1:1", "queue": "q", "deliveryGuarantee": "exactly-once"}


def test_the_driver_counts_what_was_dropped_and_does_not_connect_for_at_least_once_writes(caplog):
    reports = [TaskReport(TaskResult(Sent(3, 1))), None, TaskReport(TaskResult(Sent(1)))]
    finish(SinkOptions.parse(NOWHERE), "batch 2", reports)
    assert [record.message for record in caplog.records] == ["= batch 2: 1 of 5 rows were dropped (onBadRow=drop)"]


PLAN_AND_FINISH = """
import pickle, sys
from pyspark.sql.types import StringType, StructField, StructType
from pyspark_jms.spark.source import JmsDataSource
from pyspark_jms.spark.reports import TaskReport
from pyspark_jms.sink.tasks import Sent, TaskResult
source = JmsDataSource({"brokerUrl": "PROTOCOL://127.0.0.1:1", "queue": "q"})
writer = source.WRITER(StructType([StructField("text", StringType())]), False)
reports = pickle.loads(pickle.dumps([TaskReport(TaskResult(Sent(1)))]))
pickle.loads(pickle.dumps(writer)).commit(reports, *ARGUMENTS)
links = ("pyspark_jms.stomp.link", "pyspark_jms.amqp.link", "pyspark_jms.source.stream", "pyspark_jms.columns.strings")
print(sorted({"pandas", *links} & set(sys.modules)))
"""


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
@pytest.mark.parametrize(("writer", "arguments"), [("streamWriter", "[1]"), ("writer", "[]")])
def test_planning_a_write_and_its_commit_import_neither_pandas_nor_a_protocol(protocol, writer, arguments):
    """Spark does both in processes of their own, which it ends after an idle minute."""
    program = PLAN_AND_FINISH.replace("PROTOCOL", protocol).replace("WRITER", writer).replace("ARGUMENTS", arguments)
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == "[]\n"
