"""What the planner gives to a task of an exactly-once read. Spark carries it there by its module."""

from dataclasses import dataclass

from pyspark_jms.delivery.register.outcomes import Read
from pyspark_jms.source.mailbox import MailAddress

__all__ = ["ReaderInput", "report_number"]

_READER_BITS = 16


@dataclass(frozen=True, slots=True)
class ReaderInput:
    """What a task gets: nothing of the messages."""

    read: Read
    base: str
    """The address of the registers."""
    readers: int
    """How many share the limits of the batch."""
    broker: str | None = None
    """The identity of the broker that has the register, if it is known."""
    drain_since_ms: float | None = None
    """With AvailableNow: what was sent later is not received."""

    question: MailAddress | None = None
    drops: MailAddress | None = None
    """Where to report that the task runs on the driver's machine, and how many messages the selector dropped."""

    def __repr__(self) -> str:
        return f"reader {self.read.reader} of batch {self.read.batch}"


def report_number(batch: int, reader: int = 0) -> int:
    """Return what identifies the report of a task; the sequences of two readers are the same."""
    return batch << _READER_BITS | reader
