"""The stored messages without a recorded receipt: the broker may redeliver them, and they are recognised then.

As long as a segment exists, the ids in it recognise its messages. Then a *tombstone* does, until they have been
redelivered and acknowledged, or until the query has been subscribed for a day: without a subscription nothing is
redelivered. ``write_tombstones`` saves what recognises the messages of segments that are about to be deleted.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from pyspark_jms.delivery.journal.contents import TOMBSTONE, SegmentInfo, read_segment
from pyspark_jms.delivery.journal.folder import Folder
from pyspark_jms.delivery.journal.journal_log import JournalLog, Position
from pyspark_jms.delivery.journal.lines import read_line, write_line
from pyspark_jms.delivery.journal.segment import Segment
from pyspark_jms.errors import CorruptJournalError

__all__ = ["Fingerprints", "PendingReceipts", "UnconfirmedRange"]

TOMBSTONE_SECONDS = 24 * 3600.0
"""Subscribed time after which a tombstone expires. Brokers redeliver much earlier, when a connection times out."""
_FINGERPRINT_BYTES = 16


@dataclass(slots=True, kw_only=True)
class UnconfirmedRange:
    """Those of the messages ``first`` to ``last`` (not included) of ``source`` that may be redelivered."""

    first: int
    last: int
    source: str
    fingerprints: dict[bytes, bytes] = field(repr=False)
    """By id. Empty bytes as long as the segment exists, from which they can be made."""
    since: float | None = None
    """Seconds that the query had been subscribed when the tombstone was written, or None if the segment exists."""
    size: int = 0
    """Bytes of the tombstone."""

    def expired(self, subscribed: float) -> bool:
        return self.since is not None and subscribed - self.since >= TOMBSTONE_SECONDS


def tombstone_name(first: int) -> str:
    return f"tombstone-{first:019d}"


def write_tombstone(folder: Folder, messages: UnconfirmedRange, subscribed: float) -> UnconfirmedRange:
    """Durable on return. Returns the same messages, recognised by the tombstone from now on."""
    facts = {
        "first": messages.first,
        "last": messages.last,
        "source": messages.source,
        "subscribed": subscribed,
        "ids": [identifier.decode("latin-1") for identifier in messages.fingerprints],
        "fingerprints": b"".join(messages.fingerprints.values()).hex(),
    }
    size = folder.write(tombstone_name(messages.first), [write_line(facts)])
    return replace(messages, since=subscribed, size=size)


def read_tombstone(folder: Folder, name: str) -> UnconfirmedRange:
    data = folder.read(name)
    facts = read_line(data, str(folder.path / name))
    try:
        digests = bytes.fromhex(facts["fingerprints"])
        ids = [identifier.encode("latin-1") for identifier in facts["ids"]]
        fingerprints = [digests[at : at + _FINGERPRINT_BYTES] for at in range(0, len(digests), _FINGERPRINT_BYTES)]
        return UnconfirmedRange(
            first=int(facts["first"]),
            last=int(facts["last"]),
            source=str(facts["source"]),
            since=float(facts["subscribed"]),
            fingerprints=dict(zip(ids, fingerprints, strict=True)),
            size=len(data),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptJournalError(f"The journal's file {folder.path / name} has an unknown form.") from error


def load_tombstones(folder: Folder, position: Position) -> dict[int, UnconfirmedRange]:
    """By first sequence. Deletes tombstones of a release that a crash interrupted before it recorded its position."""
    tombstones = {}
    for name in folder.names():
        if TOMBSTONE.fullmatch(name):
            messages = read_tombstone(folder, name)
            if messages.last > position.oldest:
                folder.delete(name)
            else:
                tombstones[messages.first] = messages
    return tombstones


# --- what is pending ---------------------------------------------------------------------------------

_RECORD_EVERY_SECONDS = 60.0
"""A process that is killed loses at most this much of the time that it was subscribed."""

Fingerprints: TypeAlias = Callable[[Segment], Sequence[bytes]]
"""For each message of a segment a digest (16 bytes) of the parts that are the same in a redelivery."""


class UnacknowledgedMessage(NamedTuple):
    """A message without a recorded receipt. When it is redelivered, it is acknowledged and not read again."""

    source: str
    id: bytes
    fingerprint: bytes


class PendingReceipts:
    """By first sequence of a segment, or of a deleted segment with a tombstone.

    ``segments``: those of the journal, kept up to date by its owner.
    """

    def __init__(
        self, folder: Folder, log: JournalLog, segments: Mapping[int, SegmentInfo], fingerprints: Fingerprints
    ) -> None:
        self._folder = folder
        self._log = log
        self._segments = segments
        self._make_fingerprints = fingerprints
        self._subscribed = log.subscribed
        self._unconfirmed = load_tombstones(folder, log.position)

    # --- what is pending -----------------------------------------------------------------------

    def __contains__(self, first: int) -> bool:
        return first in self._unconfirmed

    @property
    def messages(self) -> int:
        """Messages of segments and tombstones."""
        return sum(len(messages.fingerprints) for messages in self._unconfirmed.values())

    @property
    def size(self) -> int:
        """Bytes of all tombstones."""
        return sum(messages.size for messages in self._unconfirmed.values())

    def unacknowledged(self) -> Iterator[UnacknowledgedMessage]:
        for messages in self._unconfirmed.values():
            for identifier, fingerprint in self._fingerprints(messages).items():
                yield UnacknowledgedMessage(messages.source, identifier, fingerprint)

    def fingerprints_from(self, first: int) -> dict[bytes, bytes]:
        """By id, those of the segment or tombstone that begins with this sequence."""
        messages = self._unconfirmed.get(first)
        return {} if messages is None else self._fingerprints(messages)

    def _fingerprints(self, messages: UnconfirmedRange) -> dict[bytes, bytes]:
        """Made from the segment as long as it exists: making them for every received message would cost too much."""
        if messages.since is not None:
            return messages.fingerprints
        segment = read_segment(self._segments[messages.first])
        fingerprints = dict(zip(segment.ids, self._make_fingerprints(segment), strict=True))
        return {identifier: fingerprints[identifier] for identifier in messages.fingerprints}

    # --- what happens --------------------------------------------------------------------------

    def expect(self, segment: Segment) -> None:
        """The messages of this segment are stored, and may be acknowledged."""
        self._unconfirmed[segment.first] = UnconfirmedRange(
            first=segment.first,
            last=segment.last,
            source=segment.source,
            fingerprints=dict.fromkeys(segment.ids, b""),
        )

    def confirm_all(self, first: int) -> None:
        """The broker confirmed the whole segment that begins, or began, with this sequence."""
        messages = self._unconfirmed.get(first)
        if messages is not None:
            self._confirmed(messages)

    def confirm(self, is_of: Callable[[str], bool], ids: Collection[bytes]) -> None:
        """The broker confirmed these redelivered messages. ``is_of`` knows the names of their source."""
        for messages in [messages for messages in self._unconfirmed.values() if is_of(messages.source)]:
            for identifier in ids:
                messages.fingerprints.pop(identifier, None)
            if not messages.fingerprints:
                self._confirmed(messages)

    def _confirmed(self, messages: UnconfirmedRange) -> None:
        """Nothing of it is redelivered any more: record that, or delete the tombstone."""
        if messages.since is None:
            self._log.record_acknowledged(messages.first)
        else:
            self._folder.delete(tombstone_name(messages.first))
        del self._unconfirmed[messages.first]

    # --- tombstones ----------------------------------------------------------------------------

    def write_tombstones(self, done: Collection[SegmentInfo]) -> dict[int, UnconfirmedRange]:
        """Write tombstones for those of these segments whose receipt was not recorded. They are durable on return."""
        tombstones = {}
        for info in done:
            messages = self._unconfirmed.get(info.first)
            if messages is not None and messages.since is None:
                known = replace(messages, fingerprints=self._fingerprints(messages))
                tombstones[info.first] = write_tombstone(self._folder, known, self._subscribed)
        return tombstones

    def use_tombstones(self, tombstones: Mapping[int, UnconfirmedRange]) -> None:
        """Let the tombstones recognise the messages, so that their segments may be deleted."""
        self._unconfirmed.update(tombstones)

    def expire(self) -> list[UnconfirmedRange]:
        """Delete and return the tombstones whose time is over."""
        expired = [messages for messages in self._unconfirmed.values() if messages.expired(self._subscribed)]
        for messages in expired:
            self._confirmed(messages)
        return expired

    def note_subscribed(self, seconds: float) -> None:
        """The query was subscribed for so much longer. Recorded about once a minute."""
        self._subscribed += seconds
        if self._subscribed - self._log.subscribed >= _RECORD_EVERY_SECONDS:
            self.record_subscribed()

    @property
    def subscribed_unrecorded(self) -> bool:
        return self._subscribed > self._log.subscribed

    def record_subscribed(self) -> None:
        self._log.record_subscribed(self._subscribed)
