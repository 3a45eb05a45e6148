"""The files of a journal's folder → their verified contents: nothing missing, nothing twice, nothing of others."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.journal.folder import TEMPORARY, Folder, map_file, refusals
from pyspark_jms.delivery.journal.journal_log import FILE_NAME as LOG_NAME
from pyspark_jms.delivery.journal.journal_log import JournalLog
from pyspark_jms.delivery.journal.lines import Facts, read_line, write_line
from pyspark_jms.delivery.journal.segment import Segment, read_head
from pyspark_jms.errors import CorruptJournalError, InvalidOptionError, UnsupportedError

__all__ = [
    "LOCK_NAME",
    "META_NAME",
    "TOMBSTONE",
    "JournalIdentity",
    "SegmentInfo",
    "StoredBlock",
    "info_of",
    "load_segments",
    "read_segment",
    "require_consecutive",
    "require_ours",
    "segment_name",
]

FORMAT = 1
LOCK_NAME = "lock"
META_NAME = "journal"
TOMBSTONE = re.compile(r"tombstone-\d{19}")
_SEGMENT = re.compile(r"segment-(\d{19})")
_OURS = re.compile(f"{META_NAME}|{LOCK_NAME}|{LOG_NAME}|{_SEGMENT.pattern}|{TOMBSTONE.pattern}")
_VOLUME_FILES = re.compile(r"\..*|lost\+found")
"""Names that file systems create in a new folder themselves."""


def segment_name(first: int) -> str:
    return f"segment-{first:019d}"


def _is_ours(name: str) -> bool:
    return _OURS.fullmatch(name.removesuffix(TEMPORARY)) is not None


def require_ours(path: Path) -> None:
    """Refuse a folder with files of others, before anything is written there."""
    with refusals(f"list {path}"):
        if not path.exists():
            return
        if not path.is_dir():
            raise InvalidOptionError(f"journalLocation {path} is not a folder.", "Name a folder that is empty or new.")
        names = {entry.name for entry in path.iterdir()}
    strange = sorted(name for name in names if not _is_ours(name) and not _VOLUME_FILES.fullmatch(name))
    if strange and META_NAME not in names:
        raise InvalidOptionError(
            f"journalLocation {path} is neither a journal nor empty: it holds {strange[0]}.",
            "Name a folder that is empty or new.",
        )


@dataclass(frozen=True, slots=True)
class JournalIdentity:
    """The identity of a journal. ``replaces``: ids of lost journals whose checkpoints continue with this one."""

    id: str
    created: str
    replaces: tuple[str, ...] = ()

    @classmethod
    def load(cls, folder: Folder, now: float) -> Self:
        """Delete files that a crash left half written, and create the journal if there is none."""
        for name in folder.names():
            if name.endswith(TEMPORARY) and _is_ours(name):
                folder.delete(name)
        if META_NAME not in folder.names():
            _create(folder, now)
        facts = read_line(folder.read(META_NAME), str(folder.path / META_NAME))
        if facts["format"] > FORMAT:
            raise UnsupportedError(
                f"The journal {folder.path} is of format {facts['format']}; this release reads formats up to {FORMAT}.",
                "Use the release of pyspark-jms that wrote it, or a newer one.",
            )
        return cls(facts["id"], facts["created"], tuple(facts.get("replaces", ())))

    def store(self, folder: Folder) -> None:
        """Durable on return."""
        facts: Facts = {"format": FORMAT, "id": self.id, "created": self.created}
        folder.write(META_NAME, [write_line(facts | ({"replaces": self.replaces} if self.replaces else {}))])


def _create(folder: Folder, now: float) -> None:
    """Write the file ``journal`` last: it makes the folder a journal."""
    orphans = [name for name in folder.names() if _SEGMENT.fullmatch(name) or TOMBSTONE.fullmatch(name)]
    if orphans:
        raise CorruptJournalError(f"The journal {folder.path} has lost its file {META_NAME}, but holds {orphans[0]}.")
    JournalLog.create(folder)
    created = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
    JournalIdentity(os.urandom(16).hex(), created).store(folder)


# --- segments ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentInfo:
    """A segment in the journal: sequences ``first`` to ``last`` (not included)."""

    first: int
    last: int
    source: str
    dialect: str
    size: int
    """Bytes of the file."""
    path: str
    digest: bytes
    """Proves to a reader in another process that the file at this path is this segment."""
    stored: float
    """When it was written, in seconds since 1970."""


def info_of(segment: Segment, path: Path, size: int, digest: bytes, stored: float) -> SegmentInfo:
    return SegmentInfo(
        first=segment.first,
        last=segment.last,
        source=segment.source,
        dialect=segment.dialect,
        size=size,
        path=str(path),
        digest=digest,
        stored=stored,
    )


def load_segments(folder: Folder) -> Iterator[tuple[Segment, SegmentInfo]]:
    """Every segment in order, verified to its last byte. The bytes are mapped: drop the segment soon."""
    for name in folder.names():
        match = _SEGMENT.fullmatch(name)
        if match is None:
            continue
        path = folder.path / name
        buffer = map_file(path)
        head = read_head(buffer, str(path))
        if head.first != int(match[1]):
            raise CorruptJournalError(f"Segment {path} holds sequences from {head.first} on: it was renamed.")
        segment = head.segment()
        yield segment, info_of(segment, path, len(buffer), head.digest, folder.changed(name))


def read_segment(info: SegmentInfo) -> Segment:
    """Map the segment and verify it again. Its bytes are not copied."""
    return read_head(map_file(Path(info.path)), info.path).segment()


def require_consecutive(path: Path, log: JournalLog, segments: list[SegmentInfo]) -> int:
    """The sequence at which the journal continues, if no segment is missing that the log refers to."""
    expected, before = log.position.oldest, path / LOG_NAME
    for info in segments:
        if info.first > expected or (info.first < expected and before != path / LOG_NAME):
            what = "there is a gap" if info.first > expected else "they overlap"
            raise CorruptJournalError(
                f"Between {before} and {info.path} of the journal {what}: sequence {expected} follows the one,"
                f" {info.first} begins the other."
            )
        expected, before = info.last, Path(info.path)
    recorded = max([log.position.next, *(end for _, end in log.batches), *(first + 1 for first in log.acknowledged)])
    if expected < recorded:
        raise CorruptJournalError(
            f"A segment is missing after {before}: it ends before sequence {expected}, and {path / LOG_NAME} has"
            f" records up to {recorded}."
        )
    return expected


# --- messages that lie in a journal ------------------------------------------------------------------


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
