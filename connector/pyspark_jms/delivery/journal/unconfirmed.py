"""Messages whose receipt was not recorded: the broker may redeliver them, and they must be recognised then.

Their segment stands for them until it is deleted, then a *tombstone* does: until they were redelivered and
acknowledged, or until the query was subscribed for a day. While it is not subscribed nothing is redelivered to it.
"""

import re
from dataclasses import dataclass, field, replace

from pyspark_jms.delivery.journal.folder import Folder
from pyspark_jms.delivery.journal.lines import read_line, write_line
from pyspark_jms.errors import CorruptJournalError

__all__ = ["TOMBSTONE", "TOMBSTONE_SECONDS", "Unconfirmed", "read_tombstone", "tombstone_name", "write_tombstone"]

TOMBSTONE = re.compile(r"tombstone-\d{19}")
"""Name of a tombstone's file."""
TOMBSTONE_SECONDS = 24 * 3600.0
"""Of being subscribed. Far beyond any connection's time to live, after which a broker redelivers what was in flight."""
_FINGERPRINT_BYTES = 16


@dataclass(slots=True, kw_only=True)
class Unconfirmed:
    """Of the messages ``first`` to ``last`` (not included) of ``source``, those that are still to be recognised."""

    first: int
    last: int
    source: str
    fingerprints: dict[bytes, bytes] = field(repr=False)
    """By id; without bytes while the segment lives, from which they can be made."""
    since: float | None = None
    """How long the query had been subscribed when the tombstone was written, in seconds; None: their segment exists."""
    size: int = 0
    """Bytes of the tombstone."""

    def expired(self, subscribed: float) -> bool:
        return self.since is not None and subscribed - self.since >= TOMBSTONE_SECONDS


def tombstone_name(first: int) -> str:
    return f"tombstone-{first:019d}"


def write_tombstone(folder: Folder, messages: Unconfirmed, subscribed: float) -> Unconfirmed:
    """Durable on return. Returns what stands for the messages when their segment is gone."""
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


def read_tombstone(folder: Folder, name: str) -> Unconfirmed:
    data = folder.read(name)
    facts = read_line(data, str(folder.path / name))
    try:
        digests = bytes.fromhex(facts["fingerprints"])
        ids = [identifier.encode("latin-1") for identifier in facts["ids"]]
        cut = [digests[at : at + _FINGERPRINT_BYTES] for at in range(0, len(digests), _FINGERPRINT_BYTES)]
        return Unconfirmed(
            first=int(facts["first"]),
            last=int(facts["last"]),
            source=str(facts["source"]),
            since=float(facts.get("subscribed", 0.0)),  # earlier releases wrote the time of day: counted from now on
            fingerprints=dict(zip(ids, cut, strict=True)),
            size=len(data),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptJournalError(f"The journal's file {folder.path / name} says what nobody writes.") from error
