from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.delivery.message_range import Batch, MessageRange
from pyspark_jms.source.batches import received_partitions
from pyspark_jms.stomp.wire.scan import FrameScanner

ORIGINS = [("queue://a", "artemis"), ("queue://b", "artemis")]


def block_of(sizes):
    scanner = FrameScanner(max_body_bytes=1 << 20)
    for n, size in enumerate(sizes):
        scanner.feed(b"MESSAGE\nmessage-id:9,%d\ncontent-length:%d\n\n%s\0\n" % (n, size, b"x" * size))
    return scanner.take()


@given(st.lists(st.lists(st.integers(0, 900), min_size=1, max_size=9), min_size=1, max_size=4), st.integers(1, 4000))
def test_partitions_hold_every_message_once_in_order_within_their_bytes(blocks, partition_bytes):
    spans, count = [], 0
    for lane, sizes in enumerate(blocks):
        spans.append(MessageRange(lane % 2, block_of(sizes), 0, len(sizes)))
        count += len(sizes)
    tasks = list(received_partitions(Batch(100, 100 + count, tuple(spans)), ORIGINS, partition_bytes, None))
    assert all(tasks)
    at = 100
    for task in tasks:
        for part in task:
            assert part.first_sequence == at
            at += len(part)
        assert sum(len(part.place.data) for part in task) <= partition_bytes or sum(map(len, task)) == 1
    assert at == 100 + count
