"""Samples the resident memory of processes by role, and computes whether it grows."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

__all__ = ["Sampler", "Trend", "peak_bytes", "resident_bytes", "trend"]

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
        """Whether the slope is negative or not significantly different from zero."""
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
