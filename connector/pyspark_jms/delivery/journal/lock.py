"""One writer per journal: a lock of the operating system, which is released when its process ends in any way.

The lock file is never deleted: otherwise two processes could each lock a file. It names the holder of the lock.
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
    """Programs that this process starts do not inherit the lock. A plain ``fork`` shares it, as any flock."""

    def __init__(self, path: Path, *, query: str, wait_seconds: float, pause: Callable[[float], None]) -> None:
        """Wait up to ``wait_seconds``, in ``pause``s, then raise ``JournalLockedError``."""
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
        with suppress(OSError):  # only for the message to others: the lock is held without it
            _write_holder(descriptor, query)

    @property
    def held(self) -> bool:
        """Return whether ``release`` has not been called. ``require`` checks the lock itself."""
        return self._descriptor is not None

    def require(self) -> None:
        """``JournalLockedError`` unless this process still holds the lock of the file that others would lock."""
        assert self._descriptor is not None
        with refusals(f"read {self._path}"):
            if not _holds(self._descriptor, self._path):
                raise JournalLockedError(
                    f"The lock file {self._path} was removed or replaced: another process may write this journal.",
                    "Make sure that one query uses this folder and that nothing cleans it up, then start the query"
                    " again. Messages that were not written are not acknowledged.",
                )

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _refusal(self, waited: float) -> JournalLockedError:
        holder = "another process"
        with suppress(OSError, ValueError, KeyError, TypeError):
            found = json.loads(self._path.read_bytes())
            holder = f"process {found['pid']} on host {found['host']} (query {found['query']})"
        return JournalLockedError(
            f"The journal {self._path.parent} is being written by {holder}, for {waited:g} s at least.",
            "Stop that query first, or give this one a journalLocation of its own.",
        )


def _write_holder(descriptor: int, query: str) -> None:
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
    """Lock the file, or find that this process has locked it. False if the locked file has been deleted or replaced."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False))
    except (BlockingIOError, FileNotFoundError):
        return False
