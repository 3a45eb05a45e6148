"""The commit ledger of one owner as a single value: which tasks of its current batch have committed. A text, and back.

An owner is a streaming query. A commit replaces the value that it has read, so of two commits that have read the same
one, the broker carries out one. The entries of earlier batches are gone with the first commit of a later batch: an
earlier batch cannot commit any more. All batch writes outside of ``foreachBatch`` share one owner, whose batch is
always 0: its entries leave by age, and a finished write keeps one entry for all of its tasks.
"""

import hashlib
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Self

from pyspark_jms.delivery.commit_entry import LedgerEntry

__all__ = ["NO_BATCH", "CommitToken", "finished_entry", "is_finished", "merged", "write_of"]

NO_BATCH = -1
"""The batch of a token that was created and not used yet."""

_PLAIN_BYTES = 16 << 10
"""A longer text is compressed: an administrator reads the short ones with any client, and half as much is stored."""
_VERSION = 1
_FINISHED = "finished"
"""Stands for the number of the partition in the name of an entry for a whole write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitToken:
    batch: int = NO_BATCH
    entries: tuple[LedgerEntry, ...] = ()
    """Of this batch."""

    def with_entry(self, entry: LedgerEntry, *, keep_since_ms: int | None) -> Self:
        """The token after a commit. ``keep_since_ms``: leave out older entries, in the ledger of all batch writes."""
        kept = () if entry.batch > self.batch else self.entries
        young = tuple(each for each in kept if keep_since_ms is None or each.written_ms >= keep_since_ms)
        return replace(self, batch=entry.batch, entries=(*young, entry))

    def with_finished(self, write: str) -> Self:
        """The token after the last task of a write: one entry for all of its tasks, which have entries here."""
        tasks = tuple(each for each in self.entries if write_of(each) == write)
        if not tasks or any(is_finished(each) for each in tasks):
            return self
        others = tuple(each for each in self.entries if write_of(each) != write)
        return replace(self, entries=(*others, finished_entry(write, tasks)))

    def body(self) -> bytes:
        text = json.dumps(
            {"version": _VERSION, "batch": self.batch, "writes": _writes(self.entries)}, separators=(",", ":")
        ).encode()
        return text if len(text) <= _PLAIN_BYTES else zlib.compress(text)

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """Raise ``ValueError`` if the bytes are not a token of this release."""
        try:
            text = body if body.startswith(b"{") else zlib.decompress(body)
            match json.loads(text):
                case {"version": 1, "batch": int(batch), "writes": [*writes]}:
                    return cls(batch=batch, entries=tuple(each for write in writes for each in _entries(write, batch)))
        except zlib.error:
            pass
        raise ValueError("not a token of a commit ledger")


def _writes(entries: Iterable[LedgerEntry]) -> list[list[Any]]:
    """What the tasks of one run of a write have in common stands once."""
    found = sorted(entries, key=_run)
    return [
        [
            write,
            execution,
            written_ms,
            [[entry.task.rpartition("/")[2], entry.rows, entry.digest] for entry in tasks],
        ]
        for (write, execution, written_ms), tasks in groupby(found, key=_run)
    ]


def _run(entry: LedgerEntry) -> tuple[str, str, int]:
    """A token keeps the time of an entry to the hour."""
    return write_of(entry), entry.execution or "", entry.written_ms - entry.written_ms % 3_600_000


def _entries(write: Any, batch: int) -> Iterable[LedgerEntry]:
    match write:
        case [str(name), str(execution), int(written_ms), [*tasks]]:
            return [_entry(task, name, execution, written_ms, batch) for task in tasks]
    raise ValueError("not a write of a commit ledger")


def _entry(task: Any, write: str, execution: str, written_ms: int, batch: int) -> LedgerEntry:
    match task:
        case [str(partition), int(rows), str(digest)]:
            return LedgerEntry(
                task=f"{write}/{partition}",
                batch=batch,
                rows=rows,
                digest=digest,
                written_ms=written_ms,
                execution=execution or None,
            )
    raise ValueError("not an entry of a commit ledger")


def write_of(entry: LedgerEntry) -> str:
    return entry.task.rpartition("/")[0]


def merged(tokens: Iterable[CommitToken]) -> CommitToken:
    """What several tokens of one owner say together. There is one, unless somebody sent another one."""
    found = list(tokens)
    batch = max(token.batch for token in found)
    entries = dict.fromkeys(entry for token in found if token.batch == batch for entry in token.entries)
    return CommitToken(batch=batch, entries=tuple(entries))


# --- finished writes ------------------------------------------------------------------------------------


def finished_entry(write: str, tasks: Iterable[LedgerEntry]) -> LedgerEntry:
    """One entry for the tasks of a write, which has no other tasks with rows."""
    found = sorted(tasks, key=lambda entry: entry.task)
    digests = hashlib.sha256("\n".join(f"{each.task} {each.rows} {each.digest}" for each in found).encode())
    return LedgerEntry(
        task=f"{write}/{_FINISHED}",
        batch=found[0].batch,
        rows=sum(each.rows for each in found),
        digest=f"w1-{digests.hexdigest()[:32]}",
        written_ms=max(each.written_ms for each in found),
    )


def is_finished(entry: LedgerEntry) -> bool:
    return entry.task.endswith(f"/{_FINISHED}")
