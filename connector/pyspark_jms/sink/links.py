"""What the sink's engine needs of a protocol. Types only.

A protocol implements them in its own folder and imports nothing from here. ``spark.protocols`` names the
implementation, and mypy compares it with these types there.

A *block* is the bytes of one or more whole messages, as the protocol encodes them. A *confirmation* is the broker's
answer that it has the messages.
"""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.columns.row_parts import RowsDigest
from pyspark_jms.columns.sink_schema import SendDefaults
from pyspark_jms.columns.strings import Int64s
from pyspark_jms.delivery.commit_token import LedgerEntry
from pyspark_jms.delivery.ledger_owner import LedgerOwner
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["CommitLedger", "LedgerLink", "SinkLink", "SinkProtocol"]


class SinkLink(Protocol):
    """``with … as link: send …; commit()``: a connection with one transaction at a time.

    Without the commit, no message of the transaction becomes visible.
    """

    @property
    def confirms_single_messages(self) -> bool:
        """Whether the broker confirms a message outside of a transaction."""

    @property
    def has_transactions(self) -> bool:
        """Whether the broker is one that keeps transactions; ``require_transactions`` tries it."""

    def require_transactions(self) -> None:
        """Raise ``UnsupportedError`` if the broker has no transactions that it keeps."""

    def encode(
        self,
        rows: pa.RecordBatch,
        *,
        defaults: SendDefaults,
        property_columns: Sequence[str],
        now_ms: int,
        first_row: int = 0,
        numbers: Int64s | None = None,
        in_transaction: bool = True,
        confirm_each: bool = False,
    ) -> Sequence[MessageBlock]:
        """One message a row, in order, in a few blocks. Raises before it returns anything if a row cannot be sent.

        ``first_row`` is the number of the first row in the task, or ``numbers`` has the number of each row: errors name
        them. A time to live counts from ``now_ms``. ``property_columns`` become typed properties. The last two say how
        the blocks will be sent: with ``send``, or with ``send_at_once`` and then ``await_each`` for each row.
        """

    def send(self, block: MessageBlock) -> None:
        """Send the messages of a block in the open transaction; the first block opens it.

        A refusal may show only at the commit.
        """

    def send_at_once(self, block: MessageBlock) -> None:
        """Send the messages of a block outside of a transaction. The next commit confirms them too."""

    def await_each(self, first_row: int, count: int) -> None:
        """Return when the broker has confirmed each of these rows, which were sent at once."""

    def commit(self) -> None:
        """Return when the broker has confirmed the transaction. Without an open transaction, do nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Roll back what was not committed, and disconnect."""


class SinkProtocol(Protocol):
    @property
    def name(self) -> str: ...

    def connect(self, settings: ConnectionSettings, *, patience: float = 0.0) -> SinkLink:
        """``patience``: for how many seconds to retry the connection while the broker is away."""

    def commit_ledger(self, settings: ConnectionSettings, owner: LedgerOwner) -> "CommitLedger":
        """The ledger of this owner. Connects with its first call. ``UnsupportedError`` over STOMP."""


# --- exactly-once writes by a commit ledger ---------------------------------------------------------------


class LedgerLink(SinkLink, Protocol):
    """A link whose transaction can end with an entry of the ledger."""

    def new_digest(self) -> RowsDigest: ...

    def commit_with_entry(self, entry: LedgerEntry, admit: Callable[[tuple[LedgerEntry, ...]], bool]) -> None:
        """Commit the rows and their entry together. After a transient ``LinkError`` the outcome is unknown.

        ``admit`` is called with all entries of the batch, under the lock of the ledger, right before the commit. False:
        the rows are not committed, because they were before; its errors pass.
        """


class CommitLedger(Protocol):
    """One entry for each committed task, at the broker. Each look-up connects and disconnects."""

    @property
    def queue(self) -> str: ...

    @property
    def requirements(self) -> str:
        """Which permissions and which queues the ledger needs, as a sentence for an error's remedy."""

    def connect(self, *, patience: float = 0.0) -> LedgerLink:
        """A link for one task. Raises ``UnsupportedError`` if the broker has no lock for a ledger."""

    def find_for_task(self, task: str, *, write: str, execution: str) -> tuple[LedgerEntry, ...]:
        """The entries of the task, and those that other executions of its write left for any task."""

    def find_for_write(self, write: str) -> tuple[LedgerEntry, ...]:
        """The entries of all tasks of a write."""

    def find_late(self, task: str) -> tuple[LedgerEntry, ...]:
        """The entries of a task after a commit without confirmation; waits while the broker is away."""

    def finish(self, write: str) -> None:
        """All tasks of a run have committed: the ledger of a job keeps one entry for all of them."""
