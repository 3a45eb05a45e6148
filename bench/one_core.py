"""What one core does in memory: no broker, no Spark. Cases take turns, and the median of each counts."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

import pyarrow as pa

__all__ = ["Case", "rates"]

_NOT_COUNTED = 3


@dataclass(frozen=True, slots=True)
class Case:
    """``action`` handles ``rows`` rows (or operations) each time it is called."""

    rows: int
    action: Callable[[], object]


def rates(cases: Mapping[str, Case], *, turns: int) -> dict[str, float]:
    """Rows a second of CPU time, so without what others take meanwhile. Arrow may not use a second core.

    Of calls in a row the last one counts: after another case has run, memory comes page by page.
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
    return {name: cases[name].rows / median(taken) for name, taken in seconds.items()}
