"""The commit ledger of a task, and the same without the entries that no task will look up again."""

import logging
import time

from pyspark_jms.errors import JMSError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.links import CommitLedger, SinkProtocol
from pyspark_jms.sink.tasks import ALL_WRITES, LedgerTask, ledger_queue

__all__ = ["KEEP_WRITES_MS", "delete_outdated", "ledger_of"]

KEEP_WRITES_MS = 7 * 24 * 3_600_000
"""How long the ledger keeps the entries of a batch write: it can be retried for a week."""

_log = logging.getLogger("pyspark_jms.spark")


def ledger_of(protocol: SinkProtocol, options: SinkOptions, task: LedgerTask) -> CommitLedger:
    keep_ms = KEEP_WRITES_MS if _is_of_all_writes(task) else None
    return protocol.commit_ledger(options.connection, task.queue, keep_ms=keep_ms)


def _is_of_all_writes(task: LedgerTask) -> bool:
    return task.queue == ledger_queue(ALL_WRITES)


def delete_outdated(ledger: CommitLedger, task: LedgerTask) -> None:
    """After the last task: delete the entries older than the task's batch or, in the ledger of all batch writes, than a
    week.

    Never raises: entries are small, and a later write deletes them too.
    """
    try:
        if _is_of_all_writes(task):
            ledger.finish(task.write)
            deleted = ledger.delete_before_time(int(time.time() * 1000) - KEEP_WRITES_MS)
        else:
            deleted = ledger.delete_before_batch(task.batch)
    except JMSError as error:
        _log.warning("= old entries of %s were not deleted: %s", ledger.queue, error.fact)
    else:
        _log.debug("= %s: %d old entries deleted", ledger.queue, deleted)
