import json
import pickle
import subprocess
import sys

import amqp_sending
import pytest
from streaming import access

from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.spark.protocols import connect_sink, reading_of
from pyspark_jms.stomp.sink import StompSinkLink
from pyspark_jms.stomp.source import StompSource

PLANNING = """
import json, sys
import pyspark.sql.streaming.python_streaming_source_runner
import pyspark_jms.spark.source, pyspark_jms.spark.stream_reader
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.spark.protocols import query_of, reading_of

query = query_of(reading_of(SourceOptions.parse(json.loads(sys.argv[1]))))
start = query.initial_offset()
end = query.latest_offset(start)
tasks = query.partitions(start, end)
query.progress()
query.stop()
heavy = [name for name in ("pandas", "pyarrow.compute", "pyspark_jms.amqp.columns") if name in sys.modules]
print(json.dumps([len(tasks), heavy]))
"""
"""What Spark's streaming source runner imports, and calls for a batch."""


@pytest.mark.broker
def test_the_driver_of_a_read_whose_tasks_receive_loads_nothing_that_only_tasks_need(broker, queue):
    amqp_sending.put(broker, queue, "a")
    options = access(broker, "amqp") | {"queue": queue, "deliveryGuarantee": "exactly-once"}
    command = [sys.executable, "-c", PLANNING, json.dumps(options)]
    planned = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(planned.stdout) == [1, []]


def test_stomp_urls_speak_stomp():
    for url in ("stomp://h", "stomp+ssl://h"):
        assert isinstance(reading_of(SourceOptions.parse({"brokerUrl": url, "queue": "q"})).protocol, StompSource)


@pytest.mark.parametrize("url", ["stomp://h:61613", "stomp+ssl://h:61614", "stomp://a:1,stomp://b:2"])
def test_every_scheme_of_today_is_stomp(url):
    options = SinkOptions.parse({"brokerUrl": url, "queue": "q"})
    assert connect_sink(options) is StompSinkLink
    assert connect_sink(pickle.loads(pickle.dumps(options))) is connect_sink(options)  # as on an executor
