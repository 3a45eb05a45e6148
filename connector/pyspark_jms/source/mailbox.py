"""A file in the runner's memory that tasks on its machine write to.

Spark gives a task no way to report to the source, and does not show where tasks run. A task whose process descends
from the driver's Java virtual machine runs in an executor that this machine started (``local[…]``,
``local-cluster``), and then all do. Linux only; elsewhere no task writes, which is always safe.
"""

import functools
import logging
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from pyspark_jms.blocks.shared_memory import memory_path, new_memory

__all__ = ["DropReports", "LocalityProbe", "MailAddress", "answer", "report_dropped"]

_GENERATIONS = 6
"""How far a task's process may be from the driver's: worker, daemon, and with local-cluster the executor."""

_PARENT, _STARTED = 1, 19  # proc(5), fields 4 and 22; counted from field 3


@dataclass(frozen=True, slots=True)
class _Process:
    """``started`` distinguishes it from a later process with that number."""

    pid: int
    started: int


@dataclass(frozen=True, slots=True)
class MailAddress:
    """What a task needs to decide whether it runs on the runner's machine, and where to write."""

    machine: str
    runner: _Process
    driver: _Process
    path: str
    inode: int


class Mailbox:
    """In the runner. It stays open until ``close``: a late task must not find another file under its number."""

    def __init__(self) -> None:
        self._memory: int | None = None
        self._address: MailAddress | None = None
        self._read = 0

    def address(self) -> MailAddress | None:
        """Return the address, or None where no task could write."""
        if self._memory is None:
            self._memory = new_memory(0)
            self._address = self._made()
        return self._address

    def _made(self) -> MailAddress | None:
        runner, driver = _process(os.getpid()), _process(os.getppid())
        machine = _machine()
        if self._memory is None or runner is None or driver is None or machine is None:
            return None
        return MailAddress(machine, runner, driver, memory_path(self._memory), os.fstat(self._memory).st_ino)

    def take(self) -> bytes:
        """Return what was posted since the last call."""
        if self._memory is None:
            return b""
        posted = os.pread(self._memory, os.fstat(self._memory).st_size - self._read, self._read)
        self._read += len(posted)
        return posted

    def close(self) -> None:
        if self._memory is not None:
            os.close(self._memory)
            self._memory = self._address = None


def post(address: MailAddress, record: bytes) -> bool:
    """Append the record, whole, in a task, if this process runs on the runner's machine."""
    if not _is_near(address):
        return False
    try:
        memory = os.open(address.path, os.O_WRONLY | os.O_APPEND)
    except OSError:
        return False
    try:
        return os.fstat(memory).st_ino == address.inode and os.write(memory, record) == len(record)
    finally:
        os.close(memory)


@functools.cache
def _is_near(address: MailAddress) -> bool:
    return (
        _machine() == address.machine and _process(address.runner.pid) == address.runner and _descends(address.driver)
    )


def _machine() -> str | None:
    """Identify the machine: two processes have the same text only if they see the same processes under the same
    numbers.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _stat(pid: int) -> list[str] | None:
    """Return what follows the name, which may hold blanks and parentheses."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _process(pid: int) -> _Process | None:
    fields = _stat(pid)
    return None if fields is None else _Process(pid, int(fields[_STARTED]))


def _descends(ancestor: _Process) -> bool:
    pid = os.getpid()
    for _ in range(_GENERATIONS):
        fields = _stat(pid)
        if fields is None:
            return False
        pid = int(fields[_PARENT])
        if pid == ancestor.pid:
            return _process(pid) == ancestor
    return False


# --- whether tasks run on the runner's machine ------------------------------------------------------

_HERE = b"1"


class LocalityProbe(Mailbox):
    """In the runner. ``question`` is for the tasks of the next batch, until a task has answered."""

    here = False

    def question(self) -> MailAddress | None:
        """Return the question, or None when the answer is known, or when no task could answer."""
        return None if self.here else self.address()

    def tasks_run_here(self) -> bool:
        self.here = self.here or bool(self.take())
        return self.here


@functools.cache
def answer(question: MailAddress) -> bool:
    """Post an answer, in a task, if it runs on the runner's machine. Each process answers once."""
    return post(question, _HERE)


# --- how many messages the selector dropped ---------------------------------------------------------

_log = logging.getLogger("pyspark_jms.source")

_RECORD = struct.Struct("<qq")
"""What identifies the messages that a task decoded together (their first sequence), and how many it dropped."""


class DropReports(Mailbox):
    """In the runner. A task may run twice and report twice, so reports are kept until their batch is done."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[int, int] = {}
        self._done_through = 0
        self._total = 0

    def total(self) -> int:
        """Return the total as reported so far: a task on another machine reports only to its own log."""
        for sequence, dropped in _RECORD.iter_unpack(self.take()):
            if sequence >= self._done_through and sequence not in self._open:
                if not self._total:
                    _log.warning(
                        "! messages that do not match the selector are dropped: this broker does not hold them back"
                        " (progress counts them as selectorDropped)"
                    )
                self._open[sequence] = dropped
                self._total += dropped
        return self._total

    def release(self, sequence: int) -> None:
        """Every batch below ``sequence`` is done."""
        self.total()
        self._done_through = max(self._done_through, sequence)
        self._open = {first: dropped for first, dropped in self._open.items() if first >= sequence}


def report_dropped(address: MailAddress | None, first_sequence: int, dropped: int, key: int | None = None) -> None:
    """Report, in a task, that it has dropped messages. ``key`` is needed if tasks count from the same sequence."""
    if address is None or not post(address, _RECORD.pack(first_sequence if key is None else key, dropped)):
        _log.warning(
            "! %d messages that do not match the selector are dropped (from sequence %d)", dropped, first_sequence
        )
