"""The messages of a commit ledger: entries, sentinels and locks, as SEND frames, MESSAGE frames and selectors.

Pure. Knows no connection; refuses to know what a found or a missing entry means.
"""

import re
from dataclasses import dataclass

from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.stomp.dialects.base import Dialect
from pyspark_jms.stomp.dialects.refusals import require_duplicate_detection
from pyspark_jms.stomp.wire.frame import Frame, encode_frame

__all__ = [
    "LedgerEntry",
    "entries_of_task",
    "entries_of_write",
    "entry_frame",
    "entry_of",
    "is_sentinel",
    "ledger_queue",
    "lock_frame",
    "lock_queue",
    "or_sentinel",
    "outdated_batch",
    "outdated_time",
    "sentinel_frame",
    "trial_frame",
]

_ENTRY_PRIORITY, _SENTINEL_PRIORITY = 9, 0
"""A queue delivers by priority (JMS 3.1 §3.4.9): an entry comes before every sentinel, however late it was sent."""

_ABANDONED_MS = 3_600_000
"""A sentinel this old belongs to a look-up that was killed: no look-up takes an hour."""


def ledger_queue(owner: str) -> str:
    """``owner``: a streaming query's id, or ``writes`` for all batch writes."""
    return f"pyspark-jms.commits.{owner}"


def lock_queue(ledger: str) -> str:
    """Where look-ups of a ledger wait for each other."""
    return f"{ledger}.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A task that was committed: which one, and what its rows were."""

    task: str
    """``queryId/batchId/partition``, or ``writeId/partition``."""

    batch: int
    rows: int
    digest: str
    written_ms: int
    execution: str | None = None
    """Which run of all tasks of the write sent the rows. None: an entry of a release that did not tell."""


def entry_frame(entry: LedgerEntry, *, queue: str, dialect: Dialect, transaction: str, again: bool) -> bytes:
    """The SEND of an entry, in the transaction of the rows it speaks of.

    ``again``: the task has an entry of other rows already, and the broker must take a second one.
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


def trial_frame(*, queue: str, dialect: Dialect, transaction: str) -> bytes:
    """The SEND of a message like an entry: whether it is taken tells whether an entry would be. Not to be committed."""
    headers = _address(queue, dialect, _ENTRY_PRIORITY) | {"persistent": "true", "transaction": transaction}
    return encode_frame(Frame("SEND", tuple(headers.items())))


def sentinel_frame(sentinel: str, *, queue: str, dialect: Dialect, now_ms: int) -> bytes:
    """The SEND of a message that a look-up's own selector matches, and that comes after any entry."""
    address = _address(queue, dialect, _SENTINEL_PRIORITY)
    headers = address | {"persistent": "false", "sentinel": sentinel, "at": str(now_ms)}
    return encode_frame(Frame("SEND", tuple(headers.items())))


def lock_frame(*, ledger: str, dialect: Dialect) -> bytes:
    """The SEND of a message that gives the lock of a ledger to whoever receives it.

    All of them are one message group, and a broker delivers a group to one consumer, until that consumer ends
    (JMS 3.1 §3.5.9 JMSXGroupID): so there may be many, and one look-up has the lock.
    """
    headers = {"destination": lock_queue(ledger)} | dialect.send_types[DestinationKind.QUEUE]
    headers |= {"persistent": "false", "JMSXGroupID": "lock"}
    return encode_frame(Frame("SEND", tuple(headers.items())))


def _address(queue: str, dialect: Dialect, priority: int) -> dict[str, str]:
    name = dialect.send_headers.priority
    assert name is not None, "a dialect that detects duplicates has priorities"
    return {"destination": queue} | dialect.send_types[DestinationKind.QUEUE] | {name: str(priority)}


def entry_of(frame: Frame) -> LedgerEntry | None:
    """The entry a MESSAGE frame holds; None for any other message."""
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


def entries_of_task(task: str) -> str:
    return f"task = {_literal(task)}"


def entries_of_write(write: str, *, except_of: str | None = None) -> str:
    """What all tasks of a write have written, and of no other one: ``write`` and a slash begin the names of its tasks.

    ``write`` is ``queryId/batchId``, or the ``writeId`` of a batch write, which may have slashes of its own.
    ``except_of``: an execution whose entries are not wanted.
    """
    name = re.sub("[!%_]", r"!\g<0>", write)
    one, two = _literal(f"{name}/%"), _literal(f"{name}/%/%")
    selector = f"task LIKE {one} ESCAPE '!' AND NOT (task LIKE {two} ESCAPE '!')"
    if except_of is not None:
        selector += f" AND (execution IS NULL OR execution <> {_literal(except_of)})"
    return f"({selector})"


def outdated_batch(batch: int, *, now_ms: int) -> str:
    """Entries of batches before this one, and sentinels of look-ups that were killed."""
    return f"(task IS NOT NULL AND batch < {batch}) OR {_abandoned(now_ms)}"


def outdated_time(oldest_ms: int, *, now_ms: int) -> str:
    """Entries written before this time, and sentinels of look-ups that were killed."""
    return f"(task IS NOT NULL AND at < {oldest_ms}) OR {_abandoned(now_ms)}"


def _abandoned(now_ms: int) -> str:
    return f"(sentinel IS NOT NULL AND at < {now_ms - _ABANDONED_MS})"


def or_sentinel(selector: str, sentinel: str, dialect: Dialect) -> str:
    """What SUBSCRIBE is given."""
    require_duplicate_detection(dialect)
    return dialect.numbers_selector.format(f"{selector} OR sentinel = {_literal(sentinel)}")


def _literal(text: str) -> str:
    doubled = text.replace("'", "''")  # JMS 3.1 §3.8.1.1: the way to write a quote in a string literal
    return f"'{doubled}'"
