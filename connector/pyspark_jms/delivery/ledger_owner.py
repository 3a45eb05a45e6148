"""Whose writes a commit ledger records: a query or a job; and what a ``writeId`` says of both. Pure.

Each owner has a ledger of its own, so entries of one can never be taken for those of another.
"""

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

__all__ = ["LEDGER_PREFIX", "LedgerOwner", "WriteIdentity", "identity_of"]

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
