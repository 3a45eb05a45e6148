"""Fits measured points: the CPU of Spark's processes for a message, a kilobyte, a batch and a task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Costs", "Load", "fitted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Amount of messages that were read, their ``size`` in bytes, and the CPU seconds."""

    messages: int
    size: int
    batches: int
    tasks: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Fitted costs. ``error`` is the median relative error of the model over all points."""

    us_a_message: float
    us_a_kilobyte: float
    ms_a_batch: float
    ms_a_task: float
    error: float

    def as_json(self) -> Mapping[str, float]:
        return {name: round(getattr(self, name), 3) for name in self.__slots__}


def fitted(loads: Sequence[Load]) -> Costs:
    """Least squares of the relative errors, so that small and large reads count the same. No cost is negative."""
    rows = np.array([[one.messages, one.size / 1024, one.batches, one.tasks] for one in loads], float)
    seconds = np.array([one.seconds for one in loads])
    costs = _not_negative(rows / seconds[:, None], np.ones(len(loads)))
    off = np.abs(rows @ costs / seconds - 1)
    message, kilobyte, batch, task = costs
    return Costs(
        us_a_message=float(message * 1e6),
        us_a_kilobyte=float(kilobyte * 1e6),
        ms_a_batch=float(batch * 1e3),
        ms_a_task=float(task * 1e3),
        error=float(np.median(off)),
    )


def _not_negative(rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Least squares. A negative coefficient is fixed at zero, and the other coefficients are fitted again."""
    held = np.zeros(rows.shape[1], bool)
    while True:
        found = np.zeros(rows.shape[1])
        found[~held], *_ = np.linalg.lstsq(rows[:, ~held], wanted, rcond=None)
        if (found >= 0).all():
            return found
        held[np.argmin(found)] = True
