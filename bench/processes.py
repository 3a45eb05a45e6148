"""CPU seconds and resident memory of processes by role, from /proc (Linux only), and whether memory grows."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from bench.job import Measured

__all__ = [
    "Meter", "Sampler", "Trend", "collector_seconds", "compiler_seconds", "cpu_seconds", "peak_bytes", "resident_bytes",
    "source_runners", "spark_roles", "thread_seconds", "trend",
]  # fmt: skip

_TICKS = os.sysconf("SC_CLK_TCK")
_SOURCE_RUNNER = b"python_streaming_source_runner"
_COLLECTORS = ("GC Thread", "G1 ")
_COMPILERS = ("C1 CompilerThre", "C2 CompilerThre")  # the kernel keeps 15 characters of a thread's name
_PARENT, _OWN, _REAPED = 1, slice(11, 13), slice(13, 15)  # proc(5), fields 4, 14-15 and 16-17; index 0 is field 3


def _stat(process: int | str) -> list[str] | None:
    """Fields of /proc/PROCESS/stat after the name, which may contain blanks and parentheses; None if it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def cpu_seconds(process: int | str, *, reaped: bool = False) -> float:
    """User and system time of all threads; with ``reaped`` also of the children that the process has waited for.

    ``process`` may be one thread: ``PID/task/TID``.
    """
    fields = _stat(process)
    if fields is None:
        return 0.0
    ticks = fields[_OWN] + (fields[_REAPED] if reaped else [])
    return sum(map(int, ticks)) / _TICKS


def compiler_seconds(jvm: int) -> float:
    """CPU seconds of a JVM's compiler threads: its warm-up, which a longer run does not pay again."""
    return _seconds_of(jvm, _COMPILERS)


def collector_seconds(jvm: int) -> float:
    """CPU seconds of the threads of a JVM's garbage collector."""
    return _seconds_of(jvm, _COLLECTORS)


def _seconds_of(pid: int, names: tuple[str, ...]) -> float:
    """CPU seconds of the threads whose names begin with one of these."""
    return sum(seconds for name, seconds in thread_seconds(pid).values() if name.startswith(names))


def thread_seconds(pid: int) -> dict[str, tuple[str, float]]:
    """Thread → its name and its CPU seconds; nothing of a process that has ended."""
    threads = {entry.name: f"{pid}/task/{entry.name}" for entry in Path(f"/proc/{pid}").glob("task/*")}
    return {thread: (_name(path), cpu_seconds(path)) for thread, path in threads.items()}


def _name(process: str) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children() -> dict[int, list[int]]:
    """Parent → its child processes, for all processes of the machine."""
    found: dict[int, list[int]] = {}
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        fields = _stat(pid)
        if fields is not None:
            found.setdefault(int(fields[_PARENT]), []).append(pid)
    return found


def spark_roles(jvm: int) -> dict[int, str]:
    """The JVM of a local Spark and its Python processes: workers fork from a daemon, all others run a source or a sink.

    Between fork and exec a new process is a copy of the JVM with all its memory; it is left out.
    """
    tree = children()
    roles = {jvm: "jvm"}
    for child in tree.get(jvm, []):
        if _program(child) in {None, _program(jvm)}:
            continue
        role = "workers" if b".daemon\0" in _command(child) else "runner"
        below = [child]
        while below:
            pid = below.pop()
            roles[pid] = role
            below += tree.get(pid, [])
    return roles


def source_runners(jvm: int) -> set[int]:
    """The Python processes that run the streaming sources of a local Spark: one for each query."""
    return {pid for pid, role in spark_roles(jvm).items() if role == "runner" and _SOURCE_RUNNER in _command(pid)}


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
    """``with Meter(roles) as meter: …`` measures time and CPU of the block.

    ``roles`` is called at the start and at the end. A process that started in between counts from its first tick.
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
        # The daemon's reaped children are ended workers. The JVM's reaped children are unrelated and do not count.
        return {pid: (role, cpu_seconds(pid, reaped=role == "workers")) for pid, role in self._roles().items()}

    def measured(self, messages: int) -> Measured:
        return Measured(messages=messages, seconds=self.seconds, cpu=self.cpu)


# --- memory ----------------------------------------------------------------------------------------

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(pid: int) -> int:
    """Resident bytes of a process. Pages that forked workers share are counted for each worker."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (FileNotFoundError, ProcessLookupError):
        return 0


def peak_bytes(pid: int) -> int:
    """The most resident bytes that a process has had so far."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 1024 * sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


@dataclass(frozen=True, slots=True)
class Trend:
    """``per_hour``: the slope of a line through the samples; ``error``: twice its standard error."""

    per_hour: float
    error: float

    @property
    def flat(self) -> bool:
        """True if the slope is negative, or too small to be told from zero."""
        return self.per_hour <= self.error


def trend(seconds: Sequence[float], values: Sequence[float]) -> Trend:
    """Fits a line by least squares. Needs at least three samples."""
    times, heights = np.asarray(seconds, float) / 3600, np.asarray(values, float)
    (slope, base), *_ = np.linalg.lstsq(np.column_stack([times, np.ones_like(times)]), heights, rcond=None)
    left_over = float(np.sum((heights - slope * times - base) ** 2)) / (len(times) - 2)
    return Trend(float(slope), 2 * float(np.sqrt(left_over / np.sum((times - times.mean()) ** 2))))


class Sampler:
    """``with Sampler(roles, every=1) as sampler: …`` and then ``samples``: seconds since the start, bytes by role."""

    def __init__(self, roles: Callable[[], dict[int, str]], *, every: float) -> None:
        self._roles, self._every = roles, every
        self.samples: list[tuple[float, dict[str, int]]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every):
            found: dict[str, int] = {}
            for pid, role in self._roles().items():
                found[role] = found.get(role, 0) + resident_bytes(pid)
            self.samples.append((time.monotonic() - self._began, found))

    def peaks(self) -> dict[str, int]:
        roles = {role for _, found in self.samples for role in found}
        return {role: max(found.get(role, 0) for _, found in self.samples) for role in sorted(roles)}

    def trends(self, *, after: float) -> dict[str, Trend]:
        """Trends of the samples after ``after`` seconds; earlier samples belong to the warm-up."""
        late = [(at, found) for at, found in self.samples if at >= after]
        roles = {role for _, found in late for role in found}
        return {role: trend([at for at, _ in late], [f.get(role, 0) for _, f in late]) for role in sorted(roles)}
