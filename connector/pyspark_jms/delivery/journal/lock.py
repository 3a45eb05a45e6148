"""One writer per journal: a lock of the operating system, freed when its process ends, however it ends.

The lock file stays for ever, since who deletes it gives two processes a lock each. It tells who holds the lock.
"""

import fcntl
import json
import math
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pyspark_jms.delivery.journal.folder import refusals
from pyspark_jms.errors import JournalLockedError

__all__ = ["WriterLock"]

_RETRY_SECONDS = 0.1


class WriterLock:
    """Not inherited by programs that this process starts. A plain ``fork`` would share it, as any flock."""

    def __init__(self, path: Path, *, query: str, wait_seconds: float, pause: Callable[[float], None]) -> None:
        """Wait so long, in ``pause``s, then raise ``JournalLockedError``."""
        self._path = path
        with refusals(f"lock {path}"):
            for attempt in range(math.ceil(wait_seconds / _RETRY_SECONDS) + 1):
                if attempt:
                    pause(_RETRY_SECONDS)
                if (descriptor := _try_to_lock(path)) is not None:
                    break
            else:
                raise self._refusal(wait_seconds)
        self._descriptor: int | None = descriptor
        with suppress(OSError):  # a courtesy: on a full disk the lock holds as well
            _tell(descriptor, query)

    @property
    def held(self) -> bool:
        """Whether ``release`` was not called yet; ``require`` asks the operating system."""
        return self._descriptor is not None

    def require(self) -> None:
        """``JournalLockedError`` unless this process still holds the lock of the file that others would lock."""
        assert self._descriptor is not None
        with refusals(f"look at {self._path}"):
            if not _holds(self._descriptor, self._path):
                raise JournalLockedError(
                    f"The lock file {self._path} was removed or replaced: another process may write this journal.",
                    "Make sure that one query uses this folder and that nothing cleans it up, then start the query"
                    " again. Nothing that was not written is acknowledged.",
                )

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _refusal(self, waited: float) -> JournalLockedError:
        holder = "another process"
        with suppress(OSError, ValueError, KeyError, TypeError):
            told = json.loads(self._path.read_bytes())
            holder = f"process {told['pid']} on host {told['host']} (query {told['query']})"
        return JournalLockedError(
            f"The journal {self._path.parent} is being written by {holder}, for {waited:g} s at least.",
            "Stop that query first, or give this one a journalLocation of its own.",
        )


def _tell(descriptor: int, query: str) -> None:
    holder = {"pid": os.getpid(), "host": os.uname().nodename, "query": query}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode() + b"\n", 0)


def _try_to_lock(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        if _holds(descriptor, path):
            return descriptor
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _holds(descriptor: int, path: Path) -> bool:
    """Lock the file, or find that it is locked by us. A lock on a file that was deleted since excludes nobody."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False))
    except (BlockingIOError, FileNotFoundError):
        return False
