"""A profile of Spark's JVM → the share of each part of a write or a batch.

Input: collapsed stacks of async-profiler (``frame;frame;… count``), with the thread as the first frame.
"""

import re
from collections import Counter
from collections.abc import Iterable

__all__ = ["PARTS", "shares"]

PARTS: tuple[tuple[str, str], ...] = (
    ("compilers", r"^\[C[12] CompilerThre|CompileBroker::"),
    ("garbage collector", r"^\[(GC|G1|Concurrent|VM Thread|VM Periodic)|G1ParTask|GangWorker"),
    ("rows: bytes of record batches to the socket", r"MessageSerializer"),
    ("rows: vectors emptied, their size asked", r"ArrowWriter\.(reset|sizeInBytes)|PythonArrowInput\.close"),
    ("rows: map columns to Arrow", r"MapWriter"),
    ("rows: other columns to Arrow", r"ArrowFieldWriter"),
    ("rows: opening the files of the benchmark", r"FileScanRDD"),
    ("rows: expressions of the benchmark", r"GeneratedIteratorForCodegenStage"),
    ("rows: other", r"writeSizedBatch|ArrowColumnVector|ArrowStreamReader"),
    ("task: start, wait for Python, report", r"Executor\$TaskRunner|PythonRunner|PythonWorkerFactory"),
    ("batch: planning, logs and progress", r"StreamExecution|MicroBatchExecution|stream execution thread"),
    (
        "scheduler, listeners, messages",
        r"DAGScheduler|TaskScheduler|AsyncEventQueue|MessageLoop|BlockManager",
    ),
)
"""The first part whose pattern a stack contains has its samples."""

_PATTERNS = [(part, re.compile(pattern)) for part, pattern in PARTS]


def shares(stacks: Iterable[str], *, without: tuple[str, ...] = ("compilers",)) -> dict[str, float]:
    """Part → its share of all samples, largest first. ``without``: parts that do not count."""
    found: Counter[str] = Counter()
    for line in stacks:
        stack, _, count = line.rpartition(" ")
        if stack:
            found[part_of(stack)] += int(count)
    for part in without:
        found.pop(part, None)
    total = found.total() or 1
    return {part: round(count / total, 3) for part, count in found.most_common()}


def part_of(stack: str) -> str:
    return next((part for part, pattern in _PATTERNS if pattern.search(stack)), "other")
