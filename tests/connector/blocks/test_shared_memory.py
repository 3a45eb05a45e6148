"""The same rows, whether the frames travel or are mapped."""

import os
import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.blocks.shared_memory import SharedMemory
from pyspark_jms.delivery.span import Span
from pyspark_jms.errors import IllegalStateError
from pyspark_jms.jms.model import Destination
from pyspark_jms.options.parsing import SourceOptions
from pyspark_jms.source.parts import piece_of, rows_of
from pyspark_jms.stomp.source import StompSource
from pyspark_jms.stomp.wire.scan import FrameScanner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's files in memory")

QUEUE = Destination.parse("queue://q")
OPTIONS = SourceOptions.parse({"brokerUrl": "stomp://h", "queue": "q"})
READ = """
import pickle, sys
piece = pickle.load(sys.stdin.buffer).read()
print(bytes(piece.octets), bytes(piece.heads), bytes(piece.ends))
"""


def run_of(bodies):
    scanner = FrameScanner(max_body_bytes=1 << 20)
    for n, body in enumerate(bodies):
        head = f"MESSAGE\nsubscription:1\nmessage-id:9,{n}\ndestination:q\nk:{n}\ncontent-length:{len(body)}\n\n"
        scanner.feed(head.encode() + body + b"\0\n")
    return scanner.take()


def rows(piece):
    return rows_of(piece, OPTIONS, StompSource())[0]


@pytest.fixture
def memory():
    memory = SharedMemory()
    yield memory
    memory.close()


@given(st.lists(st.binary(max_size=3000), min_size=1, max_size=12), st.data())
def test_the_same_rows_either_way(bodies, data):
    run = run_of(bodies)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(bodies)), max_size=4)) | {0, len(bodies)})
    memory = SharedMemory()
    memory.begin(len(bodies))
    for first, last in pairwise(cuts):
        span = Span(0, run, first, last)
        mapped = pickle.loads(pickle.dumps(memory.put(span, first, QUEUE, "artemis")))
        assert len(mapped) == len(span)
        assert rows(mapped.read()).equals(rows(piece_of(span, first, QUEUE, "artemis")))
    memory.close()


def test_another_process_reads_it(memory):
    run = run_of([b"zero", b"one", b"two"])
    memory.begin(3)
    mapped = memory.put(Span(0, run, 1, 3), 1, QUEUE, "artemis")
    piece = piece_of(Span(0, run, 1, 3), 1, QUEUE, "artemis")
    ended = subprocess.run(
        [sys.executable, "-c", READ], input=pickle.dumps(mapped), capture_output=True, timeout=60, check=True
    )
    assert ended.stdout.decode().strip() == f"{piece.octets} {piece.heads} {piece.ends}"


def test_what_is_done_is_released_and_what_is_mapped_stays(memory):
    run = run_of([b"zero", b"one"])
    memory.begin(1)
    first = memory.put(Span(0, run, 0, 1), 0, QUEUE, "artemis")
    memory.begin(2)
    second = memory.put(Span(0, run, 1, 2), 1, QUEUE, "artemis")
    held = first.read()
    memory.release(0)
    assert bytes(first.read().octets) == bytes(held.octets)
    memory.release(1)
    with pytest.raises(IllegalStateError, match=r"gone.*foreachBatch"):
        first.read()
    assert b"zero" in bytes(held.octets)
    assert b"one" in bytes(second.read().octets)
    memory.release(2)
    with pytest.raises(IllegalStateError, match="gone"):
        second.read()


def test_a_late_task_reads_no_messages_of_a_later_batch(memory):
    """The path of a batch's memory names that of a later batch, once the kernel uses the descriptor again."""
    memory.begin(3)
    late = memory.put(Span(0, run_of([b"early"] * 3), 0, 3), 0, QUEUE, "artemis")
    memory.release(3)
    memory.begin(6)
    later = memory.put(Span(0, run_of([b"later"] * 3), 0, 3), 3, QUEUE, "artemis")
    assert late.path == later.path
    with pytest.raises(IllegalStateError, match="belongs to another batch"):
        late.read()
    assert b"later" in bytes(later.read().octets)


def test_nothing_is_left_open(memory):
    before = len(list(Path("/proc/self/fd").iterdir()))
    run = run_of([b"zero"])
    for n in range(20):
        memory.begin(n + 1)
        memory.put(Span(0, run, 0, 1), n, QUEUE, "artemis").read()
        memory.release(n)
    memory.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_no_memory_to_share(memory, monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    assert not memory.begin(1)


def test_a_piece_shows_no_payload(memory):
    memory.begin(1)
    assert "secret" not in repr(memory.put(Span(0, run_of([b"secret"]), 0, 1), 0, QUEUE, "artemis"))
