"""The commit ledger's words: what one task writes down, as a SEND frame, a MESSAGE frame and a selector.

Pure. Knows no connection; refuses to know what a found or a missing entry means.
"""

from dataclasses import dataclass

from pyspark_jms.dialect.base import Dialect
from pyspark_jms.dialect.refusals import require_duplicate_detection
from pyspark_jms.model import DestinationKind
from pyspark_jms.wire.frame import Frame, encode_frame

__all__ = [
    "LedgerEntry",
    "entry_frame",
    "entry_of",
    "is_sentinel",
    "ledger_queue",
    "looks_up",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A task that was committed: which one, and what its rows were."""

    task: str
    """``queryId/batchId/partition``, or ``writeId/partition``."""

    batch: int
    rows: int
    digest: str
    written_ms: int


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
        return LedgerEntry(task=task, batch=int(batch), rows=int(rows), digest=digest, written_ms=int(at))
    except ValueError:
        return None


def is_sentinel(frame: Frame, sentinel: str) -> bool:
    return frame.header("sentinel") == sentinel


# --- selectors -----------------------------------------------------------------------------------------


def looks_up(task: str) -> str:
    return f"task = {_literal(task)}"


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
