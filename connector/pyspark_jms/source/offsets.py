"""Offset of a query ↔ the JSON that Spark logs: ``{"seq": n}``, a count of messages that continues over restarts.

With a journal the offset names it, so that another journal or an older copy is noticed. With a durable subscription it
has a digest of the selector, so that a restarted query notices a changed one.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from pyspark_jms.delivery.journal.binding import JournalMark
from pyspark_jms.errors import IllegalStateError, JMSError, OptionConflictError, UnsupportedError

__all__ = ["CHANGED_GUARANTEE", "CommitOrder", "ReceivedOffset", "refused_as", "selector_digest"]

CHANGED_GUARANTEE = (
    "To change the guarantee, let the query read all with trigger(availableNow=True), and start it with another"
    " checkpointLocation and, for Spark's file sink, a new output folder."
)
_REMEDY = "Use a checkpointLocation of its own and, for Spark's file sink, a new output folder."


@contextmanager
def refused_as(error: type[JMSError], fact: str, remedy: str) -> Iterator[None]:
    """Raise this error if the block, which parses an offset, shows that it is of another read."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError):
        raise error(fact, remedy) from None


class ReceivedOffset(NamedTuple):
    sequence: int
    selector: str | None = None
    """The digest of a durable subscription's selector."""
    journal: JournalMark | None = None

    @classmethod
    def parse(cls, offset: Any) -> Self:
        if offset and "used" in offset:  # delivery.register.token.Offset
            raise OptionConflictError(
                "The checkpoint is of a read with deliveryGuarantee=exactly-once over AMQP, whose messages are in"
                " staging queues, and this read is another one.",
                f"Give its deliveryGuarantee and protocol again. {CHANGED_GUARANTEE}",
            )
        with refused_as(IllegalStateError, "The checkpoint holds an offset that is not of this source.", _REMEDY):
            mark = JournalMark(str(offset["journal"]), int(offset["next"])) if "journal" in offset else None
            return cls(int(offset["seq"]), offset.get("selector"), mark)

    def logged(self) -> dict[str, Any]:
        """The order of the keys is fixed, so the JSON text, by which Spark compares, has one form."""
        made_with = {} if self.selector is None else {"selector": self.selector}
        journal = {} if self.journal is None else {"journal": self.journal.id, "next": self.journal.next}
        return {"seq": self.sequence} | made_with | journal


def selector_digest(selector: str | None) -> str:
    """Return a short digest of what the broker was given, which is the same in every process."""
    return hashlib.blake2b((selector or "").encode(), digest_size=8).hexdigest()


# --- the order of Spark's calls ---------------------------------------------------------------------

# With the default progress tracking, latestOffset(start=E) means that the batch which ends at E is in the commit log,
# and commit(E) follows before the next batch is planned. With asyncProgressTrackingEnabled neither is so (measured on
# Spark 4.3: most batches never reach the log). The second batch of a run shows which of the two it is.


class CommitOrder:
    """``requested``, ``committed``, ``require`` follow Spark's ``latestOffset``, ``commit``, ``partitions``.

    Offsets are counts.
    """

    def __init__(self, why: str, instead: str) -> None:
        """``why`` this source needs the order, and what a user may do ``instead``: for the error."""
        self._why, self._instead = why, instead
        self.began: int | None = None
        """Where the run began: an offset that Spark read from its log."""
        self._committed = -1
        self.synchronous = False
        """Whether a batch of this run was planned after the commit of the one before."""

    def requested(self, start: int) -> None:
        self.began = start if self.began is None else self.began

    def committed(self, end: int) -> None:
        self._committed = max(self._committed, end)

    def require(self, start: int) -> None:
        """Spark plans the batch that begins at ``start``. ``UnsupportedError`` if the one before was not committed."""
        if self.began is None or start <= self.began:
            return  # the first offset of a run comes from the log
        if self._committed < start:
            raise UnsupportedError(
                "Spark planned a batch before it committed the one before: asyncProgressTrackingEnabled is on."
                f" {self._why}",
                f"Leave asyncProgressTrackingEnabled out, {self._instead}. Nothing was deleted that the checkpoint may"
                " need.",
            )
        self.synchronous = True
