"""Composite types of AMQP 1.0, described lists of fields: their classes, their bytes, and the frames that carry them.

One table drives both directions. It has the code of each type, and the type of each field in the order of the
specification.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, BinaryIO, TypeAlias

from pyspark_jms.amqp.wire.sections import Buffer
from pyspark_jms.amqp.wire.values import Described, Symbol, TypedValue, decode, encode, encode_list, malformed
from pyspark_jms.blocks.dead_letter import KEPT
from pyspark_jms.sentences import with_article

__all__ = [
    "AMQP_HEADER",
    "EMPTY_FRAME",
    "MIN_MAX_FRAME_BYTES",
    "SASL_HEADER",
    "Accepted",
    "Attach",
    "Begin",
    "Close",
    "Coordinator",
    "Declare",
    "Declared",
    "Detach",
    "Discharge",
    "Disposition",
    "End",
    "Error",
    "Flow",
    "Limits",
    "Modified",
    "Open",
    "Performative",
    "Received",
    "Rejected",
    "Released",
    "SaslChallenge",
    "SaslInit",
    "SaslMechanisms",
    "SaslOutcome",
    "SaslResponse",
    "Source",
    "Target",
    "TransactionalState",
    "Transfer",
    "decode_performative",
    "encode_performative",
    "frame",
    "frame_size",
]


# --- what performatives carry -----------------------------------------------------------------------

# Errors (AMQP 1.0 §2.8), termini and outcomes (§3.4, §3.5), transactions (§4.5).

Names: TypeAlias = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """§2.8.14."""

    condition: str
    description: str | None = None
    info: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terminus:
    """What §3.5.3 and §3.5.4 begin with."""

    address: str | None = None
    durable: int | None = None
    expiry_policy: str | None = None
    timeout: int | None = None
    dynamic: bool | None = None
    dynamic_node_properties: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(_Terminus):
    """§3.5.3."""

    distribution_mode: str | None = None
    filter: Mapping[str, Any] | None = None
    default_outcome: Any = None
    outcomes: Names | None = None
    capabilities: Names | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(_Terminus):
    """§3.5.4."""

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


# --- the bodies of frames ---------------------------------------------------------------------------

# AMQP 1.0 §2.7, and SASL frames (§5.3.3), field by field as the specification has them.


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


# --- the table of types -----------------------------------------------------------------------------

Performative: TypeAlias = Any

_S, _B, _U, _Y = "str", "bool", "uint", "ubyte"
_BIN, _SYM, _SYMS, _MAP, _ANY = "binary", "symbol", "symbols", "map", "any"
_TYPES: Mapping[type, tuple[int, tuple[str, ...]]] = {
    Open: (0x10, (_S, _S, _U, "ushort", _U, _SYMS, _SYMS, _SYMS, _SYMS, _MAP)),
    Begin: (0x11, ("ushort", _U, _U, _U, _U)),
    Attach: (0x12, (_S, _U, _B, _Y, _Y, _ANY, _ANY, _ANY, _B, _U, "ulong", _SYMS, _SYMS, _ANY)),
    Flow: (0x13, (_U, _U, _U, _U, _U, _U, _U, _U, _B, _B)),
    Transfer: (0x14, (_U, _U, _BIN, _U, _B, _B, _Y, _ANY, _B, _B, _B)),
    Disposition: (0x15, (_B, _U, _U, _B, _ANY, _B)),
    Detach: (0x16, (_U, _B, _ANY)),
    End: (0x17, (_ANY,)),
    Close: (0x18, (_ANY,)),
    Error: (0x1D, (_SYM, _S, _ANY)),
    Source: (0x28, (_S, _U, _SYM, _U, _B, _ANY, _SYM, _MAP, _ANY, _SYMS, _SYMS)),
    Target: (0x29, (_S, _U, _SYM, _U, _B, _ANY, _SYMS)),
    Received: (0x23, (_U, "ulong")),
    Accepted: (0x24, ()),
    Rejected: (0x25, (_ANY,)),
    Released: (0x26, ()),
    Modified: (0x27, (_B, _B, _ANY)),
    Coordinator: (0x30, (_SYMS,)),
    Declare: (0x31, (_ANY,)),
    Discharge: (0x32, (_BIN, _B)),
    Declared: (0x33, (_BIN,)),
    TransactionalState: (0x34, (_BIN, _ANY)),
    SaslMechanisms: (0x40, (_SYMS,)),
    SaslInit: (0x41, (_SYM, _BIN, _S)),
    SaslChallenge: (0x42, (_BIN,)),
    SaslResponse: (0x43, (_BIN,)),
    SaslOutcome: (0x44, (_Y, _BIN)),
}
_CLASSES = {code: cls for cls, (code, _) in _TYPES.items()}
_NAMES = {cls: tuple(field.name for field in fields(cls)) for cls in _TYPES}
_REQUIRED = {cls: {field.name for field in fields(cls) if field.default is MISSING} for cls in _TYPES}
_PYTHON: Mapping[str, type | tuple[type, ...]] = {
    _S: str,
    _B: bool,
    _U: int,
    _Y: int,
    "ushort": int,
    "ulong": int,
    _BIN: bytes,
    _SYM: str,
    _SYMS: (list, str),
    _MAP: Mapping,
    _ANY: object,
}
_UNSIGNED = {_Y: 1 << 8, "ushort": 1 << 16, _U: 1 << 32, "ulong": 1 << 64}
"""The number of values of each unsigned type (§1.6). A field may have come with the constructor of another type."""

_MAX_PERFORMATIVE_BYTES = 1 << 20
"""A frame that is not a transfer holds names, filters and errors only."""


def encode_performative(performative: Performative) -> bytes:
    code, types = _TYPES[type(performative)]
    names = _NAMES[type(performative)]
    items = [_encode_field(kind, getattr(performative, name)) for kind, name in zip(types, names, strict=True)]
    while items and items[-1] == b"\x40":
        items.pop()
    return b"\x00\x53" + bytes((code,)) + encode_list(items)


def _encode_field(kind: str, value: Any) -> bytes:
    if value is None:
        return b"\x40"
    match kind:
        case "uint" | "ubyte" | "ushort" | "ulong":
            return encode(TypedValue(kind, value))
        case "symbol":
            return encode(Symbol(value))
        case "symbols":
            return encode(TypedValue("symbols", value))
        case _:
            return encode_performative(value) if type(value) in _TYPES else encode(value)


def decode_performative(buffer: Buffer, position: int, end: int) -> tuple[Performative, int]:
    """The performative of a frame's body, and where the payload begins."""
    described, position = decode(buffer, position, min(end, position + _MAX_PERFORMATIVE_BYTES))
    performative = _composite(described)
    if type(performative) not in _TYPES:
        raise malformed("a frame without a performative")
    return performative, position


def _composite(value: Any) -> Any:
    """A described list of a known code as its class. Other values stay as they are."""
    if not isinstance(value, Described) or not isinstance(value.value, list):
        return value
    cls = _CLASSES.get(value.descriptor) if isinstance(value.descriptor, int) else None
    if cls is None:
        return value
    names, (_, types) = _NAMES[cls], _TYPES[cls]
    given = {
        name: _checked(cls, name, kind, item)
        for name, kind, item in zip(names, types, value.value, strict=False)
        if item is not None
    }
    if missing := _REQUIRED[cls] - given.keys():
        raise malformed(f"{cls.__name__.lower()} without {min(missing)}")
    return cls(**given)


def _is_of_type(kind: str, item: Any) -> bool:
    if isinstance(item, bool) and kind not in {_B, _ANY}:
        return False
    if kind == _SYMS and isinstance(item, list):
        return all(isinstance(each, str) for each in item)
    return isinstance(item, _PYTHON[kind])


def _checked(cls: type, name: str, kind: str, item: Any) -> Any:
    if not _is_of_type(kind, item):
        raise malformed(f"{cls.__name__.lower()} with {with_article(name)} that is not of type {kind}")
    if kind in _UNSIGNED and not 0 <= item < _UNSIGNED[kind]:
        raise malformed(f"{cls.__name__.lower()} with {with_article(name)} that is outside of the range of {kind}")
    if kind == _SYMS:
        return (item,) if isinstance(item, str) else tuple(item)  # §1.4: one value stands for an array of one
    return _composite(item) if kind == _ANY else item


# --- frames (§2.3): a header of eight bytes, a performative, a payload ------------------------------

AMQP_HEADER, SASL_HEADER = b"AMQP\0\1\0\0", b"AMQP\3\1\0\0"
"""§2.2, §5.3.2: each peer sends one first."""

_HEADER = struct.Struct(">IBBH")
HEADER_BYTES = _HEADER.size
EMPTY_FRAME = _HEADER.pack(8, 2, 0, 0)
"""§2.4.5: keeps a connection alive."""

MIN_MAX_FRAME_BYTES = 512
"""§2.7.1: every peer takes frames of this size."""

MAX_FRAME_BYTES = 1 << 17
"""Artemis and Classic send frames of at most 128 KB, whatever a client offers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits for what a peer sends. A larger frame ends the connection, a larger message comes into no block."""

    max_frame_bytes: int = MAX_FRAME_BYTES
    """The largest frame that the peer may send."""

    max_message_bytes: int = 100 << 20
    """A larger message does not come into a block."""

    max_delivery_bytes: int = 1 << 32
    """A message that has not ended at this size, the largest of one section, ends the connection."""

    keep_oversized: Callable[[], BinaryIO | None] = KEPT["drop"]
    """Opens the place for the bytes of such a message. None if they are not kept."""


def frame(channel: int, performative: Performative, payload: bytes = b"", *, sasl: bool = False) -> bytes:
    body = encode_performative(performative) + payload
    return _HEADER.pack(len(body) + HEADER_BYTES, 2, int(sasl), channel) + body


def frame_size(buffer: bytearray | memoryview, position: int, limits: Limits) -> int:
    """Bytes of the frame that begins here, of which at least eight are in the buffer."""
    size = int.from_bytes(buffer[position : position + 4], "big")
    offset = buffer[position + 4] * 4
    if not HEADER_BYTES <= offset <= size:
        raise malformed(f"a frame of {size} bytes whose body begins at {offset}")
    if size > limits.max_frame_bytes:
        raise malformed(f"a frame of {size:,} bytes, and {limits.max_frame_bytes:,} are allowed")
    return size
