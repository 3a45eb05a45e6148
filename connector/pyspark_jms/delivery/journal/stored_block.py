"""Messages that lie in a journal, located by file and sequences. A task that sees the folder loads them there."""

from dataclasses import dataclass
from pathlib import Path

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.journal.folder import map_file
from pyspark_jms.delivery.journal.segment import read_head
from pyspark_jms.errors import CorruptJournalError

__all__ = ["StoredBlock"]


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """The sequences ``first`` to ``last`` (not included) of the segment in this file."""

    path: str
    digest: bytes
    """Of the segment (``SegmentInfo.digest``): another file of the same name is not read."""
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first

    def load(self) -> MessageBlock:
        """Map the file, prove the messages and copy them, in any process that sees the folder; no lock is needed.

        ``CorruptJournalError`` when the file is not the segment of ``digest``, ``JournalError`` when there is none:
        its messages are done, or this process does not see the journal's folder.
        """
        segment = read_head(map_file(Path(self.path)), self.path)
        if segment.digest != self.digest:
            raise CorruptJournalError(
                f"Segment {self.path} is not the one that the query wrote: another journal's, or replaced."
            )
        block = segment.block(self.first, self.last)
        block.data = bytes(block.data)
        return block
