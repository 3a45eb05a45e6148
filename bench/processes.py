"""Process ids → CPU seconds by role, from /proc. Linux only, as the figures are."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from bench.job import Measured

__all__ = ["Meter", "children", "compiler_seconds", "cpu_seconds", "spark_roles"]

_TICKS = os.sysconf("SC_CLK_TCK")
_COMPILERS = ("C1 CompilerThre", "C2 CompilerThre")  # the kernel keeps 15 characters of a thread's name
_PARENT, _OWN, _REAPED = 1, slice(11, 13), slice(13, 15)  # proc(5), fields 4, 14-15, 16-17; counted from field 3


def _stat(process: int | str) -> list[str] | None:
    """Fields of /proc/PROCESS/stat behind the name, which may hold blanks and parentheses; None when it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def cpu_seconds(process: int | str, *, reaped: bool = False) -> float:
    """User and system time of all threads; ``reaped``: and of the children it has waited for.

    ``PID/task/TID`` is one thread.
    """
    fields = _stat(process)
    if fields is None:
        return 0.0
    ticks = fields[_OWN] + (fields[_REAPED] if reaped else [])
    return sum(map(int, ticks)) / _TICKS


def compiler_seconds(jvm: int) -> float:
    """What a JVM has spent on compiling itself: its warm-up, which a longer run would not see."""
    threads = [f"{jvm}/task/{entry.name}" for entry in Path(f"/proc/{jvm}/task").iterdir()]
    return sum(cpu_seconds(thread) for thread in threads if _name(thread) in _COMPILERS)


def _name(process: str) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children() -> dict[int, list[int]]:
    """Every process of the machine under its parent."""
    found: dict[int, list[int]] = {}
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        fields = _stat(pid)
        if fields is not None:
            found.setdefault(int(fields[_PARENT]), []).append(pid)
    return found


def spark_roles(jvm: int) -> dict[int, str]:
    """The JVM of a local Spark and its Python processes: workers fork from a daemon, the rest runs a source or sink.

    A process that the JVM is about to start is the JVM once more for a moment, with all its memory, and is left out.
    """
    tree = children()
    roles = {jvm: "jvm"}
    for child in tree.get(jvm, []):
        if _program(child) in {None, _program(jvm)}:
            continue
        role = "workers" if b"pyspark.daemon" in _command(child) else "runner"
        below = [child]
        while below:
            pid = below.pop()
            roles[pid] = role
            below += tree.get(pid, [])
    return roles


def _program(pid: int) -> str | None:
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except (FileNotFoundError, ProcessLookupError):
        return None


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


class Meter:
    """``with Meter(roles) as meter: …`` measures what happens inside.

    ``roles`` is asked at both ends: a process that was born meanwhile counts from its first tick.
    """

    def __init__(self, roles: Callable[[], dict[int, str]]) -> None:
        self._roles = roles

    def __enter__(self) -> Self:
        self._before = {pid: spent for pid, (_, spent) in self._snapshot().items()}
        self.began = time.time()
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began
        self.cpu: dict[str, float] = {}
        for pid, (role, spent) in self._snapshot().items():
            self.cpu[role] = self.cpu.get(role, 0.0) + spent - self._before.get(pid, 0.0)

    def _snapshot(self) -> dict[int, tuple[str, float]]:
        # A worker that ended is in its daemon's account; the JVM would be charged with the start of others.
        return {pid: (role, cpu_seconds(pid, reaped=role == "workers")) for pid, role in self._roles().items()}

    def measured(self, messages: int) -> Measured:
        return Measured(messages=messages, seconds=self.seconds, cpu=self.cpu)
