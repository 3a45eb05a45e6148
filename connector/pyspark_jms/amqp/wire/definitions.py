"""What performatives carry: errors (AMQP 1.0 §2.8), termini and outcomes (§3.4, §3.5), transactions (§4.5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = [
    "Accepted",
    "Coordinator",
    "Declare",
    "Declared",
    "Discharge",
    "Error",
    "Modified",
    "Received",
    "Rejected",
    "Released",
    "Source",
    "Target",
    "TransactionalState",
]

Names: TypeAlias = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """§2.8.14."""

    condition: str
    description: str | None = None
    info: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """§3.5.3."""

    address: str | None = None
    durable: int | None = None
    expiry_policy: str | None = None
    timeout: int | None = None
    dynamic: bool | None = None
    dynamic_node_properties: Any = None
    distribution_mode: str | None = None
    filter: Mapping[str, Any] | None = None
    default_outcome: Any = None
    outcomes: Names | None = None
    capabilities: Names | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """§3.5.4."""

    address: str | None = None
    durable: int | None = None
    expiry_policy: str | None = None
    timeout: int | None = None
    dynamic: bool | None = None
    dynamic_node_properties: Any = None
    capabilities: Names | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """§3.4.1: how much of a message has arrived. Not an outcome."""

    section_number: int
    section_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """§3.4.2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """§3.4.3."""

    error: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """§3.4.4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Modified:
    """§3.4.5."""

    delivery_failed: bool | None = None
    undeliverable_here: bool | None = None
    message_annotations: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """§4.5.1."""

    capabilities: Names | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declare:
    """§4.5.2."""

    global_id: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Discharge:
    """§4.5.3."""

    txn_id: bytes
    fail: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """§4.5.4."""

    txn_id: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalState:
    """§4.5.8."""

    txn_id: bytes
    outcome: Any = None
