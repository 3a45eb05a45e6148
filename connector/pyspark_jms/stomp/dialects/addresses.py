"""How a dialect spells destinations: ``Destination`` ↔ the text of the header ``destination``. Data, and one rule."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import Destination, DestinationKind

__all__ = ["Addresses", "Refused", "has_wildcards", "reads_too"]

_ANY_WORDS = frozenset("#>")
_MANAGED_WILDCARDS = frozenset("*#")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Names that the broker would read as something else."""

    pattern: str
    because: str
    """Goes on after the name."""

    when_reading: bool = True
    remedy: str = "Use another name."

    def check(self, name: str) -> None:
        if re.search(self.pattern, name):
            raise InvalidDestinationError(f"The name {name!r} {self.because}.", self.remedy)


_OURS = Refused(
    pattern=r"pyspark-jms\.(commits|management)(\.|:|$)",
    because="is reserved for this connector's own queues, so rows must not name it",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    prefixes: Mapping[DestinationKind, str] = field(default_factory=lambda: dict.fromkeys(DestinationKind, ""))

    percent_encoded: bool = False
    """Whether a name is percent-encoded, as in a URL."""

    queue_separator: str = ""
    """Between an address and a queue of it, where a queue's name may have both; without both it is the queue's own."""

    wildcards: str = ""
    """Characters of a topic that stay as they are for a reader, though names are percent-encoded."""

    temporary: Mapping[DestinationKind, tuple[str, str]] = field(default_factory=dict)
    """How names of temporary destinations begin, and the prefix they have instead."""

    literal: Mapping[DestinationKind, tuple[str, ...]] = field(default_factory=dict)
    """What begins so is the broker's own spelling, and goes as it is."""

    refused: tuple[Refused, ...] = ()

    closed_to_rows: tuple[Refused, ...] = ()
    """Names that an option may give, and a row may not: the broker acts on what is sent there."""

    def queue_of(self, name: str) -> str:
        """The queue of a fully qualified name (``ADDRESS::QUEUE``), or the name itself."""
        return name.rpartition(self.queue_separator)[2] if self.queue_separator else name

    def spelled(self, destination: Destination, *, sending: bool, by_row: bool = False) -> str:
        """The value of ``destination``; ``InvalidDestinationError`` for a name this broker would read otherwise.

        ``by_row``: the column ``destination`` of a row gives the name, which may come from whoever sent a message.
        """
        name = destination.name
        for rule in self.refused:
            if sending or rule.when_reading:
                rule.check(name)
        for rule in (*self.closed_to_rows, _OURS) if by_row else ():
            rule.check(name)
        if name.startswith(self.literal.get(destination.kind, ())):
            return name
        begin, prefix = self.temporary.get(destination.kind, ("", ""))
        if not (begin and name.startswith(begin)):
            prefix = self.prefixes[destination.kind]
        if not self.percent_encoded:
            return prefix + name
        pattern = destination.kind is DestinationKind.TOPIC and not sending
        return prefix + quote(name, safe=self.wildcards if pattern else "")


def has_wildcards(queue: str) -> bool:
    """Whether the name is a pattern on a broker with management: no queue has this name."""
    return not _MANAGED_WILDCARDS.isdisjoint(queue)


def reads_too(read: str, queue: str) -> bool:
    """Whether a reader of ``read`` may receive what is sent to ``queue``, on any of the brokers.

    ``read`` may have wildcards: ``*`` is one word, ``#`` (Artemis) and ``>`` (Classic) any number of them. Of
    ``ADDRESS::QUEUE`` both parts count, for the address decides where a message goes.
    """
    patterns, names = {read, *read.split("::")}, {queue, *queue.split("::")}
    return any(_match(pattern.split("."), name.split(".")) for pattern in patterns for name in names)


def _match(pattern: Sequence[str], words: Sequence[str]) -> bool:
    if not pattern:
        return not words
    if pattern[0] in _ANY_WORDS:
        return any(_match(pattern[1:], words[skipped:]) for skipped in range(len(words) + 1))
    return bool(words) and pattern[0] in {"*", words[0]} and _match(pattern[1:], words[1:])
