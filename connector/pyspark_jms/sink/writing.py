"""The end of one exactly-once write, a batch of a query or a ``df.write``, on the driver.

A task holds its rows when an earlier execution of its write sent some rows, and the task cannot know whether its own
are among them (``sink.replay``). The driver can: it has the outcomes of all tasks.
"""

import logging
from collections.abc import Sequence
from contextlib import closing

from pyspark_jms.amqp.sink import CommitLedger
from pyspark_jms.delivery.commit_token import LedgerEntry, finished_entry
from pyspark_jms.errors import JMSError, ReplayMismatchError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.committing import SAME_PARTITIONS, commit_with_entry, find_for_write
from pyspark_jms.sink.replay import contains_rows, unmatched_entries
from pyspark_jms.sink.tasks import LedgerTask, TaskOutcome

__all__ = ["finish_write"]

_log = logging.getLogger("pyspark_jms.spark")


def finish_write(ledger: CommitLedger, options: SinkOptions, outcomes: Sequence[TaskOutcome]) -> None:
    """On the driver, after all tasks of an exactly-once write: send the rows that tasks held."""
    send_held(ledger, options, outcomes)
    _shorten(ledger, outcomes[0].task)


def _shorten(ledger: CommitLedger, task: LedgerTask) -> None:
    """Never raises: entries are small, and the rows are sent."""
    try:
        ledger.finish(task.write)
    except JMSError as error:
        _log.warning("= the entries of %s stay in %s one by one: %s", task.write, task.owner.queue, error.fact)


# --- rows that tasks held ---------------------------------------------------------------------------

_MAX_NAMED = 5
"""Entries that an error names."""


def send_held(ledger: CommitLedger, options: SinkOptions, outcomes: Sequence[TaskOutcome]) -> None:
    """``outcomes``: of all tasks of one execution. Each held partition becomes a transaction with its own entry.

    A crash between two of them is like a crash between two tasks: the next execution finds the entries that are there.
    """
    _require_same_write(outcomes)
    held = [(outcome, outcome.entry) for outcome in outcomes if outcome.held]
    if not held:
        return
    patience = options.connection.reconnect_timeout
    whole = _entries_of(outcomes)
    _require_matched_entries(ledger, outcomes, whole, patience)
    for outcome, entry in held:
        assert entry is not None, "held rows have an entry"
        with closing(ledger.connect(patience)) as link:
            for block in outcome.held:
                link.send(block)
            commit_with_entry(ledger, options, outcome.task, link, entry, whole=whole)
    _log.info("= the driver sent the rows of %d tasks, because an earlier run had sent others", len(held))


def _entries_of(outcomes: Sequence[TaskOutcome]) -> list[LedgerEntry]:
    return [outcome.entry for outcome in outcomes if outcome.entry is not None]


def _require_same_write(outcomes: Sequence[TaskOutcome]) -> None:
    """A finished write has one entry for all of its tasks: this run must have the same rows in the same partitions."""
    finished = next((outcome.finished for outcome in outcomes if outcome.finished is not None), None)
    if finished is None:
        return
    partitions, write = _entries_of(outcomes), outcomes[0].task.write
    if not partitions or not contains_rows([finished], finished_entry(write, partitions)):
        raise ReplayMismatchError(
            f"{write} was already sent with {finished.rows} rows, and is repeated with other rows or in other"
            f" partitions ({sum(entry.rows for entry in partitions)} rows in {_several(partitions)}). None of these was"
            " sent.",
            "A write that has ended is not sent again: give another write another writeId.",
        )
    _log.info("= %s was already sent: its %d rows are not sent again", write, finished.rows)


def _require_matched_entries(
    ledger: CommitLedger, outcomes: Sequence[TaskOutcome], partitions: list[LedgerEntry], patience: float
) -> None:
    known = find_for_write(ledger, outcomes[0].task, patience)
    unmatched = unmatched_entries(known, partitions)
    if unmatched:
        raise ReplayMismatchError(
            f"{outcomes[0].task.write} is repeated in other partitions. An earlier run sent {_several(known)}; the"
            f" {_several(partitions)} of this run do not have the rows of {_named(unmatched)}. None of these was sent.",
            SAME_PARTITIONS,
        )


def _several(entries: Sequence[LedgerEntry]) -> str:
    return f"{len(entries)} partition{'' if len(entries) == 1 else 's'}"


def _named(entries: Sequence[LedgerEntry]) -> str:
    named = sorted((entry.task.rpartition("/")[2], entry.rows) for entry in entries)
    more = f" and {len(entries) - _MAX_NAMED} more" if len(entries) > _MAX_NAMED else ""
    return ", ".join(f"partition {number} ({rows} rows)" for number, rows in named[:_MAX_NAMED]) + more
