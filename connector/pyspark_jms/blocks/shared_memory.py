"""Batches in memory of the runner that tasks on its machine map, instead of bytes that travel inside the tasks.

Bytes in a task pass runner → Java virtual machine → worker, and are copied some ten times on that way; a
path passes for nothing. The memory has no name that could be left over: it is gone with the runner.
"""

import mmap
import os
from collections import deque
from dataclasses import dataclass

import numpy as np

from pyspark_jms.blocks.block import ByteArray, MessageBlock, index_of
from pyspark_jms.errors import IllegalStateError

__all__ = ["SharedMemory", "memory_path", "new_memory"]

_POSITION_BYTES = 8


@dataclass(frozen=True, slots=True)
class SharedBlock:
    """Messages that lie in the runner's memory: heads if the protocol needs them, ends, bytes, from ``offset`` on."""

    path: str
    inode: int
    offset: int
    messages: int
    size: int
    """Bytes of the messages."""
    has_heads: bool = True

    def __len__(self) -> int:
        return self.messages

    def load(self) -> MessageBlock:
        """The memory stays mapped as long as something refers to it, whatever the runner does meanwhile."""
        descriptor = self._open()
        try:
            indexes = 2 if self.has_heads else 1
            length = indexes * _POSITION_BYTES * self.messages + self.size
            mapped = mmap.mmap(descriptor, length, offset=self.offset, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        positions = np.frombuffer(mapped, np.int64, indexes * self.messages)
        heads, ends = index_of(positions[: -self.messages]), index_of(positions[-self.messages :])
        return MessageBlock(memoryview(mapped)[length - self.size :], heads, ends)

    def _open(self) -> int:
        """The batch's memory. The same path can name the memory of a later batch by now, so the inode must match."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise _gone(str(error.strerror)) from None
        if os.fstat(descriptor).st_ino != self.inode:
            os.close(descriptor)
            raise _gone("its memory belongs to another batch now")
        return descriptor


def _gone(why: str) -> IllegalStateError:
    return IllegalStateError(
        f"The messages of this task are gone ({why}): its batch is done, or the process of the source has ended.",
        "A DataFrame of foreachBatch can be read until the function returns, and not after it.",
    )


class SharedMemory:
    """In the runner: ``put`` the messages of a batch, ``release`` what is done, ``close`` at the end."""

    def __init__(self) -> None:
        self._batches: deque[tuple[int, int]] = deque()
        """Sequence at which a batch ends, and the descriptor of its memory."""

    def begin(self, end: int) -> bool:
        """Start the batch that ends at ``end``. Return False if no shared memory is available."""
        descriptor = new_memory(0)
        if descriptor is not None:
            self._batches.append((end, descriptor))
        return descriptor is not None

    def put(self, block: MessageBlock) -> SharedBlock:
        """Into the memory of the batch that was begun last."""
        descriptor = self._batches[-1][1]
        offset = -(-os.lseek(descriptor, 0, os.SEEK_END) // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        _write(descriptor, offset, [block.heads.tobytes(), block.ends.tobytes(), block.data])
        return SharedBlock(
            path=memory_path(descriptor),
            inode=os.fstat(descriptor).st_ino,
            offset=offset,
            messages=len(block),
            size=len(block.data),
            has_heads=bool(block.heads),
        )

    def release(self, sequence: int) -> None:
        """Every batch below ``sequence`` is done. What a task has mapped stays until it lets go of it."""
        while self._batches and self._batches[0][0] <= sequence:
            os.close(self._batches.popleft()[1])

    def close(self) -> None:
        while self._batches:
            os.close(self._batches.pop()[1])


def _write(descriptor: int, offset: int, buffers: list[ByteArray]) -> None:
    """All of it: one system call writes 2 GB at most."""
    for buffer in buffers:
        view, written = memoryview(buffer), 0
        while written < len(view):
            written += os.pwrite(descriptor, view[written:], offset + written)
        offset += written


def new_memory(size: int) -> int | None:
    """A file in memory, gone with the last process that has it open; None where there are none."""
    try:
        descriptor = os.memfd_create("pyspark-jms")
    except (AttributeError, OSError):  # not Linux, or forbidden
        return None
    os.ftruncate(descriptor, size)
    return descriptor


def memory_path(descriptor: int) -> str:
    """Return where processes of the same user on this machine can open it."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"
