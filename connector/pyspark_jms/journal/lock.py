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

from pyspark_jms.errors import JournalLockedError
from pyspark_jms.journal.folder import refusals

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
        return self._descriptor is not None

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
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass  # held, or the file was deleted since: then a lock on it excludes nobody
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None
