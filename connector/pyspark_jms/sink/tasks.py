"""Which task of which write of which owner the exactly-once sink carries out, and whether it may be a repetition.

Pure; no Spark.
"""

from dataclasses import dataclass

from pyspark_jms.delivery.ledger_owner import LedgerOwner, WriteIdentity, identity_of
from pyspark_jms.errors import WriteIdentityError

__all__ = ["LedgerTask", "may_be_repeated", "require_identity"]

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
    """Whose write this is: what ``write_id`` says or, in the thread that runs a ``foreachBatch``, what Spark says.

    Never a default: the rows of one owner could be taken for a retry of another one's, and not be sent.
    """
    given = identity_of(write_id)
    if given is not None:
        return given
    if query is None or batch is None:
        raise WriteIdentityError(
            f"It is not known whose write writeId {write_id} is: the id does not say it, and Spark says it only in the"
            " thread that calls the function of foreachBatch, and not on Spark Connect. Nothing was sent.",
            "In foreachBatch set writeId to pyspark_jms.functions.write_id(batch, number), with query=NAME in other"
            " threads and on Spark Connect. In a job set it to job:NAME/RUN.",
        )
    return WriteIdentity(LedgerOwner("query", query), int(batch))


def may_be_repeated(run: str, batch: int, attempt: int) -> bool:
    """Whether a streaming task may repeat one that was committed: the first batch of a run, or a later attempt."""
    if len(_first_batches) > _MAX_RUNS:
        _first_batches.clear()
    return _first_batches.setdefault(run, batch) == batch or attempt > 0
