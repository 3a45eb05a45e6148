"""The digest against its definition, frame by frame; what must and what must not change it; its cost."""

import hashlib
import random
import time
from itertools import accumulate, pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.send_defaults import SendDefaults
from pyspark_jms.jms.model import DeliveryMode, Destination, DestinationKind
from pyspark_jms.stomp.columns.digest import RowsDigest, counts_from_now
from pyspark_jms.stomp.columns.encode import encode
from pyspark_jms.stomp.dialects import ARTEMIS

DEFAULTS = SendDefaults(
    destination=Destination(DestinationKind.QUEUE, "q"),
    delivery_mode=DeliveryMode.PERSISTENT,
    priority=4,
    time_to_live_ms=0,
    delivery_delay_ms=0,
)
ORDERS = pa.record_batch({"text": ["one", "two", "", "two"], "JMSCorrelationID": ["a", "b", "c", "b"]})


def frames(batch, now_ms=0, defaults=DEFAULTS):
    return encode(batch, dialect=ARTEMIS, defaults=defaults, transaction="t", now_ms=now_ms, max_frame_bytes=100 << 20)


def digest(*batches):
    found = RowsDigest()
    for batch in batches:
        found.add(frames(batch))
    return found.text()


def by_definition(contents):
    """Of each frame without its NUL."""
    sums = [0] * 4
    for frame in contents:
        hashed = hashlib.sha256(frame).digest()
        for lane in range(4):
            sums[lane] += int.from_bytes(hashed[8 * lane : 8 * lane + 8], "little")
    packed = b"".join((total % 2**64).to_bytes(8, "little") for total in [*sums, len(contents)])
    return "1-" + hashlib.sha256(packed).hexdigest()[:32]


def added(contents, cuts=()):
    """The same frames in one block, or in several."""
    found = RowsDigest()
    block = MessageBlock(b"".join(frame + b"\0" for frame in contents))
    block.ends.extend(accumulate(len(frame) + 1 for frame in contents))
    found.add(block.slice(start, stop) for start, stop in pairwise([0, *sorted(cuts), len(contents)]))
    return found.text()


def frame(body, *, stated=True):
    length = b"\ncontent-length:%d" % len(body) if stated else b""
    return b"SEND\ndestination:q" + length + b"\n\n" + body


BODIES = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from([b"", b"\0", b"\0SEND\n", b"x\0SEND\n\n\0", b"\n\n", b"\ncontent-length:3\n\n", b"SEND\n"]),
    ),
    max_size=8,
)


@given(BODIES, st.lists(st.integers(0, 8), max_size=3), st.randoms(use_true_random=False))
def test_is_what_its_definition_says_whatever_the_bodies_hold(bodies, cuts, shuffle):
    contents = [frame(body) for body in bodies]
    expected = by_definition(contents)
    assert added(contents, [cut for cut in cuts if cut <= len(contents)]) == expected
    shuffle.shuffle(contents)
    assert added(contents) == expected


def test_text_frames_have_no_length():
    contents = [frame(b"one", stated=False), frame(b"", stated=False), frame(b"\0\0", stated=True)]
    assert added(contents) == by_definition(contents)


def test_is_pinned():
    """Entries of one release are read by the next: another value here needs another version."""
    assert digest(ORDERS) == "1-c6b54cd86a3991d3951ddce918bf00f1"


def test_order_and_batches_leave_no_trace():
    rows = pa.record_batch({"text": [f"row {n}" for n in range(2_000)]})
    mixed = rows.take(pa.array(random.Random(7).sample(range(2_000), 2_000)))
    assert digest(rows) == digest(mixed) == digest(mixed.slice(0, 3), mixed.slice(3, 1_000), mixed.slice(1_003))


@pytest.mark.parametrize(
    "other",
    [
        {"text": ["one", "two", "", "twO"], "JMSCorrelationID": ["a", "b", "c", "b"]},
        {"text": ["one", "two", ""], "JMSCorrelationID": ["a", "b", "c"]},  # one of two equal rows is missing
        {"text": ["two", "one", "", "two"], "JMSCorrelationID": ["a", "b", "c", "b"]},  # values between rows
        {"text": ["one", "two", None, "two"], "JMSCorrelationID": ["a", "b", None, "b"]},
        {"text": ["one", "two", "", "two"], "JMSType": ["a", "b", "c", "b"]},
    ],
)
def test_every_difference_shows(other):
    assert digest(pa.record_batch(other)) != digest(ORDERS)


def test_several_blocks_of_one_batch_are_all_counted():
    rows = pa.record_batch({"text": [f"{n:06}" + "x" * 9_000_000 for n in range(3)]})
    blocks = frames(rows)
    assert [len(block) for block in blocks] == [1, 1, 1]
    assert digest(rows) == by_definition([bytes(block.data[:-1]) for block in blocks])


@pytest.mark.parametrize(
    ("columns", "defaults", "counts"),
    [
        (["text"], {}, False),
        (["text", "JMSExpiration", "JMSDeliveryTime", "delivery_delay"], {}, False),
        (["text", "time_to_live"], {}, True),
        (["text", "Time_To_Live"], {}, True),
        (["text"], {"time_to_live_ms": 5}, True),
    ],
)
def test_knows_which_frames_hold_a_time_counted_from_now(columns, defaults, counts):
    values = {"delivery_delay": 5_000, "time_to_live": 5_000, "Time_To_Live": 5_000}
    times = {
        name: pa.array([10**15] * 2, pa.timestamp("us", tz="UTC")) for name in ("JMSExpiration", "JMSDeliveryTime")
    }
    rows = pa.record_batch({name: times.get(name, pa.array([values.get(name, "x")] * 2)) for name in columns})
    reason = SendDefaults(**{name: getattr(DEFAULTS, name) for name in DEFAULTS.__slots__} | defaults)
    assert counts_from_now(rows.schema, ARTEMIS, reason) is counts
    now, later = (
        b"".join(block.data for block in frames(rows, now_ms=now, defaults=reason)) for now in (10**12, 10**12 + 1)
    )
    assert (now != later) is counts


def test_costs(report):
    for body in (100, 1_000):
        rows = pa.record_batch({"text": [f"{n:08}" + "x" * (body - 8) for n in range(10_000)]})
        blocks = frames(rows)
        best = min(_seconds(blocks) for _ in range(7))
        report(f"digest: {best / rows.num_rows * 1e6:.2f} µs of CPU a row with {body} bytes of text")


def _seconds(blocks):
    start = time.thread_time()
    RowsDigest().add(blocks)
    return time.thread_time() - start
