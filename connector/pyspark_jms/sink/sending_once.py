"""The rows of one task → messages at the broker, exactly once, by an entry in the commit ledger.

The entry is sent in the transaction of the rows: if the ledger has it, the rows were sent. Knows no ``TaskContext``:
the caller gives the task, and whether it may be a repetition.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

import pyarrow as pa

from pyspark_jms.amqp.sink import CommitLedger, LedgerLink
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.row_parts import RowsDigest
from pyspark_jms.delivery.commit_token import LedgerEntry
from pyspark_jms.errors import ReplayMismatchError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.committing import commit_with_entry, find_for_task, own_entries, replay_mismatch
from pyspark_jms.sink.replay import Plan, contains_rows, plan
from pyspark_jms.sink.sending import RowEncoder, nonempty_batches
from pyspark_jms.sink.tasks import LedgerTask, Sent, TaskOutcome

__all__ = ["send_exactly_once"]

_log = logging.getLogger("pyspark_jms.spark")

MAX_HELD_BYTES = 128 << 20
"""What a task may leave to the driver. All tasks of a write share spark.driver.maxResultSize (1 GB by default) and the
driver's memory, and Spark cannot carry a value of 2 GB."""


def send_exactly_once(
    ledger: CommitLedger,
    options: SinkOptions,
    task: LedgerTask,
    batches: Iterator[pa.RecordBatch],
    *,
    patience: float = 0.0,
) -> TaskOutcome:
    """Return when the rows are at the broker, from this or an earlier attempt, or when the driver is to send them.

    ``patience``: for how many seconds to retry the look-up, and then the connection, while the broker is away.
    """
    rows = nonempty_batches(options, batches)
    if rows is None:
        return TaskOutcome(sent=Sent(0), task=task)
    known = find_for_task(ledger, task, patience) if task.may_be_repeated else ()
    _require_same_batch(task, known)
    planned = plan(known, task.name, task.execution, send_on_mismatch=options.send_on_mismatch)
    own, held = own_entries(task, known), _HeldBlocks(task)
    with closing(ledger.connect(patience)) as link:
        take = {Plan.SEND: link.send, Plan.HOLD: held.take}.get(planned, _discard)
        entry, sent = _encode(options, task, link, rows, take)
        if contains_rows(own, entry):
            _log.info("= %s was already sent: its %d rows are not sent again", task.name, entry.rows)
        elif planned is Plan.COMPARE:
            raise replay_mismatch(task, own, entry)
        elif planned is Plan.SEND and entry.rows:
            commit_with_entry(ledger, options, task, link, entry)
    return TaskOutcome(
        sent=sent,
        task=task,
        entry=entry if entry.rows else None,
        held=tuple(held.blocks),
        finished=next(iter(known)) if planned is Plan.COMPARE_WRITE else None,
    )


def _require_same_batch(task: LedgerTask, known: Iterable[LedgerEntry]) -> None:
    """Require a ``writeId`` for each batch in ``foreachBatch``; Spark gives the number of the batch."""
    other = next((entry.batch for entry in known if entry.batch != task.batch), None)
    if other is not None:
        raise ReplayMismatchError(
            f"writeId {task.write} was used in batch {other} of this query, and this is batch {task.batch}. Nothing was"
            " sent.",
            "Use pyspark_jms.functions.write_id(batch, number) with the two values that foreachBatch gives.",
        )


# --- rows ---------------------------------------------------------------------------------------------


def _encode(
    options: SinkOptions,
    task: LedgerTask,
    link: LedgerLink,
    rows: Iterator[pa.RecordBatch],
    take: Callable[[MessageBlock], None],
) -> tuple[LedgerEntry, Sent]:
    """Give all blocks to ``take``, and return the entry for their rows."""
    encoder, digest = RowEncoder(options, link), RowsDigest()
    for batch in encoder.sendable(rows):
        digest.add(encoder.at_the_epoch(batch))
        for block in encoder.take(batch):
            take(block)
    entry = LedgerEntry(
        task=task.name,
        batch=task.batch,
        rows=encoder.rows,
        digest=digest.text(),
        execution=task.execution,
    )
    return entry, encoder.sent()


def _discard(_: MessageBlock) -> None:
    """The rows are only compared, and for that the digest is enough."""


class _HeldBlocks:
    """The blocks that a task leaves to the driver, up to a limit."""

    def __init__(self, task: LedgerTask) -> None:
        self._task, self._bytes = task, 0
        self.blocks: list[MessageBlock] = []

    def take(self, block: MessageBlock) -> None:
        self._bytes += len(block.data)
        if self._bytes > MAX_HELD_BYTES:
            raise ReplayMismatchError(
                f"An earlier run sent a part of {self._task.write}, and {self._task.name} has more than"
                f" {MAX_HELD_BYTES >> 20} MB of rows, too many for the driver to check. Nothing was sent.",
                "If this run has the partitions of the earlier one (with journalLocation, or with files and the same"
                " settings and cores), run it once with onReplayMismatch=send: it sends what was not sent.",
            )
        self.blocks.append(block)
