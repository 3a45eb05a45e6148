"""An open transaction and its ledger entry → both at the broker, or an error with what is known.

Also the look-up before a task sends. Tasks and the driver commit exactly-once rows with this module only.
"""

import logging
from collections.abc import Collection, Iterable
from typing import assert_never

from pyspark_jms.amqp.sink import CommitLedger, LedgerLink
from pyspark_jms.delivery.commit_token import LedgerEntry, write_of
from pyspark_jms.errors import (
    CommitInDoubtError,
    JMSError,
    LinkError,
    MaxConsumersError,
    ReplayMismatchError,
    TransactionRolledBackError,
    UnsupportedError,
    WriteIdentityError,
)
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.replay import CommitDecision, admission, contains_rows
from pyspark_jms.sink.tasks import LedgerTask

__all__ = ["SAME_PARTITIONS", "commit_with_entry", "find_for_task", "find_for_write", "own_entries", "replay_mismatch"]

_log = logging.getLogger("pyspark_jms.spark")

SAME_PARTITIONS = (
    "The source must replay the same rows in the same partitions: journalLocation and Kafka do, files with the same"
    " spark.sql.files.minPartitionNum and maxPartitionBytes. onReplayMismatch=send sends the rows of this run too, as"
    " duplicates of the first ones."
)


def own_entries(task: LedgerTask, known: Iterable[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    return tuple(entry for entry in known if entry.task == task.name)


# --- before -------------------------------------------------------------------------------------------


def find_for_task(ledger: CommitLedger, task: LedgerTask, patience: float = 0.0) -> tuple[LedgerEntry, ...]:
    """The look-up of a task before it sends: its own entries, and those of earlier executions of its write.

    It leaves out other tasks of the same execution: their entries do not matter, and grow with every task that ends.
    """
    found = find_for_write(ledger, task, patience)
    return tuple(each for each in found if each.task == task.name or each.execution != task.execution)


def find_for_write(ledger: CommitLedger, task: LedgerTask, patience: float = 0.0) -> tuple[LedgerEntry, ...]:
    """All entries of a task's write, before the driver sends anything."""
    queue = task.owner.queue
    try:
        found = _look_up(ledger, queue, patience)
    except (UnsupportedError, MaxConsumersError, WriteIdentityError):
        raise  # there is no commit ledger for this write, however often it is tried
    except JMSError as error:
        raise CommitInDoubtError(
            f"Queue {queue} cannot be read, so it is not known whether {task.write} was already sent: {error.fact}",
            f"Nothing was sent. {error.remedy}",
        ) from None
    return tuple(each for each in found if write_of(each) == task.write)


def _look_up(ledger: CommitLedger, queue: str, patience: float) -> tuple[LedgerEntry, ...]:
    return keep_trying(ledger.find, f"the look-up in {queue}", timeout=patience)


# --- the commit ---------------------------------------------------------------------------------------


def commit_with_entry(
    ledger: CommitLedger,
    options: SinkOptions,
    task: LedgerTask,
    link: LedgerLink,
    entry: LedgerEntry,
    *,
    whole: Collection[LedgerEntry] | None = None,
) -> None:
    """Return when the rows of the entry and the entry are at the broker, from this transaction of the link or before.

    ``whole``: on the driver, the entries of all partitions.
    """

    def admit(known: tuple[LedgerEntry, ...]) -> bool:
        mismatch = options.send_on_mismatch
        return _admit(task, known, entry, admission(known, entry, whole=whole, send_on_mismatch=mismatch))

    try:
        link.commit_with_entry(entry, admit)
    except LinkError as error:
        _resolve_failed_commit(ledger, options, task, entry, error)


def _admit(task: LedgerTask, known: Iterable[LedgerEntry], entry: LedgerEntry, admitted: CommitDecision) -> bool:
    match admitted:
        case CommitDecision.COMMIT:
            return True
        case CommitDecision.ALREADY:
            _log.info("= another attempt of %s has committed: its %d rows are not sent again", task.name, entry.rows)
            return False
        case CommitDecision.MISMATCH:
            raise replay_mismatch(task, own_entries(task, known) or known, entry)
        case CommitDecision.OTHER_EXECUTION:
            raise CommitInDoubtError(
                f"Another run of {task.write} has committed partitions since this attempt of {task.name} began."
                " No row of this attempt was sent.",
                "The next attempt compares its rows with the entries of that run. If two runs of the query are alive,"
                " stop one of them.",
            )
    assert_never(admitted)


def _resolve_failed_commit(
    ledger: CommitLedger, options: SinkOptions, task: LedgerTask, entry: LedgerEntry, error: LinkError
) -> None:
    """Return if the ledger has the entry after all. Otherwise raise what is known about the commit."""
    found = _find_late(ledger, task, error, options.connection.reconnect_timeout)
    if contains_rows(found, entry):
        _log.info(
            "= %s is committed: the ledger has its entry, although the confirmation failed: %s", task.name, error.fact
        )
        return
    if found and not options.send_on_mismatch:
        raise replay_mismatch(task, found, entry)
    if error.transient:
        raise CommitInDoubtError(
            f"The broker did not confirm the commit of {task.name}: {error.fact} Its entry is not in queue"
            f" {task.owner.queue}.",
            "The next attempt reads the ledger before it sends.",
        )
    raise TransactionRolledBackError(
        f"The broker did not commit {task.name}: {error.fact}",
        f"No row of this attempt was sent. {error.remedy}",
    )


def _find_late(ledger: CommitLedger, task: LedgerTask, error: LinkError, patience: float) -> tuple[LedgerEntry, ...]:
    """A commit whose connection is lost was carried out before the lock was free again, or never will be."""
    queue = task.owner.queue
    try:
        found = _look_up(ledger, queue, patience)
    except JMSError as reason:
        raise CommitInDoubtError(
            f"It is not known whether the broker committed {task.name}: {error.fact}"
            f" Queue {queue} cannot be read: {reason.fact}",
            f"The next attempt reads the ledger before it sends. {reason.remedy}",
        ) from None
    return own_entries(task, found)


def replay_mismatch(task: LedgerTask, known: Iterable[LedgerEntry], entry: LedgerEntry) -> ReplayMismatchError:
    before = " and ".join(f"{e.rows} rows (digest {e.digest})" for e in known)
    return ReplayMismatchError(
        f"{task.name} was already sent with {before}, and is repeated with {entry.rows} rows (digest {entry.digest})."
        " None of these was sent.",
        SAME_PARTITIONS,
    )
