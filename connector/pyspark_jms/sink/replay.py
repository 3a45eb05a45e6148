"""What a task of the exactly-once sink does with its rows. Entries of the ledger in, a decision out. Pure.

``plan`` decides for a task before its rows are encoded, ``unmatched_entries`` for all tasks of an execution, and
``admission`` once more right before a commit, where the protocol can lock the ledger. Knows no broker, no messages and
no Spark.

An *execution* is one run of all tasks of a write, which is a batch or a ``df.write``. When Spark repeats a write, it
may split the rows into other partitions than the first time. Neither a task nor the process that plans the write learns
the number of partitions. A task that finds its own entry compares its rows with it. A task that finds none, while an
earlier execution left entries of other tasks, cannot know whether its rows are among theirs. Such a task holds its
rows, and the driver decides, because it has the outcomes of all tasks.
"""

from collections.abc import Collection, Iterable
from enum import Enum

from pyspark_jms.delivery.commit_token import LedgerEntry, is_finished, write_of

__all__ = ["CommitDecision", "Plan", "admission", "contains_rows", "plan", "unmatched_entries"]


class Plan(Enum):
    SEND = "send the rows"
    COMPARE = "compare the rows with the task's entry, and send nothing"
    HOLD = "leave the rows to the driver"
    COMPARE_WRITE = "send nothing: the driver compares the whole write with its entry"


class CommitDecision(Enum):
    COMMIT = "commit the rows"
    ALREADY = "the same rows were committed before"
    MISMATCH = "the ledger has other rows or partitions of the write"
    OTHER_EXECUTION = "another execution has committed partitions of the write"


def plan(known: Collection[LedgerEntry], task: str, execution: str, *, send_on_mismatch: bool) -> Plan:
    """``known``: the entries of all tasks of the write, including those of this task.

    With ``send_on_mismatch`` there is nothing to compare: other rows and other partitions are sent too.
    """
    if any(is_finished(entry) for entry in known):
        return Plan.COMPARE_WRITE
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


def contains_rows(entries: Iterable[LedgerEntry], wanted: LedgerEntry) -> bool:
    return any((entry.rows, entry.digest) == (wanted.rows, wanted.digest) for entry in entries)


def admission(
    known: Iterable[LedgerEntry],
    wanted: LedgerEntry,
    *,
    whole: Collection[LedgerEntry] | None = None,
    send_on_mismatch: bool,
) -> CommitDecision:
    """``known``: the entries of the batch that nobody else can change now. ``wanted``: the entry of the rows.

    ``whole``: the entries of all partitions of the execution, which only the driver has. A task does not have them, and
    commits while the write is in its own execution alone.
    """
    of_write = [entry for entry in known if write_of(entry) == write_of(wanted)]
    own = [entry for entry in of_write if entry.task == wanted.task]
    if contains_rows(own, wanted):
        return CommitDecision.ALREADY
    if any(is_finished(entry) for entry in of_write):
        return CommitDecision.OTHER_EXECUTION
    if send_on_mismatch:
        return CommitDecision.COMMIT
    if own or (whole is not None and unmatched_entries(of_write, whole)):
        return CommitDecision.MISMATCH
    if whole is None and any(entry.execution != wanted.execution for entry in of_write):
        return CommitDecision.OTHER_EXECUTION
    return CommitDecision.COMMIT
