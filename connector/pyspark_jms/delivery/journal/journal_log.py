"""The file ``log`` of a journal: its position, recorded batches and receipts, as a log of lines.

An entry costs one small synced write instead of a new file. The file is rewritten, with the entries that still count,
when it has grown, and after a write that failed or was cut short.
"""

from dataclasses import dataclass
from typing import Any

from pyspark_jms.delivery.journal.folder import Appender, Folder
from pyspark_jms.delivery.journal.lines import Facts, read_log, write_line
from pyspark_jms.errors import CorruptJournalError

__all__ = ["FILE_NAME", "JournalLog", "Position"]

FILE_NAME = "log"
_MAX_BYTES = 1 << 20
"""The file is rewritten above this size: about 10,000 entries, which are read in some 50 ms."""


@dataclass(frozen=True, slots=True)
class Position:
    """Batches with messages below ``oldest`` are done. The next message to be stored gets the sequence ``next``."""

    oldest: int
    next: int


class JournalLog:
    """``position.next`` is the value of the last recorded position: segments may continue after it."""

    def __init__(self, folder: Folder, position: Position) -> None:
        self._folder = folder
        self._appender: Appender | None = None
        self._last = b""
        self._length = 0
        self.position = position
        self.batches: dict[tuple[int, int], list[int]] = {}
        self.acknowledged: set[int] = set()
        """First sequences of the segments whose receipt has been recorded."""
        self.subscribed = 0.0
        """Seconds that the query has been subscribed, in all its processes, as far as they have been recorded."""

    @classmethod
    def create(cls, folder: Folder) -> None:
        folder.write(FILE_NAME, [write_line({"position": [0, 0]})])

    @classmethod
    def load(cls, folder: Folder) -> "JournalLog":
        """Read the file, after a sync: what the caller does because of an entry must not outlive the entry."""
        folder.sync(FILE_NAME)
        data = folder.read(FILE_NAME)
        lines = read_log(data, str(folder.path / FILE_NAME))
        log = cls(folder, Position(0, 0))
        try:
            for entry in lines.entries:
                log._apply(entry)
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptJournalError(
                f"The journal's file {folder.path / FILE_NAME} has an entry of unknown form."
            ) from error
        if not lines.entries:
            raise CorruptJournalError(f"The journal's file {folder.path / FILE_NAME} is empty.")
        if lines.length == len(data):
            log._last, log._length = lines.last, lines.length
            log._appender = Appender(folder.path / FILE_NAME)
        return log

    def record_position(self, position: Position) -> None:
        """Durable on return. Drops the batches that end before the position."""
        self._append({"position": [position.oldest, position.next]}, durable=True)

    def record_batch(self, start: int, end: int, starts: list[int]) -> None:
        """Durable on return."""
        self._append({"batch": [start, end], "partitions": starts}, durable=True)

    def record_acknowledged(self, first: int) -> None:
        """Durable with the next entry that is durable on return."""
        self._append({"acknowledged": first}, durable=False)

    def record_subscribed(self, seconds: float) -> None:
        """Durable with the next entry that is durable on return."""
        self._append({"subscribed": round(seconds, 1)}, durable=False)

    def close(self) -> None:
        if self._appender is not None:
            self._appender.close()
        self._appender = None

    def _rewrite(self) -> None:
        """Replace the file by one with the entries that still count."""
        self.close()
        lines, last = [], b""
        for entry in self._entries():
            last = write_line(entry, last)
            lines.append(last)
        self._length = self._folder.write(FILE_NAME, [b"".join(lines)])
        self._last = last
        self._appender = Appender(self._folder.path / FILE_NAME)

    def _entries(self) -> list[Facts]:
        entries: list[Facts] = [{"position": [self.position.oldest, self.position.next]}]
        entries += [{"batch": [*batch], "partitions": starts} for batch, starts in self.batches.items()]
        entries += [{"acknowledged": first} for first in sorted(self.acknowledged)]
        entries += [{"subscribed": self.subscribed}] if self.subscribed else []
        return entries

    def _append(self, entry: Facts, *, durable: bool) -> None:
        if self._appender is None or self._length > _MAX_BYTES:
            self._rewrite()
        assert self._appender is not None
        line = write_line(entry, self._last)
        try:
            self._appender.append(line, durable=durable)
        except BaseException:
            self.close()  # the content of the file is unknown now: the next entry rewrites it
            raise
        self._last = line
        self._length += len(line)
        self._apply(entry)

    def _apply(self, entry: dict[str, Any]) -> None:
        match entry:
            case {"position": [int(oldest), int(following)]}:
                self.position = Position(oldest, following)
                self.batches = {batch: starts for batch, starts in self.batches.items() if batch[1] > oldest}
            case {"batch": [int(start), int(end)], "partitions": list(starts)}:
                self.batches[start, end] = starts
            case {"acknowledged": int(first)}:
                self.acknowledged.add(first)
            case {"subscribed": int(seconds) | float(seconds)}:
                self.subscribed = seconds
            case _:
                raise ValueError(entry)
