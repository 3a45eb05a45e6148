"""Spark's calls on a source, in their order → whether its commit log is written before it requests the next batch.

With the default progress tracking, ``latestOffset(start=E)`` means that the batch which ends at E is in the commit
log, and ``commit(E)`` follows before the next batch is planned. With ``asyncProgressTrackingEnabled`` neither is so
(measured on Spark 4.3: most batches never reach the log). The second batch of a run shows which of the two it is.
"""

from pyspark_jms.errors import UnsupportedError

__all__ = ["CommitOrder"]


class CommitOrder:
    """``requested``, ``committed``, ``require`` follow Spark's ``latestOffset``, ``commit``, ``partitions``.

    Offsets are counts.
    """

    def __init__(self, why: str, instead: str) -> None:
        """``why`` this source needs the order, and what a user may do ``instead``: for the error."""
        self._why, self._instead = why, instead
        self._began: int | None = None
        self._committed = -1
        self.synchronous = False
        """Whether a batch of this run was planned after the commit of the one before."""

    def requested(self, start: int) -> None:
        self._began = start if self._began is None else self._began

    def is_first(self, start: int) -> bool:
        """Whether this is where the run began: an offset that Spark read from its log."""
        return start == self._began

    def committed(self, end: int) -> None:
        self._committed = max(self._committed, end)

    def require(self, start: int) -> None:
        """Spark plans the batch that begins at ``start``. ``UnsupportedError`` if the one before was not committed."""
        if self._began is None or start <= self._began:
            return  # the first offset of a run comes from the log
        if self._committed < start:
            raise UnsupportedError(
                "Spark planned a batch before it committed the one before: asyncProgressTrackingEnabled is on."
                f" {self._why}",
                f"Leave asyncProgressTrackingEnabled out, {self._instead}. Nothing was deleted that the checkpoint may"
                " need.",
            )
        self.synchronous = True
