import pickle
from array import array

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.partition_slice import PartitionSlice

BLOCK = MessageBlock(b"onetwo", array("q", [1, 4]), array("q", [3, 6]))


class Elsewhere:
    """A place of two messages that are not at hand."""

    def __len__(self):
        return 2

    def load(self):
        return BLOCK


def test_its_messages_may_be_elsewhere():
    part = PartitionSlice("queue://q", "artemis", 7, Elsewhere())
    assert len(part) == 2
    assert part.load() == PartitionSlice("queue://q", "artemis", 7, BLOCK)


def test_travels_and_shows_no_payload():
    part = PartitionSlice("queue://q", "artemis", 7, BLOCK.slice(1, 2))
    assert "two" not in repr(part)
    assert pickle.loads(pickle.dumps(part)).place.message(0) == b"two"
