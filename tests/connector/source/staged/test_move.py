import random

import numpy as np

from pyspark_jms.amqp.dialects import dialect_named
from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.blocks.staged import unpack
from pyspark_jms.delivery.span import Span
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.source.staged.move import Move


class Lane:
    def __init__(self, name):
        self.subscription = Subscription(destination=Destination.parse(f"queue://{name}"), window_bytes=1)


class Link:
    """A link that keeps what it is to send, as the other side reads it."""

    dialect = dialect_named("artemis")

    def __init__(self):
        self.lanes = [Lane("a"), Lane("b")]
        self.sent = []

    def send_blocks(self, blocks, *, finished):
        self.finished = finished
        self.sent += [(first, count, unpack(b"".join(packed))) for first, count, packed in blocks]


def block_of(*messages):
    ends = index_of(np.cumsum([len(each) for each in messages]))
    return MessageBlock(b"".join(messages), ends=ends, ids=[b"%04d" % number for number in range(len(messages))])


def test_messages_are_numbered_in_the_order_in_which_they_are_added():
    link, block = Link(), block_of(b"zero", b"one", b"two", b"three")
    move = Move(link, 7, finished=5)
    move.add(Span(1, block, 1, 3))
    large = random.Random(1).randbytes(90_000)
    move.add(Span(0, block_of(large, b"y"), 0, 2))
    assert [(first, count, each.source) for first, count, each in link.sent] == [
        (7, 2, "queue://b"),
        (9, 1, "queue://a"),
        (10, 1, "queue://a"),
    ]
    assert [link.sent[0][2].messages.message(index) for index in range(2)] == [b"one", b"two"]
    assert [(run.first, run.end, run.source) for run in move.runs] == [(7, 9, "queue://b"), (9, 11, "queue://a")]
    assert move.accepted == [(1, [b"0001", b"0002"]), (0, [b"0000", b"0001"])]
    assert link.finished == 5
    assert (len(move), move.first, move.end, move.size) == (4, 7, 11, 6 + 90_001)


def test_nothing_is_moved():
    assert (len(Move(Link(), 3)), Move(Link(), 3).deliveries) == (0, 0)
