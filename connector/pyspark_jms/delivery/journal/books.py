"""What the journal knows besides its messages: position, batches, receipts. One file of lines that grows.

An entry costs one small synced write instead of a new file. The file is written anew, with what still counts,
when it has grown and after a write that failed or was cut short.
"""

from dataclasses import dataclass
from typing import Any

from pyspark_jms.delivery.journal.folder import Appender, Folder
from pyspark_jms.delivery.journal.lines import Facts, read_log, write_line
from pyspark_jms.errors import CorruptJournalError

__all__ = ["FILE_NAME", "Books", "Position"]

FILE_NAME = "books"
_LONGEST = 1 << 20
"""Bytes after which the file is written anew: 10,000 entries or so, read in some 50 ms."""


@dataclass(frozen=True, slots=True)
class Position:
    """Every message below ``oldest`` is done and forgotten; the next one to come gets the sequence ``next``."""

    oldest: int
    next: int


class Books:
    """``position.next`` is as of the last entry about it: segments may go on from there."""

    def __init__(self, folder: Folder, position: Position) -> None:
        self._folder = folder
        self._appender: Appender | None = None
        self._last = b""
        self._length = 0
        self.position = position
        self.batches: dict[tuple[int, int], list[int]] = {}
        self.acknowledged: set[int] = set()
        """First sequences of the segments whose receipt was here."""
        self.subscribed = 0.0
        """Seconds that the query has been subscribed, in all its processes, as far as that was entered."""

    @classmethod
    def create(cls, folder: Folder) -> None:
        folder.write(FILE_NAME, [write_line({"position": [0, 0]})])

    @classmethod
    def load(cls, folder: Folder) -> "Books":
        """What they say is acted upon, so it must not be only in the memory of a system whose power may fail."""
        folder.sync(FILE_NAME)
        data = folder.read(FILE_NAME)
        log = read_log(data, str(folder.path / FILE_NAME))
        books = cls(folder, Position(0, 0))
        try:
            for entry in log.entries:
                books._apply(entry)
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptJournalError(
                f"The journal's file {folder.path / FILE_NAME} says what nobody writes."
            ) from error
        if not log.entries:
            raise CorruptJournalError(f"The journal's file {folder.path / FILE_NAME} is empty.")
        if log.length == len(data):
            books._last, books._length = log.last, log.length
            books._appender = Appender(folder.path / FILE_NAME)
        return books

    def enter_position(self, position: Position) -> None:
        """Durable on return. Batches that end before it are forgotten."""
        self._enter({"position": [position.oldest, position.next]}, durable=True)

    def enter_batch(self, start: int, end: int, cuts: list[int]) -> None:
        """Durable on return."""
        self._enter({"batch": [start, end], "cuts": cuts}, durable=True)

    def enter_acknowledged(self, first: int) -> None:
        """Durable with the next entry that is."""
        self._enter({"acknowledged": first}, durable=False)

    def enter_subscribed(self, seconds: float) -> None:
        """Durable with the next entry that is."""
        self._enter({"subscribed": round(seconds, 1)}, durable=False)

    def forget_acknowledged(self, first: int) -> None:
        """Of a segment that is deleted; the file forgets it when it is written anew."""
        self.acknowledged.discard(first)

    def _rewrite(self) -> None:
        """Write the file anew, with what counts."""
        self.close()
        lines, last = [], b""
        for entry in self._all():
            last = write_line(entry, last)
            lines.append(last)
        self._length = self._folder.write(FILE_NAME, [b"".join(lines)])
        self._last = last
        self._appender = Appender(self._folder.path / FILE_NAME)

    def close(self) -> None:
        if self._appender is not None:
            self._appender.close()
        self._appender = None

    def _all(self) -> list[Facts]:
        entries: list[Facts] = [{"position": [self.position.oldest, self.position.next]}]
        entries += [{"batch": [*batch], "cuts": cuts} for batch, cuts in self.batches.items()]
        entries += [{"acknowledged": first} for first in sorted(self.acknowledged)]
        entries += [{"subscribed": self.subscribed}] if self.subscribed else []
        return entries

    def _enter(self, entry: Facts, *, durable: bool) -> None:
        if self._appender is None or self._length > _LONGEST:
            self._rewrite()
        assert self._appender is not None
        line = write_line(entry, self._last)
        try:
            self._appender.append(line, durable=durable)
        except BaseException:
            self.close()  # what the file holds now is not known: the next entry writes it anew
            raise
        self._last = line
        self._length += len(line)
        self._apply(entry)

    def _apply(self, entry: dict[str, Any]) -> None:
        match entry:
            case {"position": [int(oldest), int(following)]}:
                self.position = Position(oldest, following)
                self.batches = {batch: cuts for batch, cuts in self.batches.items() if batch[1] > oldest}
            case {"batch": [int(start), int(end)], "cuts": list(cuts)}:
                self.batches[start, end] = cuts
            case {"acknowledged": int(first)}:
                self.acknowledged.add(first)
            case {"subscribed": int(seconds) | float(seconds)}:
                self.subscribed = seconds
            case _:
                raise ValueError(entry)
