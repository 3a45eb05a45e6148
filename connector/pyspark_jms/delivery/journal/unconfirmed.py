"""Messages whose receipt was not recorded: the broker may redeliver them, and they must be recognised then.

Their segment contains their ids until it is deleted. Then a *tombstone* does, until they have been redelivered and
acknowledged, or until the query has been subscribed for a day: without a subscription nothing is redelivered.
"""

import re
from dataclasses import dataclass, field, replace

from pyspark_jms.delivery.journal.folder import Folder
from pyspark_jms.delivery.journal.lines import read_line, write_line
from pyspark_jms.errors import CorruptJournalError

__all__ = ["TOMBSTONE", "UnconfirmedRange", "read_tombstone", "tombstone_name", "write_tombstone"]

TOMBSTONE = re.compile(r"tombstone-\d{19}")
"""Name of the file of a tombstone."""
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
