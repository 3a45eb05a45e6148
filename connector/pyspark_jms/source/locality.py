"""Do tasks run on the runner's machine? A task finds it out and tells the runner, in a word of the runner's memory.

Spark does not say where tasks will run. But a task whose process descends from the driver's Java virtual
machine runs in an executor that this machine itself has started (``local[…]``, ``local-cluster``), and then
all do. Linux only; elsewhere nobody answers, which is always safe.
"""

import functools
import os
from dataclasses import dataclass
from pathlib import Path

from pyspark_jms.blocks.shared_memory import memory_path, new_memory

__all__ = ["Card", "Neighbourhood", "answer"]

_HERE = b"1"
_GENERATIONS = 6
"""How far a task's process may be from the driver's: worker, daemon, and with local-cluster the executor."""

_PARENT, _STARTED = 1, 19  # proc(5), fields 4 and 22; counted from field 3


@dataclass(frozen=True, slots=True)
class _Process:
    """``started`` tells it from a later process of that number."""

    pid: int
    started: int


@dataclass(frozen=True, slots=True)
class Card:
    """What a task needs to know to tell whether it is a neighbour, and where to say so."""

    machine: str
    runner: _Process
    driver: _Process
    box: str
    inode: int


class Neighbourhood:
    """In the runner. ``card`` is for the tasks of the next batch, until ``look`` finds an answer.

    The box stays open until the end: a late task must not find another file under its number.
    """

    def __init__(self) -> None:
        self.here = False
        self._box: int | None = None

    def card(self) -> Card | None:
        """None when there is nothing to ask any more, or nobody who could answer."""
        if self.here:
            return None
        if self._box is None:
            self._box = new_memory(len(_HERE))
        runner, driver = _process(os.getpid()), _process(os.getppid())
        machine = _machine()
        if self._box is None or runner is None or driver is None or machine is None:
            return None
        return Card(machine, runner, driver, memory_path(self._box), os.fstat(self._box).st_ino)

    def look(self) -> bool:
        """Whether a task has answered by now."""
        if self._box is not None and os.pread(self._box, len(_HERE), 0) == _HERE:
            self.here = True
        return self.here

    def close(self) -> None:
        if self._box is not None:
            os.close(self._box)
            self._box = None


@functools.cache
def answer(card: Card) -> bool:
    """In a task: say so if this process is a neighbour. It is asked for many tasks, and answered once."""
    if _machine() != card.machine or _process(card.runner.pid) != card.runner or not _descends(card.driver):
        return False
    try:
        box = os.open(card.box, os.O_WRONLY)
    except OSError:
        return False
    try:
        if os.fstat(box).st_ino != card.inode:
            return False
        os.pwrite(box, _HERE, 0)
    finally:
        os.close(box)
    return True


def _machine() -> str | None:
    """The same for two processes only if they see the same processes under the same numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _stat(pid: int) -> list[str] | None:
    """Behind the name, which may hold blanks and parentheses."""
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
