"""The metrics and offsets of a read of streams. With a broker: tests/brokers/test_streams.py."""

import pytest
from numpy import array
from streaming import stopping

from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.errors import IllegalStateError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.stores.log import _parsed
from pyspark_jms.spark.metrics import metrics_of
from pyspark_jms.spark.protocols import query_of, reading_of


def test_the_progress_has_metrics_for_the_listener():
    options = SourceOptions.parse({"brokerUrl": "amqp://host:1", "queue": "s", "streamOffset": "first"})
    source = query_of(reading_of(options))
    two = MessageBlock(b"abc" * 2, ends=index_of(array([3, 6])))
    with stopping(source):
        source.store._logs[0].keep([(two, [4, 5])])
        progress = {"id": "i", "runId": "r", "timestamp": "2026-11-24T07:20:35.188Z", "batchId": 2}
        (metrics,) = metrics_of(progress | {"sources": [{"latestOffset": source.progress()}]})
    assert (metrics.sequence, metrics.in_flight_messages, metrics.in_flight_bytes, metrics.lag) == (0, 2, 6, 2)
    assert (metrics.received, metrics.guarantee) == (0, "exactly-once into Spark")


@pytest.mark.parametrize("offset", [{}, {"seq": 1}, {"cuts": []}, {"seq": "x", "positions": {}}])
def test_the_offset_of_another_way_to_read_is_refused(offset):
    with pytest.raises(IllegalStateError, match="streamOffset cannot be added"):
        _parsed(offset)
    assert _parsed({"seq": 3, "positions": {"queue://s": 7}, "from": {}}) == (3, {"queue://s": 7}, {})
