"""What a read of a stream keeps of what comes. With a broker: tests/brokers/test_streams.py."""

from numpy import array

from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.delivery.message_range import Bounds
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.source.stores.one_log import Log

OPTIONS = SourceOptions.parse({"brokerUrl": "amqp://host:1", "queue": "s", "streamOffset": "first"})


def taken(*offsets):
    ends = index_of(array([3 * (index + 1) for index in range(len(offsets))]))
    return [(MessageBlock(b"abc" * len(offsets), ends=ends), list(offsets))]


def log():
    return Log(0, OPTIONS, StateCondition(), StopRequest())


def test_what_came_moves_the_position_also_over_gaps():
    one = log()
    assert one.keep([*taken(4, 5), *taken(9)]) == 3
    pieces = one.waiting.take(Bounds(None, None))
    assert (one.position, [piece.last_message.offset for piece in pieces]) == (10, [5, 9])
    first, rest = pieces[0].split(1)
    assert (first.last_message.offset, rest.last_message.offset) == (4, 5)


def test_a_gap_is_known_after_the_first_message_only():
    one = log()
    assert one.gap_in(taken(7)) is None
    one.keep(taken(7))
    assert one.gap_in(taken(8)) is None
    assert one.gap_in([]) is None
    assert one.gap_in(taken(9)) == range(8, 9)
    assert one.gap_in([*taken(8, 9), *taken(20)]) == one.gap_in(taken(8, 9, 20, 30)) == range(10, 20)


def test_available_now_keeps_nothing_that_was_sent_after_its_start():
    one = log()
    one.target = 6
    assert not one.has_ended
    one.keep(taken(4, 5, 6, 7))
    assert one.has_ended
    assert one.waiting.messages == 2
    one.keep(taken(8))
    assert one.waiting.messages == 2


def test_an_empty_stream_has_ended_and_one_that_is_read_on_has_no_end():
    one = log()
    assert not one.has_ended
    one.target = 0
    assert one.has_ended
