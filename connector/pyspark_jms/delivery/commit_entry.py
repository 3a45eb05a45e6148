"""An entry of the commit ledger: what an exactly-once task records beside its rows. A value; knows no protocol."""

from dataclasses import dataclass

__all__ = ["LedgerEntry"]


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
    """The run of all tasks of the write that sent the rows. None: of the whole write, after its end."""
