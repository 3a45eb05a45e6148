"""What a read of a stream keeps of what comes, and its offsets. With a broker: tests/brokers/test_streams.py."""

import pytest
from numpy import array

from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.errors import IllegalStateError
from pyspark_jms.jms.model import Destination
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.stores.log import _Log, _parsed
from pyspark_jms.spark.metrics import metrics_of
from pyspark_jms.spark.protocols import query_of, reading_of


def taken(*offsets):
    ends = index_of(array([3 * (index + 1) for index in range(len(offsets))]))
    return [(MessageBlock(b"abc" * len(offsets), ends=ends), list(offsets))]


def log():
    return _Log(0, Destination.parse("queue://s"))


def test_what_came_moves_the_position_also_over_gaps():
    one = log()
    assert one.receive([*taken(4, 5), *taken(9)]) == 3
    assert (one.position, [piece.last.offset for piece in one.waiting]) == (10, [5, 9])
    first, rest = one.waiting[0].split(1)
    assert (first.last.offset, rest.last.offset) == (4, 5)


def test_a_gap_is_known_after_the_first_message_only():
    one = log()
    assert not one.has_gap(taken(7))
    one.receive(taken(7))
    assert not one.has_gap(taken(8))
    assert not one.has_gap([])
    assert one.has_gap(taken(9))


def test_available_now_keeps_nothing_that_was_sent_after_its_start():
    one = log()
    one.target = 6
    assert not one.has_ended
    one.receive(taken(4, 5, 6, 7))
    assert one.has_ended
    assert [len(piece.range_) for piece in one.waiting] == [2]
    one.receive(taken(8))
    assert len(one.waiting) == 1


def test_an_empty_stream_has_ended_and_one_that_is_read_on_has_no_end():
    one = log()
    assert not one.has_ended
    one.target = 0
    assert one.has_ended


def test_the_progress_has_metrics_for_the_listener():
    options = SourceOptions.parse({"brokerUrl": "amqp://host:1", "queue": "s", "streamOffset": "first"})
    source = query_of(reading_of(options))
    try:
        source.store._logs[0].receive(taken(4, 5))
        progress = {"id": "i", "runId": "r", "timestamp": "2026-11-24T07:20:35.188Z", "batchId": 2}
        (metrics,) = metrics_of(progress | {"sources": [{"latestOffset": source.progress()}]})
    finally:
        source.stop()
    assert (metrics.sequence, metrics.in_flight_messages, metrics.in_flight_bytes, metrics.lag) == (0, 2, 6, 2)
    assert (metrics.received, metrics.guarantee) == (0, "exactly-once into Spark")


@pytest.mark.parametrize("offset", [{}, {"seq": 1}, {"cuts": []}, {"seq": "x", "positions": {}}])
def test_the_offset_of_another_way_to_read_is_refused(offset):
    with pytest.raises(IllegalStateError, match="streamOffset cannot be added"):
        _parsed(offset)
    assert _parsed({"seq": 3, "positions": {"queue://s": 7}, "from": {}}) == (3, {"queue://s": 7})
