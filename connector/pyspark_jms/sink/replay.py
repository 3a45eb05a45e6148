"""What a task of the exactly-once sink does with its rows, by what the ledger knows of its write. Pure.

Entries in, a decision out: ``plan`` for a task before its rows are encoded, ``strangers`` for all tasks of an
execution. Knows no broker, no frames and no Spark.

An *execution* is one run of all tasks of a write, which is a batch or a ``df.write``. When a write is repeated, Spark
may cut it into other partitions than the first time, and it tells neither a task nor the process that plans the write
how many there are. A task that finds its own entry compares its rows. A task that finds none, while an earlier
execution left entries of other tasks, cannot know whether its rows are among theirs. It holds them, and the driver
decides: it has the outcomes of all tasks.
"""

from collections.abc import Collection, Iterable
from enum import Enum

from pyspark_jms.stomp.link.ledger_entries import LedgerEntry

__all__ = ["Plan", "plan", "strangers"]


class Plan(Enum):
    SEND = "send the rows"
    COMPARE = "compare the rows with the task's entry, and send nothing"
    HOLD = "leave the rows to the driver"


def plan(known: Collection[LedgerEntry], task: str, execution: str, *, send_on_mismatch: bool) -> Plan:
    """``known``: the entries of all tasks of the write, this one's among them.

    With ``send_on_mismatch`` nothing has to be verified, for other rows and other partitions are sent too.
    """
    if send_on_mismatch:
        return Plan.SEND
    if any(entry.task == task for entry in known):
        return Plan.COMPARE
    return Plan.HOLD if any(entry.execution != execution for entry in known) else Plan.SEND


def strangers(known: Iterable[LedgerEntry], partitions: Iterable[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    """The entries that no partition of this execution has, with the same rows.

    If there are none, every row that was sent belongs to a partition that is done, and no row of another one was sent.
    """
    there = {(entry.task, entry.rows, entry.digest) for entry in partitions}
    return tuple(entry for entry in known if (entry.task, entry.rows, entry.digest) not in there)
