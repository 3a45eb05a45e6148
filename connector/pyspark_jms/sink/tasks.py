"""Which task of which write the exactly-once sink carries out, and whether it may be a repetition. Pure; no Spark."""

from dataclasses import dataclass

__all__ = ["ALL_WRITES", "LedgerTask", "ledger_queue", "may_be_repeated"]

ALL_WRITES = "writes"
"""The owner of the ledger of all batch writes outside of ``foreachBatch``."""

_first_batches: dict[str, int] = {}
"""Run of a query → the first batch of it that this process saw: no other batch of a run can be a replay."""

_MAX_RUNS = 100  # a worker process lives for minutes; this limits the memory of one that lives longer


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTask:
    """One task of one write, as the commit ledger knows it."""

    queue: str
    """The queue of the ledger."""

    write: str
    """The batch, or the batch write, that the task belongs to."""

    partition: int
    batch: int
    execution: str
    """The run of all tasks of the write that this task belongs to."""

    may_be_repeated: bool
    """Whether to read the ledger before the task sends anything."""

    @property
    def name(self) -> str:
        return f"{self.write}/{self.partition}"


def ledger_queue(owner: str) -> str:
    """``owner``: the id of a streaming query, or ``ALL_WRITES``."""
    return f"pyspark-jms.commits.{owner}"


def may_be_repeated(run: str, batch: int, attempt: int) -> bool:
    """Whether a streaming task may repeat one that was committed: the first batch of a run, or a later attempt."""
    if len(_first_batches) > _MAX_RUNS:
        _first_batches.clear()
    return _first_batches.setdefault(run, batch) == batch or attempt > 0
