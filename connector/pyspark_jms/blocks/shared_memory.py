"""Batches in memory of the runner that tasks on its machine map, instead of bytes that travel inside the tasks.

Bytes in a task pass runner → Java virtual machine → worker, and are copied some ten times on that way; a
path passes for nothing. The memory has no name that could be left over: it is gone with the runner.
"""

import mmap
import os
from collections import deque
from dataclasses import dataclass

from pyspark_jms.delivery.span import Span
from pyspark_jms.errors import IllegalStateError
from pyspark_jms.jms.model import Destination
from pyspark_jms.source.parts import Piece, bytes_of, index_of

__all__ = ["MappedPiece", "SharedMemory", "memory_path", "new_memory"]


@dataclass(frozen=True, slots=True, repr=False)
class MappedPiece:
    """A ``Piece`` that lies in the runner's memory: heads, ends, bytes, from ``offset`` on."""

    source: str
    dialect: str
    first_sequence: int
    path: str
    inode: int
    offset: int
    messages: int
    octets: int

    def __len__(self) -> int:
        return self.messages

    def read(self) -> Piece:
        """The memory stays mapped as long as something refers to it, whatever the runner does meanwhile."""
        descriptor = self._open()
        index = 8 * self.messages
        try:
            mapped = mmap.mmap(descriptor, 2 * index + self.octets, offset=self.offset, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        view = memoryview(mapped)
        return Piece(
            self.source, self.dialect, self.first_sequence, view[2 * index :], view[:index], view[index : 2 * index]
        )

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
        f"The messages of this task are gone ({why}): its batch is done, or the source has stopped.",
        "A DataFrame of foreachBatch can be read until the function returns, and not after it.",
    )


class SharedMemory:
    """In the runner: ``put`` the pieces of a batch, ``release`` what is done, ``close`` at the end."""

    def __init__(self) -> None:
        self._batches: deque[tuple[int, int]] = deque()
        """Sequence at which a batch ends, and the descriptor of its memory."""

    def begin(self, end: int) -> bool:
        """A batch that ends there; whether there is memory for it."""
        descriptor = new_memory(0)
        if descriptor is not None:
            self._batches.append((end, descriptor))
        return descriptor is not None

    def put(self, span: Span, first_sequence: int, source: Destination, dialect: str) -> MappedPiece:
        """Into the memory of the batch that was begun last."""
        descriptor = self._batches[-1][1]
        offset = -(-os.lseek(descriptor, 0, os.SEEK_END) // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        heads, ends = index_of(span)
        octets = bytes_of(span)
        _write(descriptor, offset, [heads, ends, octets])
        return MappedPiece(
            source=str(source),
            dialect=dialect,
            first_sequence=first_sequence,
            path=memory_path(descriptor),
            inode=os.fstat(descriptor).st_ino,
            offset=offset,
            messages=len(span),
            octets=len(octets),
        )

    def release(self, sequence: int) -> None:
        """Every batch below ``sequence`` is done. What a task has mapped stays until it lets go of it."""
        while self._batches and self._batches[0][0] <= sequence:
            os.close(self._batches.popleft()[1])

    def close(self) -> None:
        while self._batches:
            os.close(self._batches.pop()[1])


def _write(descriptor: int, offset: int, buffers: list[memoryview]) -> None:
    """All of it: one system call writes 2 GB at most."""
    for buffer in buffers:
        written = 0
        while written < len(buffer):
            written += os.pwrite(descriptor, buffer[written:], offset + written)
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
    """Where processes of the same user on this machine can open it."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"
