"""The messages of a commit ledger (entries, sentinels, locks) ↔ SEND and MESSAGE frames; the selectors that find them.

Pure. Knows no connection, and not what a found or a missing entry means.
"""

import re

from pyspark_jms.delivery.commit_entry import LedgerEntry
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.stomp.dialects.base import Dialect
from pyspark_jms.stomp.dialects.refusals import require_duplicate_detection
from pyspark_jms.stomp.wire.frame import Frame, encode_frame

__all__ = [
    "add_sentinel",
    "before_batch_selector",
    "before_time_selector",
    "encode_entry",
    "encode_lock",
    "encode_sentinel",
    "encode_trial",
    "is_sentinel",
    "lock_queue",
    "parse_entry",
    "task_selector",
    "write_selector",
]

_ENTRY_PRIORITY, _SENTINEL_PRIORITY = 9, 0
"""A queue delivers by priority (JMS 3.1 §3.4.9): every entry comes before every sentinel, whenever it was sent."""

_ABANDONED_MS = 3_600_000
"""A sentinel older than an hour is left over from a look-up that was killed: no look-up takes so long."""


def lock_queue(ledger: str) -> str:
    """The queue of the lock that look-ups of a ledger take in turn."""
    return f"{ledger}.lock"


def encode_entry(entry: LedgerEntry, *, queue: str, dialect: Dialect, transaction: str, again: bool) -> bytes:
    """The SEND frame of an entry, in the transaction of the task's rows.

    ``again``: the task already has an entry for other rows, and the broker must accept a second one.
    """
    duplicate_id = f"{entry.task}/{entry.digest}" if again else entry.task
    headers = {
        **_address(queue, dialect, _ENTRY_PRIORITY),
        "persistent": "true",
        "transaction": transaction,
        require_duplicate_detection(dialect): duplicate_id,
        "task": entry.task,
        "batch": str(entry.batch),
        "rows": str(entry.rows),
        "digest": entry.digest,
        "at": str(entry.written_ms),
    }
    if entry.execution is not None:
        headers["execution"] = entry.execution
    return encode_frame(Frame("SEND", tuple(headers.items())))


def encode_trial(*, queue: str, dialect: Dialect, transaction: str) -> bytes:
    """The SEND frame of a message like an entry: the broker accepts it if it would accept an entry. Never committed."""
    headers = _address(queue, dialect, _ENTRY_PRIORITY) | {"persistent": "true", "transaction": transaction}
    return encode_frame(Frame("SEND", tuple(headers.items())))


def encode_sentinel(sentinel: str, *, queue: str, dialect: Dialect, now_ms: int) -> bytes:
    """The SEND frame of the message that ends a look-up: its selector matches it, and it comes after every entry."""
    address = _address(queue, dialect, _SENTINEL_PRIORITY)
    headers = address | {"persistent": "false", "sentinel": sentinel, "at": str(now_ms)}
    return encode_frame(Frame("SEND", tuple(headers.items())))


def encode_lock(*, ledger: str, dialect: Dialect) -> bytes:
    """The SEND frame of a lock message: the look-up that receives it has the lock of the ledger.

    All lock messages of a ledger are one message group, and a broker delivers a group to one consumer until that
    consumer ends (JMS 3.1 §3.5.9 JMSXGroupID). So one look-up has the lock, however many lock messages there are.
    """
    headers = {"destination": lock_queue(ledger)} | dialect.send_destination_headers[DestinationKind.QUEUE]
    headers |= {"persistent": "false", "JMSXGroupID": "lock"}
    return encode_frame(Frame("SEND", tuple(headers.items())))


def _address(queue: str, dialect: Dialect, priority: int) -> dict[str, str]:
    name = dialect.send_headers.priority
    assert name is not None, "a dialect with duplicate detection has priorities"
    return {"destination": queue} | dialect.send_destination_headers[DestinationKind.QUEUE] | {name: str(priority)}


def parse_entry(frame: Frame) -> LedgerEntry | None:
    """The entry in a MESSAGE frame; None if the message is not an entry."""
    texts = {name: frame.header(name) for name in ("task", "batch", "rows", "digest", "at")}
    task, batch, rows, digest, at = texts.values()
    if task is None or batch is None or rows is None or digest is None or at is None:
        return None
    try:
        return LedgerEntry(
            task=task,
            batch=int(batch),
            rows=int(rows),
            digest=digest,
            written_ms=int(at),
            execution=frame.header("execution"),
        )
    except ValueError:
        return None


def is_sentinel(frame: Frame, sentinel: str) -> bool:
    return frame.header("sentinel") == sentinel


# --- selectors -----------------------------------------------------------------------------------------


def task_selector(task: str) -> str:
    """The entries of one task."""
    return f"task = {_literal(task)}"


def write_selector(write: str, *, except_execution: str | None = None) -> str:
    """The entries of all tasks of one write. Its tasks are named ``write``, a slash and the partition.

    ``write`` is ``queryId/batchId``, or the ``writeId`` of a batch write, which may contain slashes.
    ``except_execution``: leave out the entries of this execution.
    """
    name = re.sub("[!%_]", r"!\g<0>", write)
    one, two = _literal(f"{name}/%"), _literal(f"{name}/%/%")
    selector = f"task LIKE {one} ESCAPE '!' AND NOT (task LIKE {two} ESCAPE '!')"
    if except_execution is not None:
        selector += f" AND (execution IS NULL OR execution <> {_literal(except_execution)})"
    return f"({selector})"


def before_batch_selector(batch: int, *, now_ms: int) -> str:
    """The entries of batches before this one, and the sentinels of look-ups that were killed."""
    return f"(task IS NOT NULL AND batch < {batch}) OR {_abandoned(now_ms)}"


def before_time_selector(oldest_ms: int, *, now_ms: int) -> str:
    """The entries written before this time, and the sentinels of look-ups that were killed."""
    return f"(task IS NOT NULL AND at < {oldest_ms}) OR {_abandoned(now_ms)}"


def _abandoned(now_ms: int) -> str:
    return f"(sentinel IS NOT NULL AND at < {now_ms - _ABANDONED_MS})"


def add_sentinel(selector: str, sentinel: str, dialect: Dialect) -> str:
    """The selector of a look-up's SUBSCRIBE: it also matches the look-up's own sentinel."""
    require_duplicate_detection(dialect)
    return dialect.numeric_selector.format(f"{selector} OR sentinel = {_literal(sentinel)}")


def _literal(text: str) -> str:
    doubled = text.replace("'", "''")  # JMS 3.1 §3.8.1.1: the way to write a quote in a string literal
    return f"'{doubled}'"
