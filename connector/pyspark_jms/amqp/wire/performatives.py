"""The bodies of frames (AMQP 1.0 §2.7) and of SASL frames (§5.3.3), field by field as the specification has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = [
    "Attach",
    "Begin",
    "Close",
    "Detach",
    "Disposition",
    "End",
    "Flow",
    "Open",
    "SaslChallenge",
    "SaslInit",
    "SaslMechanisms",
    "SaslOutcome",
    "SaslResponse",
    "Transfer",
]

Names: TypeAlias = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """§2.7.1."""

    container_id: str
    hostname: str | None = None
    max_frame_size: int | None = None
    channel_max: int | None = None
    idle_time_out: int | None = None
    outgoing_locales: Names | None = None
    incoming_locales: Names | None = None
    offered_capabilities: Names | None = None
    desired_capabilities: Names | None = None
    properties: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """§2.7.2."""

    remote_channel: int | None = None
    next_outgoing_id: int
    incoming_window: int
    outgoing_window: int
    handle_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attach:
    """§2.7.3. ``role``: True for a receiver."""

    name: str
    handle: int
    role: bool
    snd_settle_mode: int | None = None
    rcv_settle_mode: int | None = None
    source: Any = None
    target: Any = None
    unsettled: Any = None
    incomplete_unsettled: bool | None = None
    initial_delivery_count: int | None = None
    max_message_size: int | None = None
    offered_capabilities: Names | None = None
    desired_capabilities: Names | None = None
    properties: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """§2.7.4."""

    next_incoming_id: int | None = None
    incoming_window: int
    next_outgoing_id: int
    outgoing_window: int
    handle: int | None = None
    delivery_count: int | None = None
    link_credit: int | None = None
    available: int | None = None
    drain: bool | None = None
    echo: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """§2.7.5."""

    handle: int
    delivery_id: int | None = None
    delivery_tag: bytes | None = None
    message_format: int | None = None
    settled: bool | None = None
    more: bool | None = None
    rcv_settle_mode: int | None = None
    state: Any = None
    resume: bool | None = None
    aborted: bool | None = None
    batchable: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disposition:
    """§2.7.6. ``role``: True when a receiver settles what it received."""

    role: bool
    first: int
    last: int | None = None
    settled: bool | None = None
    state: Any = None
    batchable: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detach:
    """§2.7.7."""

    handle: int
    closed: bool | None = None
    error: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """§2.7.8."""

    error: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """§2.7.9."""

    error: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslMechanisms:
    """§5.3.3.1."""

    sasl_server_mechanisms: Names


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SaslInit:
    """§5.3.3.2. Has no ``repr`` of its own: the response holds the password."""

    mechanism: str
    initial_response: bytes | None = None
    hostname: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SaslChallenge:
    """§5.3.3.3. Has no ``repr`` of its own, as all that a password is proven with."""

    challenge: bytes


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SaslResponse:
    """§5.3.3.4."""

    response: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslOutcome:
    """§5.3.3.6. ``code`` 0: the login was accepted."""

    code: int
    additional_data: bytes | None = None
