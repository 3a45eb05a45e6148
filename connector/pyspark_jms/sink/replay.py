"""What a task of the exactly-once sink does with its rows. Entries of the ledger in, a decision out. Pure.

``plan`` decides for a task before its rows are encoded, ``unmatched_entries`` for all tasks of an execution. Knows no
broker, no messages and no Spark.

An *execution* is one run of all tasks of a write, which is a batch or a ``df.write``. When Spark repeats a write, it
may cut the rows into other partitions than the first time. Neither a task nor the process that plans the write learns
the number of partitions. A task that finds its own entry compares its rows with it. A task that finds none, while an
earlier execution left entries of other tasks, cannot know whether its rows are among theirs. Such a task holds its
rows, and the driver decides, because it has the outcomes of all tasks.
"""

from collections.abc import Collection, Iterable
from enum import Enum

from pyspark_jms.delivery.commit_entry import LedgerEntry

__all__ = ["Plan", "plan", "unmatched_entries"]


class Plan(Enum):
    SEND = "send the rows"
    COMPARE = "compare the rows with the task's entry, and send nothing"
    HOLD = "leave the rows to the driver"


def plan(known: Collection[LedgerEntry], task: str, execution: str, *, send_on_mismatch: bool) -> Plan:
    """``known``: the entries of all tasks of the write, including those of this task.

    With ``send_on_mismatch`` there is nothing to compare: other rows and other partitions are sent too.
    """
    if send_on_mismatch:
        return Plan.SEND
    if any(entry.task == task for entry in known):
        return Plan.COMPARE
    return Plan.HOLD if any(entry.execution != execution for entry in known) else Plan.SEND


def unmatched_entries(known: Iterable[LedgerEntry], partitions: Iterable[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    """The known entries that do not match a partition of this execution in task, number of rows and digest.

    If there are none, every row that was sent belongs to a committed partition, and no row of another one was sent.
    """
    present = {(entry.task, entry.rows, entry.digest) for entry in partitions}
    return tuple(entry for entry in known if (entry.task, entry.rows, entry.digest) not in present)
