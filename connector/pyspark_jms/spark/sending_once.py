"""The rows of one task → messages at the broker, exactly once, by an entry in the commit ledger.

The entry goes with the rows, in one transaction: who finds it knows that the rows were sent. Knows no
``TaskContext``: which task it is, and whether it may have been here before, is handed in.
"""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from pyspark_jms.columns.digest import RowsDigest, counts_from_now
from pyspark_jms.dialect.refusals import require_duplicate_detection
from pyspark_jms.errors import (
    CommitInDoubtError,
    JMSError,
    LinkError,
    ReplayMismatchError,
    TransactionRolledBackError,
    UnsupportedError,
)
from pyspark_jms.link.commit_ledger import find_entries, find_entries_patiently, forget_entries
from pyspark_jms.link.ledger_entries import LedgerEntry, entries_of_task, entry_frame, trial_frame
from pyspark_jms.link.producer import Producer
from pyspark_jms.options import SinkOptions
from pyspark_jms.spark.sending import RowFrames, Sent, with_rows

__all__ = ["LedgerTask", "forget", "send_exactly_once"]

_log = logging.getLogger("pyspark_jms.spark")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTask:
    """One task of one write, as its ledger knows it."""

    queue: str
    name: str
    batch: int
    may_be_repeated: bool
    """Whether the ledger is asked before anything is sent."""


def send_exactly_once(options: SinkOptions, task: LedgerTask, batches: Iterator[pa.RecordBatch]) -> Sent:
    """Returns how many rows are at the broker, now or from an earlier attempt. A task without rows leaves no entry."""
    rows = with_rows(options, batches)
    if rows is None:
        return Sent(0)
    known = _look_up(options, task) if task.may_be_repeated else ()
    with Producer(options.connection) as producer:
        sending = not known or options.send_on_mismatch
        entry, sent = _send(options, task, producer, rows, sending=sending)
        if _holds(known, entry):
            _log.info("= %s was carried out before: %d rows are not sent again", task.name, entry.rows)
        elif not sending:
            raise _mismatch(task, known, entry)
        else:
            _commit(options, task, producer, entry, again=bool(known))
    return sent


def forget(options: SinkOptions, queue: str, selector: str) -> None:
    """Delete entries nobody will ask for. Never raises: they take little room, and there is a next time."""
    try:
        forgotten = forget_entries(options.connection, queue, selector)
    except JMSError as error:
        _log.warning("= %s was not tidied up: %s", queue, error.fact)
    else:
        _log.debug("= %s: %d old entries deleted", queue, forgotten)


# --- before -------------------------------------------------------------------------------------------


def _look_up(options: SinkOptions, task: LedgerTask) -> tuple[LedgerEntry, ...]:
    try:
        return find_entries(options.connection, task.queue, entries_of_task(task.name))
    except UnsupportedError:
        raise  # there is no such thing on this broker, however often it is tried
    except JMSError as error:
        raise CommitInDoubtError(
            f"Whether {task.name} was carried out before cannot be looked up in queue {task.queue}: {error.fact}",
            f"Nothing was sent. {error.remedy} {_permissions(task, error)}".rstrip(),
        ) from None


def _permissions(task: LedgerTask, error: JMSError) -> str:
    if error.transient:
        return ""
    return f"Queue {task.queue} needs the permissions send and consume, and must exist or be created automatically."


# --- sending ------------------------------------------------------------------------------------------


def _send(
    options: SinkOptions, task: LedgerTask, producer: Producer, rows: Iterator[pa.RecordBatch], *, sending: bool
) -> tuple[LedgerEntry, Sent]:
    """All rows, into the open transaction or nowhere, and the entry that speaks of them."""
    dialect = producer.dialect
    require_duplicate_detection(dialect)
    frames, digest = RowFrames(options, dialect), RowsDigest()
    for batch in frames.good(rows):
        by_the_clock = counts_from_now(batch.schema, dialect, frames.defaults)
        digested = frames.encoded(batch, producer.transaction, 0) if by_the_clock else None
        buffers = frames.take(batch, producer.transaction)
        digest.add(buffers if digested is None else digested, batch.num_rows)
        for buffer in buffers if sending else ():
            producer.send(buffer)
    now_ms = int(time.time() * 1000)
    entry = LedgerEntry(task=task.name, batch=task.batch, rows=frames.rows, digest=digest.text(), written_ms=now_ms)
    return entry, frames.sent()


# --- the commit ---------------------------------------------------------------------------------------


def _commit(options: SinkOptions, task: LedgerTask, producer: Producer, entry: LedgerEntry, *, again: bool) -> None:
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
    try:
        selector = entries_of_task(task.name)
        found = find_entries_patiently(options.connection, task.queue, selector, until_found=error.transient)
    except JMSError as reason:
        raise CommitInDoubtError(
            f"What became of the COMMIT of {task.name} is not known: {error.fact}"
            f" It cannot be looked up in queue {task.queue}: {reason.fact}",
            f"The next attempt looks before it sends. {reason.remedy} {_permissions(task, reason)}".rstrip(),
        ) from None
    if _holds(found, entry):
        _log.info("= %s is in the ledger, though its COMMIT was not confirmed: %s", task.name, error.fact)
        return
    if found and not options.send_on_mismatch:
        raise _mismatch(task, found, entry)
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


def _holds(entries: tuple[LedgerEntry, ...], wanted: LedgerEntry) -> bool:
    return any((entry.rows, entry.digest) == (wanted.rows, wanted.digest) for entry in entries)


def _mismatch(task: LedgerTask, known: tuple[LedgerEntry, ...], entry: LedgerEntry) -> ReplayMismatchError:
    before = " and ".join(f"{e.rows} rows (digest {e.digest})" for e in known)
    return ReplayMismatchError(
        f"{task.name} was carried out before with {before}, and comes again with {entry.rows} rows"
        f" (digest {entry.digest}). None of these was sent.",
        "The source must replay the same rows in the same partitions (journalLocation, files, Kafka; no shuffle, the"
        " same options). onReplayMismatch=send sends them too, as duplicates of the first ones.",
    )
