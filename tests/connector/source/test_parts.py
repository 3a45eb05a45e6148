import pickle

import pytest

from pyspark_jms.blocks.part import BatchPart
from pyspark_jms.errors import BadMessageError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.parts import rows_of
from pyspark_jms.stomp.source import StompSource
from pyspark_jms.stomp.wire.scan import FrameScanner


def block_of(*bodies):
    scanner = FrameScanner(max_body_bytes=1000)
    for n, body in enumerate(bodies):
        head = f"MESSAGE\nsubscription:1\nmessage-id:9,{n}\ndestination:q\ncontent-length:{len(body)}\n\n"
        scanner.feed(head.encode() + body + b"\0\n")
    return scanner.take()


def options(**more):
    return SourceOptions.parse({"brokerUrl": "stomp://h", "queue": "q"} | more)


def rows(part, **more):
    return rows_of(part, options(**more), StompSource())


def part_of(*bodies, source="queue://q"):
    return BatchPart(source, "artemis", 0, block_of(*bodies))


def test_a_part_of_the_middle_decodes_by_itself_wherever_it_travels():
    block = block_of(b"zero", b"one", b"two", b"three").slice(1, 3)
    batch, dropped = rows(pickle.loads(pickle.dumps(BatchPart("queue://q", "artemis", 41, block))))
    assert [(row["sequence"], row["text"], row["delivery_id"]) for row in batch.to_pylist()] == [
        (41, "one", "q/1"),
        (42, "two", "q/2"),
    ]
    assert dropped == 0


def test_a_bad_message_is_a_row_or_an_error():
    part = part_of(b"\xff", b"good")
    assert rows(part)[0].column("body_error").is_null().to_pylist() == [False, True]
    with pytest.raises(BadMessageError, match=r"1 of 2 messages"):
        rows(part, onBadMessage="fail")


def test_counts_the_messages_that_the_selector_drops():
    part = part_of(b"one", b"two", source="topic://t")
    kept, dropped = rows(part, selector="JMSPriority = 4")
    assert (kept.num_rows, dropped) == (0, 2)
