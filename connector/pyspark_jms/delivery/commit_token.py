"""The commit ledger of one owner, a query or a job, as a value: which tasks of its current batch have committed.

Each owner has a ledger of its own, so entries of one can never be taken for those of another. A ``writeId`` names both.

A commit replaces the value that it has read, so if two commits have read the same one, the broker executes only one.
The entries of a query's earlier batches are gone with the first commit of a later batch: an earlier batch cannot commit
any more. The runs of a job have no order, and its batch is always 0: a finished run keeps one entry for all of its
tasks, and the oldest runs leave by their number. No clock takes part: that of one machine may be wrong.
"""

import hashlib
import json
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self

from pyspark_jms.errors import JMSError, TokenMissingError

__all__ = [
    "KEPT_RUNS",
    "LEDGER_PREFIX",
    "CommitToken",
    "LedgerEntry",
    "LedgerOwner",
    "WriteIdentity",
    "finished_entry",
    "identity_of",
    "is_finished",
    "merged",
    "write_of",
]

# --- the owner --------------------------------------------------------------------------------------

LEDGER_PREFIX = "pyspark-jms.commits."
"""The names of all ledgers begin with it."""

_NAME = r"[A-Za-z0-9._-]{1,100}"
_OF_QUERY = re.compile(rf"query:(?P<name>{_NAME})/(?P<batch>0|[1-9][0-9]{{0,17}})(?:/.+)?")
_OF_JOB = re.compile(rf"job:(?P<name>{_NAME})/.+")


@dataclass(frozen=True, slots=True)
class LedgerOwner:
    kind: Literal["query", "job"]
    """The batches of a query have an order; the runs of a job have none."""
    name: str

    @property
    def queue(self) -> str:
        """The name of the ledger at the broker."""
        return f"{LEDGER_PREFIX}{'job.' if self.kind == 'job' else ''}{self.name}"

    @property
    def address(self) -> str:
        """The topic address of its register."""
        return f"{self.queue}.token"

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


class WriteIdentity(NamedTuple):
    owner: LedgerOwner
    batch: int
    """0 for every run of a job."""


def identity_of(write_id: str) -> WriteIdentity | None:
    """``query:NAME/BATCH`` or ``query:NAME/BATCH/WRITE``, and ``job:NAME/RUN``. Returns None for another text."""
    if found := _OF_QUERY.fullmatch(write_id):
        return WriteIdentity(LedgerOwner("query", found["name"]), int(found["batch"]))
    if found := _OF_JOB.fullmatch(write_id):
        return WriteIdentity(LedgerOwner("job", found["name"]), 0)
    return None


# --- what a task records ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A committed task: its name, and which rows it sent."""

    task: str
    """``queryId/batchId/partition``, or ``writeId/partition``."""

    batch: int
    rows: int
    digest: str
    """Of the rows' messages, the same in any order of the rows."""
    execution: str | None = None
    """The run of all tasks of the write that sent the rows, or None for the whole write, after its end."""


# --- the value of a ledger --------------------------------------------------------------------------

NO_BATCH = -1
"""The batch of a token that was created and not used yet."""

KEPT_RUNS = 1_000
"""How many runs of a job, counted back from the newest commit, its ledger remembers: they can be retried. About 80 kB
before compression."""

_PLAIN_BYTES = 16 << 10
"""A longer text is compressed: an administrator reads the short ones with any client, and half as much is stored."""
_VERSION = 1
_FINISHED = "finished"
"""Stands for the number of the partition in the name of an entry for a whole write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitToken:
    owner: str
    """The text of a ``LedgerOwner``."""
    batch: int = NO_BATCH
    entries: tuple[LedgerEntry, ...] = ()
    """Of this batch, in the order of the commits."""

    def with_entry(self, entry: LedgerEntry, *, kept_runs: int | None = None) -> Self:
        """The token after a commit. ``kept_runs``: how many runs of a job to keep at most, this one included."""
        kept = () if entry.batch > self.batch else self.entries
        if kept_runs is not None:
            newest_first = dict.fromkeys(write_of(each) for each in (entry, *reversed(kept)))
            remembered = set(list(newest_first)[:kept_runs])
            kept = tuple(each for each in kept if write_of(each) in remembered)
        return replace(self, batch=entry.batch, entries=(*kept, entry))

    def with_finished(self, write: str) -> Self:
        """The token after the last task of a write: one entry for all of its tasks, which have entries here."""
        tasks = tuple(each for each in self.entries if write_of(each) == write)
        if not tasks or any(is_finished(each) for each in tasks):
            return self
        others = tuple(each for each in self.entries if write_of(each) != write)
        return replace(self, entries=(*others, finished_entry(write, tasks)))

    def body(self) -> bytes:
        value = {"version": _VERSION, "owner": self.owner, "batch": self.batch, "writes": _writes(self.entries)}
        text = json.dumps(value, separators=(",", ":")).encode()
        return text if len(text) <= _PLAIN_BYTES else zlib.compress(text)

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """Raise ``ValueError`` if the bytes are not a token in a format that this version reads."""
        try:
            text = body if body.startswith(b"{") else zlib.decompress(body)
            match json.loads(text):
                case {"version": 1, "owner": str(owner), "batch": int(batch), "writes": [*writes]}:
                    entries = tuple(each for write in writes for each in _entries(write, batch))
                    return cls(owner=owner, batch=batch, entries=entries)
        except zlib.error:
            pass
        raise ValueError("not a token of a commit ledger")

    @staticmethod
    def foreign(address: str) -> JMSError:
        """The error for another message in the ledger."""
        return TokenMissingError(
            f"Address {address} has a message that is not a token of a commit ledger in a format that this version"
            " reads. Nothing was sent.",
            "Remove the message if another program has sent it. If another version of pyspark-jms has sent it, finish"
            " the batch with that version.",
        )


def _writes(entries: Iterable[LedgerEntry]) -> list[list[Any]]:
    """Write what the tasks of one run of a write have in common once. Runs stay in the order of their last commits."""
    runs: dict[tuple[str, str], list[list[Any]]] = {}
    for entry in entries:
        run = (write_of(entry), entry.execution or "")
        runs[run] = [*runs.pop(run, []), [entry.task.rpartition("/")[2], entry.rows, entry.digest]]
    return [[write, execution, tasks] for (write, execution), tasks in runs.items()]


def _entries(write: Any, batch: int) -> Iterable[LedgerEntry]:
    match write:
        case [str(name), str(execution), [*tasks]]:
            return [_entry(task, name, execution, batch) for task in tasks]
    raise ValueError("not a write of a commit ledger")


def _entry(task: Any, write: str, execution: str, batch: int) -> LedgerEntry:
    match task:
        case [str(partition), int(rows), str(digest)]:
            name = f"{write}/{partition}"
            return LedgerEntry(task=name, batch=batch, rows=rows, digest=digest, execution=execution or None)
    raise ValueError("not an entry of a commit ledger")


def write_of(entry: LedgerEntry) -> str:
    return entry.task.rpartition("/")[0]


def merged(tokens: Iterable[CommitToken]) -> CommitToken:
    """Return what several tokens of one owner say together. There is one, unless somebody sent another one."""
    found = list(tokens)
    batch = max(token.batch for token in found)
    entries = dict.fromkeys(entry for token in found if token.batch == batch for entry in token.entries)
    return CommitToken(owner=found[0].owner, batch=batch, entries=tuple(entries))


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
    )


def is_finished(entry: LedgerEntry) -> bool:
    return entry.task.endswith(f"/{_FINISHED}")
