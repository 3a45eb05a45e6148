"""Composite values, described lists of fields, ↔ their classes. One table drives both directions.

The table has the code of each type, and the type of each field in the order of the specification.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeAlias

from pyspark_jms.amqp.wire.definitions import (
    Accepted,
    Coordinator,
    Declare,
    Declared,
    Discharge,
    Error,
    Modified,
    Received,
    Rejected,
    Released,
    Source,
    Target,
    TransactionalState,
)
from pyspark_jms.amqp.wire.limits import MAX_PERFORMATIVE_BYTES
from pyspark_jms.amqp.wire.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    Transfer,
)
from pyspark_jms.amqp.wire.values import Buffer, Described, Symbol, Typed, decode, encode, encode_list, malformed

__all__ = ["Performative", "decode_performative", "encode_performative"]

Performative: TypeAlias = Any

_S, _B, _U, _Y, _BIN, _SYM, _SYMS, _ANY = "str", "bool", "uint", "ubyte", "binary", "symbol", "symbols", "any"
_TYPES: Mapping[type, tuple[int, tuple[str, ...]]] = {
    Open: (0x10, (_S, _S, _U, "ushort", _U, _SYMS, _SYMS, _SYMS, _SYMS, _ANY)),
    Begin: (0x11, ("ushort", _U, _U, _U, _U)),
    Attach: (0x12, (_S, _U, _B, _Y, _Y, _ANY, _ANY, _ANY, _B, _U, "ulong", _SYMS, _SYMS, _ANY)),
    Flow: (0x13, (_U, _U, _U, _U, _U, _U, _U, _U, _B, _B)),
    Transfer: (0x14, (_U, _U, _BIN, _U, _B, _B, _Y, _ANY, _B, _B, _B)),
    Disposition: (0x15, (_B, _U, _U, _B, _ANY, _B)),
    Detach: (0x16, (_U, _B, _ANY)),
    End: (0x17, (_ANY,)),
    Close: (0x18, (_ANY,)),
    Error: (0x1D, (_SYM, _S, _ANY)),
    Source: (0x28, (_S, _U, _SYM, _U, _B, _ANY, _SYM, _ANY, _ANY, _SYMS, _SYMS)),
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
    _ANY: object,
}
_UNSIGNED = {_Y: 1 << 8, "ushort": 1 << 16, _U: 1 << 32, "ulong": 1 << 64}
"""The number of values of each unsigned type (§1.6). A field may have come with the constructor of another type."""


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
            return encode(Typed(kind, value))
        case "symbol":
            return encode(Symbol(value))
        case "symbols":
            return encode(Typed("symbols", value))
        case _:
            return encode_performative(value) if type(value) in _TYPES else encode(value)


def decode_performative(buffer: Buffer, position: int, end: int) -> tuple[Performative, int]:
    """The performative of a frame's body, and where the payload begins."""
    described, position = decode(buffer, position, min(end, position + MAX_PERFORMATIVE_BYTES))
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


def _is_in_range(kind: str, item: Any) -> bool:
    return kind not in _UNSIGNED or 0 <= item < _UNSIGNED[kind]


def _names(items: Any) -> tuple[Any, ...]:
    return tuple(items)


def _checked(cls: type, name: str, kind: str, item: Any) -> Any:
    if not isinstance(item, _PYTHON[kind]) or (isinstance(item, bool) and kind not in {_B, _ANY}):
        raise malformed(f"{cls.__name__.lower()} with a {name} that is not of type {kind}")
    if not _is_in_range(kind, item):
        raise malformed(f"{cls.__name__.lower()} with a {name} that is outside of the range of {kind}")
    if kind == _SYMS:
        return (item,) if isinstance(item, str) else _names(item)  # §1.4: one value stands for an array of one
    return _composite(item) if kind == _ANY else item
