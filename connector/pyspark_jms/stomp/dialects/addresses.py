"""``Destination`` → the value of the header ``destination``: prefixes, encoding, and names that a broker misreads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.jms.names import CONNECTOR_QUEUES, RefusedName


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The spelling of names of queues and topics in a broker's header ``destination``."""

    prefixes: Mapping[DestinationKind, str] = field(default_factory=lambda: dict.fromkeys(DestinationKind, ""))
    """The prefix of a queue's name, and of a topic's (``/queue/``)."""

    percent_encoded: bool = False
    """Whether names are percent-encoded, as in a URL."""

    queue_separator: str = ""
    """Separates address and queue in a fully qualified queue name (``address::queue``). Empty: there are no such
    names."""

    topic_wildcards: str = ""
    """Wildcard characters that are not percent-encoded in the topic of a SUBSCRIBE."""

    temporary_prefixes: Mapping[DestinationKind, tuple[str, str]] = field(default_factory=dict)
    """For temporary destinations: the beginning of their names, and the prefix used in place of ``prefixes``. A name
    with that beginning is one of these also where the row does not state that it is temporary."""

    native_prefixes: Mapping[DestinationKind, tuple[str, ...]] = field(default_factory=dict)
    """A name that begins with one of these is written in the broker's own syntax, and is sent unchanged."""

    refused_names: tuple[RefusedName, ...] = ()
    """Names that the broker would take for something else."""

    refused_in_rows: tuple[RefusedName, ...] = ()
    """Names that an option may have and column ``destination`` may not: the broker acts on messages sent there."""

    def queue_of(self, name: str) -> str:
        """The queue of a fully qualified name (``ADDRESS::QUEUE``), or the name itself."""
        return name.rpartition(self.queue_separator)[2] if self.queue_separator else name

    def header_value(self, destination: Destination, *, sending: bool, by_row: bool = False) -> str:
        """The value of the header ``destination``; ``InvalidDestinationError`` for a refused name.

        ``by_row``: the name comes from column ``destination``, and so perhaps from the producer of another message.
        """
        name = destination.name
        for rule in self.refused_names:
            if sending or rule.when_reading:
                rule.check(name)
        for rule in (*self.refused_in_rows, CONNECTOR_QUEUES) if by_row else ():
            rule.check(name)
        if name.startswith(self.native_prefixes.get(destination.kind, ())):
            return name
        beginning, prefix = self.temporary_prefixes.get(destination.kind, ("", ""))
        if not prefix or not (destination.temporary or name.startswith(beginning)):
            prefix = self.prefixes[destination.kind]
        if not self.percent_encoded:
            return prefix + name
        may_be_pattern = destination.kind is DestinationKind.TOPIC and not sending
        return prefix + quote(name, safe=self.topic_wildcards if may_be_pattern else "")
