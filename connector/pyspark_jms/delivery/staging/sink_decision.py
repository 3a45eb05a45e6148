"""The token of a sink and a partition that is to be committed → what its task or the driver does. Pure.

An *execution* is one run of all tasks of a batch. A repeated batch may have other partitions than the first time, and
a task does not learn how many there are. So a task commits without asking only in the execution that the token names.
In any other execution it compares its rows, or leaves them to the driver, which has the entries of all partitions.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

from pyspark_jms.delivery.staging.tokens import Entry, SinkToken
from pyspark_jms.errors import JMSError, ReplayMismatchError, SinkFencedError, TokenMissingError

__all__ = [
    "Already",
    "Attempt",
    "Decision",
    "Hold",
    "Mismatch",
    "Missing",
    "Overtaken",
    "Swap",
    "decide",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One partition that is to be committed."""

    batch: int
    execution: str
    entry: Entry
    """The partition and its rows."""

    whole: frozenset[Entry] | None = None
    """The entries of all partitions of the execution, which only the driver has. None: a task asks."""

    send_on_mismatch: bool = False


@dataclass(frozen=True, slots=True)
class Swap:
    """The rows are committed with this token in place of the one that was read."""

    token: SinkToken


@dataclass(frozen=True, slots=True)
class Already:
    """The rows were committed before. The attempt's transaction is abandoned, and the attempt succeeds."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Another execution has begun the batch. The attempt's transaction is abandoned, and the driver gets the rows."""


@dataclass(frozen=True, slots=True)
class Overtaken:
    """The query has gone on to a later batch without this run."""

    batch: int
    mine: int

    def error(self) -> JMSError:
        return SinkFencedError(
            f"Another run of this query has written batch {self.batch}, and this is batch {self.mine}. Nothing was"
            " sent.",
            "Stop one of the two runs. If the checkpoint was replaced by an older copy, use a new one.",
        )


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The batch was sent with other rows or in other partitions."""

    sent: tuple[Entry, ...]
    """The committed entries that this execution does not have."""
    mine: Entry

    def error(self) -> JMSError:
        sent = ", ".join(f"partition {e.partition} with {e.rows} rows (digest {e.digest})" for e in self.sent)
        mine = self.mine
        return ReplayMismatchError(
            f"The batch was already sent with {sent}; it is repeated with partition {mine.partition} of {mine.rows}"
            f" rows (digest {mine.digest}). None of these was sent.",
            "The source must replay the same rows in the same partitions. onReplayMismatch=send sends the rows of this"
            " run too, as duplicates of the first ones.",
        )


@dataclass(frozen=True, slots=True)
class Missing:
    """The query's token is not at the broker."""

    batch: int

    def error(self) -> JMSError:
        return TokenMissingError(
            f"The commit ledger of this query is empty, and this is batch {self.batch}: nobody can tell which of its"
            " partitions were sent. Nothing was sent.",
            "Look for the message in the dead-letter queue of the ledger's address and move it back. If the query has"
            " never committed a batch to this broker, delete the ledger's subscription and start the query again.",
        )


Decision: TypeAlias = Swap | Already | Hold | Overtaken | Mismatch


def decide(token: SinkToken, attempt: Attempt) -> Decision:
    if token.batch > attempt.batch:
        return Overtaken(token.batch, attempt.batch)
    fresh = SinkToken(batch=attempt.batch, execution=attempt.execution, entries=frozenset({attempt.entry}))
    if token.batch < attempt.batch:
        return Swap(fresh)
    if attempt.entry in token.entries:
        return Already()
    if not attempt.send_on_mismatch:
        unmatched = _unmatched(token, attempt)
        if unmatched:
            return Mismatch(unmatched, attempt.entry)
        if attempt.whole is None and token.execution != attempt.execution:
            return Hold()
    return Swap(replace(fresh, entries=token.entries | fresh.entries))


def _unmatched(token: SinkToken, attempt: Attempt) -> tuple[Entry, ...]:
    """A task knows only its own partition, the driver knows all."""
    if attempt.whole is not None:
        return tuple(sorted(token.entries - attempt.whole))
    return tuple(sorted(entry for entry in token.entries if entry.partition == attempt.entry.partition))
