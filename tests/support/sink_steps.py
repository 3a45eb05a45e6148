"""Commands of the commit of one task, and events: what a model of the broker carries out, and reports. Values.

Each command is answered by one of the events. ``Lost`` answers every command: the connection is closed, or the broker
did not answer in time.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sighting:
    """A token as the broker shows it. ``deliveries``: earlier ones without an acknowledgement."""

    token: Any
    deliveries: int = 0


@dataclass(frozen=True)
class Lock:
    """Attach the unshared durable subscription → ``sink_protocol.Locked``, ``LockHeld``."""


@dataclass(frozen=True)
class CreateToken:
    """Send the token, outside of a transaction → ``TokenCreated``."""

    token: Any


@dataclass(frozen=True)
class RenewToken:
    """In a transaction of its own: accept all tokens, send this one → ``Renewed``."""

    token: Any


@dataclass(frozen=True)
class Commit:
    """Accept the tokens, send this one, discharge: with the rows that were sent → ``Committed``."""

    token: Any


@dataclass(frozen=True)
class LockHeld:
    pass


@dataclass(frozen=True)
class TokenCreated:
    pass


@dataclass(frozen=True)
class Renewed:
    pass


@dataclass(frozen=True)
class Committed:
    pass


@dataclass(frozen=True)
class Lost:
    pass
