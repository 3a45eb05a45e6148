"""Measures cases on one core in memory, without broker and Spark. Cases alternate, and the median of each counts."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

import pyarrow as pa

__all__ = ["Case", "each_turn", "rates"]

_NOT_COUNTED = 3


@dataclass(frozen=True, slots=True)
class Case:
    """``action`` handles ``rows`` rows (or operations) each time it is called."""

    rows: int
    action: Callable[[], object]


def rates(cases: Mapping[str, Case], *, turns: int) -> dict[str, float]:
    """Rows for each second of CPU time: the median over all turns."""
    return {name: median(rates) for name, rates in each_turn(cases, turns=turns).items()}


def each_turn(cases: Mapping[str, Case], *, turns: int) -> dict[str, list[float]]:
    """Rows for each second of CPU time, so that other programs do not count, by turn. Arrow is limited to one core.

    Of several calls in a row only the last one counts, because the first ones allocate memory page by page.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        for _ in range(turns):
            for name, case in cases.items():
                for _ in range(_NOT_COUNTED):
                    case.action()
                began = time.process_time()
                case.action()
                seconds[name].append(time.process_time() - began)
    finally:
        pa.set_cpu_count(threads)
    return {name: [cases[name].rows / taken for taken in every] for name, every in seconds.items()}
