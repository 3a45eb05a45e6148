"""One folder of a POSIX file system: a file is written whole and durably, or not at all.

Symbolic links are not followed, and a folder that every user may write is refused. Every error of the operating system
becomes a ``JournalError`` with its remedy. The meaning of the files is not known here.
"""

import errno
import mmap
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark_jms.errors import JournalError

__all__ = ["TEMPORARY", "Appender", "Folder", "map_file", "refusals"]

TEMPORARY = ".tmp"
"""Suffix of a file that is being written."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Turn an ``OSError`` while doing ``what`` into a ``JournalError``."""
    try:
        yield
    except OSError as error:
        raise JournalError(f"Could not {what}: {error.strerror or error}.", _remedy(error.errno)) from error


def _remedy(number: int | None) -> str:
    if number in _FULL:
        return (
            "No message is lost: messages that were not written are not acknowledged. Make room on the disk, or lower"
            " maxJournalBytes, and start the query again."
        )
    if number in _FORBIDDEN:
        return "Give the query's user write permission for the folder of journalLocation, or name another folder."
    if number == errno.ELOOP:
        return "A symbolic link has the name of a journal file. Find out who created it, and remove it."
    if number == errno.EEXIST:
        return "Another process writes this journal: stop that process. Messages not written here are not acknowledged."
    return "journalLocation must be a folder of a POSIX file system that keeps synced data."


def map_file(path: Path) -> memoryview:
    """The file's bytes, read on access. They remain valid as long as the view exists, also if the file is deleted."""
    with refusals(f"read {path}"):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            if not os.fstat(descriptor).st_size:
                return memoryview(b"")
            return memoryview(mmap.mmap(descriptor, 0, prot=mmap.PROT_READ))
        finally:
            os.close(descriptor)


class Folder:
    """Created with mode 0700 unless it exists; ``JournalError`` if it exists and every user may write it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with refusals(f"create the folder {path}"):
            if not path.is_dir():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.mkdir(mode=0o700, exist_ok=True)
                _sync(path.parent)
            if path.stat().st_mode & stat.S_IWOTH:
                raise JournalError(
                    f"Every user of this machine may write the folder {path}.",
                    "Remove that permission (chmod o-w), or name a folder that does not exist yet.",
                )

    def names(self) -> list[str]:
        with refusals(f"list {self.path}"):
            return sorted(entry.name for entry in self.path.iterdir())

    def read(self, name: str) -> bytes:
        return bytes(map_file(self.path / name))

    def write(self, name: str, parts: Sequence[bytes | bytearray | memoryview]) -> int:
        """Durable on return, or not written at all; a file of that name is replaced. Returns its size."""
        return self._write(name, parts, os.replace)

    def create(self, name: str, parts: Sequence[bytes | bytearray | memoryview]) -> int:
        """Write a new file. Raise ``JournalError`` if a file of that name exists, which is not changed."""
        return self._write(name, parts, _rename_to_new)

    def _write(
        self, name: str, parts: Sequence[bytes | bytearray | memoryview], rename: Callable[[Path, Path], None]
    ) -> int:
        path = self.path / name
        temporary = self.path / (name + TEMPORARY)
        with refusals(f"write {path}"):
            temporary.unlink(missing_ok=True)  # left by a write that failed, or by another process
            try:
                size = _write_synced(temporary, parts)
                rename(temporary, path)
            except OSError:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)
                raise
            _sync(self.path)
        return size

    def sync(self, name: str) -> None:
        """Sync the file and the folder: another process may have written them without a sync."""
        with refusals(f"sync {self.path / name}"):
            _sync(self.path / name)
            _sync(self.path)

    def identity(self, name: str) -> tuple[int, int, int] | None:
        """Return device, inode and time of change, which differ for another file of the same name, or None if there is
        no file.
        """
        with refusals(f"read {self.path / name}"):
            try:
                found = (self.path / name).stat(follow_symlinks=False)
            except FileNotFoundError:
                return None
        return found.st_dev, found.st_ino, found.st_mtime_ns

    def changed(self, name: str) -> float:
        """Return when the file was written, in seconds since 1970."""
        with refusals(f"read {self.path / name}"):
            return (self.path / name).stat(follow_symlinks=False).st_mtime

    def delete(self, name: str) -> None:
        """Not synced: after a power failure the file may exist again."""
        with refusals(f"delete {self.path / name}"):
            (self.path / name).unlink(missing_ok=True)


def _rename_to_new(temporary: Path, path: Path) -> None:
    """``rename`` replaces an existing file, a hard link does not. Some file systems have no hard links."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        temporary.replace(path)
    else:
        temporary.unlink()


def _write_synced(path: Path, parts: Sequence[bytes | bytearray | memoryview]) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
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
    """Appends to a file. After an error the end of the file is unknown: the file must be rewritten."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with refusals(f"open {path}"):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)

    def append(self, data: bytes, *, durable: bool) -> None:
        with refusals(f"write {self._path}"):
            _write_all(self._descriptor, [data])
            if durable:
                os.fdatasync(self._descriptor)

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._descriptor)
