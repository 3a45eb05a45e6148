"""The rows of one task → messages at the broker, exactly once, by an entry in the commit ledger.

The entry goes with the rows, in one transaction: who finds it knows that the rows were sent. Knows no
``TaskContext``: which task it is, and whether it may have been here before, is handed in.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from pyspark_jms.blocks.block import ByteArray
from pyspark_jms.errors import JMSError, ReplayMismatchError
from pyspark_jms.options.parsing import SinkOptions
from pyspark_jms.sink.committing import (
    LedgerTask,
    commit_with_entry,
    holds,
    look_up,
    own_entries,
    replay_mismatch,
)
from pyspark_jms.sink.replay import Plan, plan
from pyspark_jms.sink.sending import RowFrames, Sent, with_rows
from pyspark_jms.stomp.columns.digest import RowsDigest, counts_from_now
from pyspark_jms.stomp.dialects.refusals import require_duplicate_detection
from pyspark_jms.stomp.link.commit_ledger import forget_entries
from pyspark_jms.stomp.link.ledger_entries import LedgerEntry
from pyspark_jms.stomp.link.producer import Producer

__all__ = ["MAX_HELD_BYTES", "Outcome", "forget", "send_exactly_once"]

_log = logging.getLogger("pyspark_jms.spark")

MAX_HELD_BYTES = 128 << 20
"""What a task may leave to the driver. All tasks of a write share spark.driver.maxResultSize (1 GB by default) and the
driver's memory, and Spark carries no value of 2 GB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a task, for the driver."""

    sent: Sent
    task: LedgerTask
    entry: LedgerEntry | None = None
    """What was written into the ledger, now or before, or is to be written. None: the task had no rows."""
    held: tuple[bytes, ...] = ()
    """The frames of the rows that the driver is to send; empty when there is nothing left to do."""


def send_exactly_once(
    options: SinkOptions, task: LedgerTask, batches: Iterator[pa.RecordBatch], *, patience: float = 0.0
) -> Outcome:
    """Return when the rows are at the broker, now or from an earlier attempt, or when the driver is to send them.

    ``patience``: how many seconds to try to reach the broker, before the look-up and before the first row.
    """
    rows = with_rows(options, batches)
    if rows is None:
        return Outcome(sent=Sent(0), task=task)
    known = look_up(options, task, patience) if task.may_be_repeated else ()
    _require_same_batch(task, known)
    planned = plan(known, task.name, task.execution, send_on_mismatch=options.send_on_mismatch)
    own, held = own_entries(task, known), _Held(task)
    with Producer(options.connection, patience=patience) as producer:
        take = {Plan.SEND: producer.send, Plan.HOLD: held.take, Plan.COMPARE: _drop}[planned]
        entry, sent = _encode(options, task, producer, rows, take)
        if holds(own, entry):
            _log.info("= %s was carried out before: %d rows are not sent again", task.name, entry.rows)
        elif planned is Plan.COMPARE:
            raise replay_mismatch(task, own, entry)
        elif planned is Plan.SEND:
            commit_with_entry(options, task, producer, entry, again=bool(own))
    return Outcome(sent=sent, task=task, entry=entry if entry.rows else None, held=tuple(held.frames))


def forget(options: SinkOptions, queue: str, selector: str) -> None:
    """Delete entries nobody will ask for. Never raises: they take little room, and there is a next time."""
    try:
        forgotten = forget_entries(options.connection, queue, selector)
    except JMSError as error:
        _log.warning("= %s was not tidied up: %s", queue, error.fact)
    else:
        _log.debug("= %s: %d old entries deleted", queue, forgotten)


def _require_same_batch(task: LedgerTask, known: Iterable[LedgerEntry]) -> None:
    """In ``foreachBatch`` Spark says which batch it is: a ``writeId`` that is not that of one batch is a mistake."""
    other = next((entry.batch for entry in known if entry.batch != task.batch), None)
    if other is not None:
        raise ReplayMismatchError(
            f"writeId {task.write} was used in batch {other} of this query, and this is batch {task.batch}. Nothing was"
            " sent.",
            "Put the batch id that foreachBatch gives into writeId, so that each batch has its own.",
        )


# --- rows ---------------------------------------------------------------------------------------------


def _encode(
    options: SinkOptions,
    task: LedgerTask,
    producer: Producer,
    rows: Iterator[pa.RecordBatch],
    take: Callable[[ByteArray], None],
) -> tuple[LedgerEntry, Sent]:
    """Give all frames to ``take``, and return the entry that speaks of them."""
    dialect = producer.dialect
    require_duplicate_detection(dialect)
    frames, digest = RowFrames(options, dialect), RowsDigest()
    for batch in frames.good(rows):
        by_the_clock = counts_from_now(batch.schema, dialect, frames.defaults)
        digested = frames.encoded(batch, producer.transaction, 0) if by_the_clock else None
        blocks = frames.take(batch, producer.transaction)
        digest.add(blocks if digested is None else digested)
        for block in blocks:
            take(block.data)
    entry = LedgerEntry(
        task=task.name,
        batch=task.batch,
        rows=frames.rows,
        digest=digest.text(),
        written_ms=int(time.time() * 1000),
        execution=task.execution,
    )
    return entry, frames.sent()


def _drop(_: ByteArray) -> None:
    """Of rows that are compared, the digest is all that counts."""


class _Held:
    """Frames that go to the driver, as many as may."""

    def __init__(self, task: LedgerTask) -> None:
        self._task, self._bytes = task, 0
        self.frames: list[bytes] = []

    def take(self, buffer: ByteArray) -> None:
        self._bytes += len(buffer)
        if self._bytes > MAX_HELD_BYTES:
            raise ReplayMismatchError(
                f"An earlier run sent a part of {self._task.write}, and {self._task.name} has more than"
                f" {MAX_HELD_BYTES >> 20} MB of rows, too many for the driver to check. Nothing was sent.",
                "If this run has the partitions of the earlier one (with journalLocation, or with files and the same"
                " settings and cores), run it once with onReplayMismatch=send: it sends what was not sent.",
            )
        self.frames.append(bytes(buffer))
