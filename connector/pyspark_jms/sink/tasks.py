"""Which task of which write of which owner the sink carries out, and what the task reports to the driver.

This module is pure, and imports nothing that encodes or connects: Spark carries the reports to a process of its own,
which it ends after an idle minute, and a small import starts it again quickly.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.commit_token import LedgerEntry, LedgerOwner, WriteIdentity, identity_of
from pyspark_jms.errors import WriteIdentityError

__all__ = ["LedgerTask", "Sent", "TaskOutcome", "TaskResult", "log_dropped_rows", "may_be_repeated", "require_identity"]

# --- which task it is -------------------------------------------------------------------------------

_first_batches: dict[str, int] = {}
"""Run of a query → the first batch of it that this process saw: no other batch of a run can be a replay."""

_MAX_RUNS = 100  # a worker process lives for minutes; this limits the memory of one that lives longer


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTask:
    """One task of one write, as the commit ledger knows it."""

    owner: LedgerOwner

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


def require_identity(write_id: str, query: str | None, batch: str | None) -> WriteIdentity:
    """Return whose write this is: what ``write_id`` says or, in the thread that runs a ``foreachBatch``, what Spark
    says.

    Never a default: the rows of one owner could be taken for a retry of another one's, and not be sent.
    """
    given = identity_of(write_id)
    if given is not None:
        return given
    if query is None or batch is None:
        raise WriteIdentityError(
            f"It is not known whose write writeId {write_id} is: the id names no owner, and Spark names the query only"
            " in the thread that calls the function of foreachBatch, and not on Spark Connect. Nothing was sent.",
            "In foreachBatch set writeId to pyspark_jms.functions.write_id(batch, number), with query=NAME in other"
            " threads and on Spark Connect. In a job set it to job:NAME/RUN.",
        )
    return WriteIdentity(LedgerOwner("query", query), int(batch))


def may_be_repeated(run: str, batch: int, attempt: int) -> bool:
    """Return whether a streaming task may repeat one that was committed: first batch of a run, or later attempt."""
    if len(_first_batches) > _MAX_RUNS:
        _first_batches.clear()
    return _first_batches.setdefault(run, batch) == batch or attempt > 0


# --- what a task reports ----------------------------------------------------------------------------

_log = logging.getLogger("pyspark_jms.spark")


class Sent(NamedTuple):
    """How many rows of a task were sent, and how many were dropped."""

    rows: int
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """The result of a task, for the driver."""

    sent: Sent
    task: LedgerTask
    entry: LedgerEntry | None = None
    """The entry that is in the ledger, or is to be written with the held rows, or None if the task had no rows."""
    held: tuple[MessageBlock, ...] = ()
    """The blocks of the rows that the driver is to send; empty if nothing is left to do."""
    finished: LedgerEntry | None = None
    """The entry of the whole write, which has ended before: the driver is to compare this run with it."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a task reports to the driver."""

    sent: Sent
    outcome: TaskOutcome | None = None
    """Of a task that writes exactly once."""


def log_dropped_rows(write: str, tasks: Sequence[Sent]) -> None:
    """On the driver: log how many rows of a whole write ``onBadRow=drop`` dropped. The tasks log the reasons."""
    dropped = sum(task.dropped for task in tasks)
    if dropped:
        rows = dropped + sum(task.rows for task in tasks)
        _log.warning("= %s: %d of %d rows were dropped (onBadRow=drop)", write, dropped, rows)
