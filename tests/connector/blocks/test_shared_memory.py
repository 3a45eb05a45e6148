"""The same messages, whether they travel or are mapped."""

import os
import pickle
import subprocess
import sys
from array import array
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.shared_memory import SharedMemory
from pyspark_jms.errors import IllegalStateError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's files in memory")

READ = """
import pickle, sys
block = pickle.load(sys.stdin.buffer).load()
print(bytes(block.data), block.heads, block.ends)
"""


def block_of(*bodies):
    ends = array("q", accumulate(map(len, bodies)))
    return MessageBlock(bytearray(b"".join(bodies)), array("q", [end - 1 for end in ends]), ends)


def reported(block):
    return bytes(block.data), block.heads, block.ends


@pytest.fixture
def memory():
    memory = SharedMemory()
    yield memory
    memory.close()


@given(st.lists(st.binary(max_size=3000), min_size=1, max_size=12).filter(any), st.data())
def test_the_same_messages_either_way(bodies, data):
    block = block_of(*bodies)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(bodies)), max_size=4)) | {0, len(bodies)})
    memory = SharedMemory()
    memory.begin(len(bodies))
    for first, last in pairwise(cuts):
        part = block.slice(first, last)
        shared = pickle.loads(pickle.dumps(memory.put(part)))
        assert len(shared) == len(part)
        assert reported(shared.load()) == reported(part)
    memory.close()


def test_a_protocol_without_heads(memory):
    block = block_of(b"one", b"", b"three")
    block.heads = array("q")
    memory.begin(3)
    assert reported(memory.put(block).load()) == (b"onethree", array("q"), array("q", [3, 3, 8]))


def test_another_process_reads_it(memory):
    memory.begin(3)
    part = block_of(b"zero", b"one", b"two").slice(1, 3)
    ended = subprocess.run(
        [sys.executable, "-c", READ], input=pickle.dumps(memory.put(part)), capture_output=True, timeout=60, check=True
    )
    assert ended.stdout.decode().strip() == f"{bytes(part.data)} {part.heads} {part.ends}"


def test_what_is_done_is_released_and_what_is_mapped_stays(memory):
    memory.begin(1)
    first = memory.put(block_of(b"zero"))
    memory.begin(2)
    second = memory.put(block_of(b"one"))
    mapped = first.load()
    memory.release(0)
    assert bytes(first.load().data) == bytes(mapped.data)
    memory.release(1)
    with pytest.raises(IllegalStateError, match=r"gone.*foreachBatch"):
        first.load()
    assert bytes(mapped.data) == b"zero"
    assert bytes(second.load().data) == b"one"
    memory.release(2)
    with pytest.raises(IllegalStateError, match="gone"):
        second.load()


def test_a_late_task_reads_no_messages_of_a_later_batch(memory):
    """The path of a batch's memory names that of a later batch, once the kernel uses the descriptor again."""
    memory.begin(3)
    late = memory.put(block_of(*[b"early"] * 3))
    memory.release(3)
    memory.begin(6)
    later = memory.put(block_of(*[b"later"] * 3))
    assert late.path == later.path
    with pytest.raises(IllegalStateError, match="another batch"):
        late.load()
    assert bytes(later.load().data) == b"later" * 3


def test_nothing_is_left_open(memory):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for n in range(20):
        memory.begin(n + 1)
        memory.put(block_of(b"zero")).load()
        memory.release(n)
    memory.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_no_memory_to_share(memory, monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    assert not memory.begin(1)


def test_shows_no_payload(memory):
    memory.begin(1)
    assert "secret" not in repr(memory.put(block_of(b"secret")))
