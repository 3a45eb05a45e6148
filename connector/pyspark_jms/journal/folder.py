"""One folder of a POSIX file system: what is written is there whole and for good, or not at all.

Every refusal of the operating system becomes a ``JournalError`` with its remedy. Knows what no file means.
"""

import errno
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark_jms.errors import JournalError

__all__ = ["TEMPORARY", "Appender", "Folder", "map_file", "refusals"]

TEMPORARY = ".tmp"
"""Ends the name of a file that is being written."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Turn the operating system's refusal of ``what`` into ours."""
    try:
        yield
    except OSError as error:
        raise JournalError(f"Could not {what}: {error.strerror or error}.", _remedy(error.errno)) from error


def _remedy(number: int | None) -> str:
    if number in _FULL:
        return (
            "No message is lost: what was not written is not acknowledged. Make room on the disk, or lower"
            " maxJournalBytes, and start the query again."
        )
    if number in _FORBIDDEN:
        return "Let the query's user write the folder of journalLocation, or name another one."
    return "journalLocation must be a folder of a POSIX file system that keeps what was synced."


def map_file(path: Path) -> memoryview:
    """The file's octets, read when they are looked at. They stay while the view lives, also if the file is deleted."""
    with refusals(f"read {path}"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            if not os.fstat(descriptor).st_size:
                return memoryview(b"")
            return memoryview(mmap.mmap(descriptor, 0, prot=mmap.PROT_READ))
        finally:
            os.close(descriptor)


class Folder:
    """Created with mode 0700 unless it is there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with refusals(f"create the folder {path}"):
            if not path.is_dir():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.mkdir(mode=0o700, exist_ok=True)
                _sync(path.parent)

    def names(self) -> list[str]:
        with refusals(f"list {self.path}"):
            return sorted(entry.name for entry in self.path.iterdir())

    def read(self, name: str) -> bytes:
        with refusals(f"read {self.path / name}"):
            return (self.path / name).read_bytes()

    def write(self, name: str, parts: Sequence[bytes | bytearray | memoryview]) -> int:
        """Durable on return, whole or not there at all; a file of that name is replaced. Returns its size."""
        path = self.path / name
        temporary = self.path / (name + TEMPORARY)
        with refusals(f"write {path}"):
            try:
                size = _write_synced(temporary, parts)
                temporary.replace(path)
            except OSError:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)
                raise
            _sync(self.path)
        return size

    def sync(self, name: str) -> None:
        """Durable on return: what another process left of the file and in the folder, and may not have synced."""
        with refusals(f"sync {self.path / name}"):
            _sync(self.path / name)
            _sync(self.path)

    def delete(self, name: str) -> None:
        """Gone for every process; after a power failure it may be back."""
        with refusals(f"delete {self.path / name}"):
            (self.path / name).unlink(missing_ok=True)


def _write_synced(path: Path, parts: Sequence[bytes | bytearray | memoryview]) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        size = _write_all(descriptor, parts)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return size


def _write_all(descriptor: int, parts: Sequence[bytes | bytearray | memoryview]) -> int:
    size = 0
    left = [memoryview(part) for part in parts if len(part)]
    while left:
        written = os.writev(descriptor, left)
        size += written
        while left and written >= len(left[0]):
            written -= len(left.pop(0))
        if left:
            left[0] = left[0][written:]
    return size


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Appender:
    """The end of a file that grows. After a refusal its end is unknown: the file must be written anew."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with refusals(f"open {path}"):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)

    def append(self, data: bytes, *, durable: bool) -> None:
        with refusals(f"write {self._path}"):
            _write_all(self._descriptor, [data])
            if durable:
                os.fdatasync(self._descriptor)

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._descriptor)
