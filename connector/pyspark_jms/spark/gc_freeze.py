"""Garbage collection in a worker process of Spark."""

import gc
import sys

__all__ = ["freeze_gc"]

_frozen_modules = 0
"""How many modules this process had imported when objects were frozen last."""


def freeze_gc() -> None:
    """At the start of a task: take what was imported so far out of garbage collection.

    Spark's worker calls ``gc.collect`` after every task, and a collection walks all objects of all modules: measured
    30 ms of CPU for a small task, under 1 ms with them frozen. The first task imports more than its start shows, pandas
    for example, so the next one freezes again. What is frozen is never collected; without an import nothing is frozen.
    """
    global _frozen_modules  # noqa: PLW0603 - of the process, as the collector is
    if len(sys.modules) != _frozen_modules:
        _frozen_modules = len(sys.modules)
        gc.freeze()
