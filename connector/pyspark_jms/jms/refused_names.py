"""Names of destinations that a broker misreads, or that a row must not name. Knows no broker."""

import re
from dataclasses import dataclass

from pyspark_jms.errors import InvalidDestinationError

__all__ = ["CONNECTOR_QUEUES", "RefusedName"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedName:
    """A rule for names that must not reach the broker, because it would not take them for plain names."""

    pattern: str
    """A regular expression; a name in which it is found is refused."""

    reason: str
    """The rest of the error's sentence "The name NAME …"."""

    when_reading: bool = True
    """Whether the rule holds for reading too, and not only for sending."""

    when_sending: bool = True
    """Whether the rule holds for sending too, and not only for reading."""

    remedy: str = "Use another name."
    """The remedy in the error."""

    def check(self, name: str) -> None:
        if re.search(self.pattern, name):
            raise InvalidDestinationError(f"The name {name!r} {self.reason}.", self.remedy)


CONNECTOR_QUEUES = RefusedName(
    pattern=r"(^|[:/])pyspark-jms\.",
    reason="is reserved for this connector's own queues, so no row and no moved message may go there",
)
"""The prefix of commit ledgers, staging queues, replies of the management and scratch queues."""
