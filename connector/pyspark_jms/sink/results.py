"""What the tasks of a write report to the driver. Imports nothing that encodes or connects.

Spark carries the reports to a process of its own, which it ends after an idle minute: a small import starts it again
quickly.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.commit_entry import LedgerEntry
from pyspark_jms.sink.tasks import LedgerTask

__all__ = ["Outcome", "Sent", "TaskResult", "log_dropped_rows"]

_log = logging.getLogger("pyspark_jms.spark")


class Sent(NamedTuple):
    """How many rows of a task were sent, and how many were dropped."""

    rows: int
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a task, for the driver."""

    sent: Sent
    task: LedgerTask
    entry: LedgerEntry | None = None
    """The entry that is in the ledger, or is to be written with the held rows. None: the task had no rows."""
    held: tuple[MessageBlock, ...] = ()
    """The blocks of the rows that the driver is to send; empty if nothing is left to do."""
    finished: LedgerEntry | None = None
    """The entry of the whole write, which has ended before: the driver is to compare this run with it."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a task reports to the driver."""

    sent: Sent
    outcome: Outcome | None = None
    """Of a task that writes exactly once."""


def log_dropped_rows(write: str, tasks: Sequence[Sent]) -> None:
    """On the driver: log how many rows of a whole write ``onBadRow=drop`` dropped. The tasks log the reasons."""
    dropped = sum(task.dropped for task in tasks)
    if dropped:
        rows = dropped + sum(task.rows for task in tasks)
        _log.warning("= %s: %d of %d rows were dropped (onBadRow=drop)", write, dropped, rows)
