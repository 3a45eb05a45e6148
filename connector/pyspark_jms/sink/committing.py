"""An open transaction and the entry that speaks of its rows → both at the broker, or an error that says what is known.

Also the look-up before it. For tasks and for the driver: whoever commits rows exactly once does it here.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from pyspark_jms.errors import (
    CommitInDoubtError,
    JMSError,
    LinkError,
    ReplayMismatchError,
    TransactionRolledBackError,
    UnsupportedError,
)
from pyspark_jms.network.patience import keep_trying
from pyspark_jms.options.parsing import SinkOptions
from pyspark_jms.stomp.link.commit_ledger import find_entries, find_entries_patiently
from pyspark_jms.stomp.link.ledger_entries import (
    LedgerEntry,
    entries_of_task,
    entries_of_write,
    entry_frame,
    lock_queue,
    trial_frame,
)
from pyspark_jms.stomp.link.producer import Producer

__all__ = [
    "SAME_PARTITIONS",
    "LedgerTask",
    "commit_with_entry",
    "holds",
    "look_up",
    "look_up_all",
    "own_entries",
    "replay_mismatch",
]

_log = logging.getLogger("pyspark_jms.spark")

SAME_PARTITIONS = (
    "The source must replay the same rows in the same partitions: journalLocation and Kafka do, files with the same"
    " spark.sql.files.minPartitionNum and maxPartitionBytes. onReplayMismatch=send sends the rows of this run too, as"
    " duplicates of the first ones."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTask:
    """One task of one write, as its ledger knows it."""

    queue: str
    write: str
    """The batch, or the batch write, that it is a part of."""

    partition: int
    batch: int
    execution: str
    """Which run of all tasks of the write it belongs to."""

    may_be_repeated: bool
    """Whether the ledger is asked before anything is sent."""

    @property
    def name(self) -> str:
        return f"{self.write}/{self.partition}"


def own_entries(task: LedgerTask, known: Iterable[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    return tuple(entry for entry in known if entry.task == task.name)


def holds(entries: Iterable[LedgerEntry], wanted: LedgerEntry) -> bool:
    """Whether one of the entries is of the same rows."""
    return any((entry.rows, entry.digest) == (wanted.rows, wanted.digest) for entry in entries)


# --- before -------------------------------------------------------------------------------------------


def look_up(options: SinkOptions, task: LedgerTask, patience: float = 0.0) -> tuple[LedgerEntry, ...]:
    """What a task asks before it sends: its own entries, and those of earlier executions of its write.

    Those of other tasks of the same execution are not wanted, and would grow with each that is done.
    """
    others = entries_of_write(task.write, except_of=task.execution)
    return _look_up(options, task, f"({entries_of_task(task.name)} OR {others})", patience)


def look_up_all(options: SinkOptions, task: LedgerTask, patience: float = 0.0) -> tuple[LedgerEntry, ...]:
    """All entries of a task's write, before anything is sent."""
    return _look_up(options, task, entries_of_write(task.write), patience)


def _look_up(options: SinkOptions, task: LedgerTask, selector: str, patience: float) -> tuple[LedgerEntry, ...]:
    try:
        find = partial(find_entries, options.connection, task.queue, selector)
        return keep_trying(find, f"the look-up in {task.queue}", timeout=patience)
    except UnsupportedError:
        raise  # there is no such thing on this broker, however often it is tried
    except JMSError as error:
        raise CommitInDoubtError(
            f"Whether {task.write} was carried out before cannot be looked up in queue {task.queue}: {error.fact}",
            f"Nothing was sent. {error.remedy} {_permissions(task, error)}".rstrip(),
        ) from None


def _permissions(task: LedgerTask, error: JMSError) -> str:
    if error.transient:
        return ""
    return (
        f"Queue {task.queue} needs the permissions send and consume, and must exist or be created automatically, and so"
        f" does queue {lock_queue(task.queue)}."
    )


# --- the commit ---------------------------------------------------------------------------------------


def commit_with_entry(
    options: SinkOptions, task: LedgerTask, producer: Producer, entry: LedgerEntry, *, again: bool = False
) -> None:
    """Return when the rows in the producer's transaction are at the broker, and with them the entry.

    ``again``: the task has an entry of other rows, and these are to be sent all the same.
    """
    frame = entry_frame(
        entry, queue=task.queue, dialect=producer.dialect, transaction=producer.transaction, again=again
    )
    trial = trial_frame(queue=task.queue, dialect=producer.dialect, transaction=producer.trial)
    try:
        producer.try_commit(frame, trial)
    except LinkError as error:
        _settle(options, task, entry, error)


def _settle(options: SinkOptions, task: LedgerTask, entry: LedgerEntry, error: LinkError) -> None:
    """Return when the entry is there, however it came; raise what is known otherwise."""
    found = _find_patiently(options, task, error)
    if holds(found, entry):
        _log.info("= %s is in the ledger, though its COMMIT was not confirmed: %s", task.name, error.fact)
        return
    if found and not options.send_on_mismatch:
        raise replay_mismatch(task, found, entry)
    if error.transient:
        raise CommitInDoubtError(
            f"The broker did not confirm the COMMIT of {task.name}: {error.fact} It is not in queue {task.queue}.",
            "The next attempt looks before it sends.",
        )
    raise TransactionRolledBackError(
        f"The broker did not commit {task.name}: {error.fact}",
        f"No row of this attempt was sent. {error.remedy} A broker that remembers a task whose entry is gone answers"
        " so too: has the query been started from an older copy of its checkpoint?",
    )


def _find_patiently(options: SinkOptions, task: LedgerTask, error: LinkError) -> tuple[LedgerEntry, ...]:
    """A COMMIT that was on its way may still be carried out: then there is something to wait for."""
    selector = entries_of_task(task.name)
    try:
        return find_entries_patiently(options.connection, task.queue, selector, until_found=error.transient)
    except JMSError as reason:
        raise CommitInDoubtError(
            f"What became of the COMMIT of {task.name} is not known: {error.fact}"
            f" It cannot be looked up in queue {task.queue}: {reason.fact}",
            f"The next attempt looks before it sends. {reason.remedy} {_permissions(task, reason)}".rstrip(),
        ) from None


def replay_mismatch(task: LedgerTask, known: Iterable[LedgerEntry], entry: LedgerEntry) -> ReplayMismatchError:
    before = " and ".join(f"{e.rows} rows (digest {e.digest})" for e in known)
    return ReplayMismatchError(
        f"{task.name} was carried out before with {before}, and is repeated with {entry.rows} rows"
        f" (digest {entry.digest}). None of these was sent.",
        SAME_PARTITIONS,
    )
