"""Composite types: both directions, and what is refused."""

import dataclasses

import pytest

from pyspark_jms.amqp.wire.types import (
    _NAMES,
    _REQUIRED,
    _TYPES,
    EMPTY_FRAME,
    MAX_FRAME_BYTES,
    MIN_MAX_FRAME_BYTES,
    Accepted,
    Attach,
    Begin,
    Close,
    Declared,
    Detach,
    Disposition,
    Error,
    Flow,
    Limits,
    Open,
    Rejected,
    SaslInit,
    Source,
    Target,
    TransactionalState,
    Transfer,
    decode_performative,
    encode_performative,
    frame,
    frame_size,
)
from pyspark_jms.amqp.wire.values import Described, Symbol, TypedValue, encode, encode_list
from pyspark_jms.errors import MalformedFrameError


def test_a_target_has_the_fields_of_a_source_that_it_shares():
    source, target = ([field.name for field in dataclasses.fields(cls)] for cls in (Source, Target))
    assert target[:6] == source[:6]
    assert target[-1] == source[-1] == "capabilities"


@pytest.mark.parametrize("cls", [cls for cls in _TYPES if dataclasses.fields(cls)])
def test_a_composite_value_is_frozen(cls):
    given = {field.name: None for field in dataclasses.fields(cls)}
    value = cls(**given)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, next(iter(given)), 1)


ALL = [
    Open(container_id="c", hostname="h", max_frame_size=512, channel_max=0, idle_time_out=1000),
    Open(container_id="c", offered_capabilities=("A", "B"), properties={"product": "x"}),
    Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=2),
    Attach(name="n", handle=0, role=True, source=Source(address="q", capabilities=("queue",)), target=Target()),
    Attach(name="n", handle=1, role=False, initial_delivery_count=0, max_message_size=1 << 40),
    Flow(incoming_window=1, next_outgoing_id=2, outgoing_window=3, handle=0, link_credit=9, drain=True),
    Transfer(handle=0, delivery_id=1, delivery_tag=b"t", message_format=0, settled=False, more=True),
    Disposition(role=True, first=1, last=5, settled=True, state=TransactionalState(txn_id=b"t", outcome=Accepted())),
    Disposition(role=True, first=1, state=Declared(txn_id=b"t")),
    Detach(handle=0, closed=True, error=Error(condition="amqp:not-found", description="no queue")),
    Disposition(role=True, first=1, state=Rejected(error=Error(condition="x"))),
]


@pytest.mark.parametrize("performative", ALL, ids=lambda each: type(each).__name__)
def test_a_performative_comes_back(performative):
    data = encode_performative(performative)
    assert decode_performative(data + b"payload", 0, len(data) + 7) == (performative, len(data))


def test_missing_fields_at_the_end_are_not_sent():
    assert encode_performative(Accepted()) == bytes.fromhex("00532445")
    assert encode_performative(Detach(handle=0)) == bytes.fromhex("005316c0020143")


def test_an_unknown_composite_stays_a_described_value():
    state = Described(0x99, [1])
    data = encode_performative(Disposition(role=True, first=1, state=state))
    assert decode_performative(data, 0, len(data))[0].state == state


def test_one_symbol_stands_for_an_array_of_one():
    fields = encode_list([encode("c"), *[b"\x40"] * 6, encode(Symbol("A"))])
    data = b"\x00\x53\x10" + fields
    assert decode_performative(data, 0, len(data))[0].offered_capabilities == ("A",)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (encode(TypedValue("uint", 1)), "without a performative"),
        (b"\x00\x53\x99\x45", "without a performative"),
        (b"\x00\x53\x10\x45", "open without container_id"),
        (b"\x00\x53\x10" + encode_list([b"\x41"]), "container_id that is not of type str"),
        (b"\x00\x53\x16" + encode_list([b"\x41"]), "detach with a handle that is not of type uint"),
    ],
)
def test_malformed_performatives(data, reason):
    with pytest.raises(MalformedFrameError, match=reason):
        decode_performative(data, 0, len(data))


def _fields_of(*kinds):
    for cls, (code, types) in _TYPES.items():
        for number, kind in enumerate(types):
            if kind in kinds:
                yield pytest.param(cls, code, types, number, id=f"{cls.__name__}.{_NAMES[cls][number]}")


_ARRAYS = {
    "lists": b"\xe0\x02\x03\x45",
    "maps": b"\xe0\x06\x02\xc1\x01\x00\x01\x00",
    "numbers": b"\xe0\x04\x02\x50\x01\x02",
    "a list with a list": encode_list([encode_list([])]),
    "a number": b"\x43",
}
"""What a hostile peer may send where symbols are expected."""


@pytest.mark.parametrize("wrong", _ARRAYS.values(), ids=_ARRAYS)
@pytest.mark.parametrize(("cls", "code", "types", "number"), [*_fields_of("symbols")])
def test_symbols_that_are_no_symbols_are_malformed(cls, code, types, number, wrong):
    data = _with(cls, code, types, number, wrong)
    with pytest.raises(MalformedFrameError, match=f"{_NAMES[cls][number]} that is not of type symbols"):
        decode_performative(data, 0, len(data))


@pytest.mark.parametrize(("cls", "code", "types", "number"), [*_fields_of("map")])
def test_a_map_that_is_none_is_malformed(cls, code, types, number):
    for wrong in (encode_list([]), encode("x"), encode(Described(1, {}))):
        data = _with(cls, code, types, number, wrong)
        with pytest.raises(MalformedFrameError, match=f"{_NAMES[cls][number]} that is not of type map"):
            decode_performative(data, 0, len(data))


def test_a_refused_field_has_its_article():
    data = _with(Open, *_TYPES[Open], 4, b"\x41")
    with pytest.raises(MalformedFrameError, match="open with an idle_time_out that is not of type uint"):
        decode_performative(data, 0, len(data))


_UNSIGNED = {"ubyte": 8, "ushort": 16, "uint": 32, "ulong": 64}


def _with(cls, code, types, number, item):
    """A performative or composite with ``item`` as one of its fields, and valid other fields that it needs."""
    valid = {"str": encode("s"), "bool": b"\x41", "binary": encode(b"b"), "symbol": encode(Symbol("s"))}
    fields = [
        item if at == number else valid.get(kind, b"\x43") if _NAMES[cls][at] in _REQUIRED[cls] else b"\x40"
        for at, kind in enumerate(types)
    ]
    return b"\x00\x53" + bytes((code,)) + encode_list(fields)


@pytest.mark.parametrize(("cls", "code", "types", "number"), [*_fields_of(*_UNSIGNED)])
def test_an_unsigned_field_outside_of_its_range_is_malformed(cls, code, types, number):
    """A peer may send any constructor: an int of -1, a ulong where the field is a uint."""
    bits = _UNSIGNED[types[number]]
    wrong = [b"\x54\xff", b"\x81" + b"\xff" * 8, *([encode(TypedValue("ulong", 1 << bits))] if bits < 64 else [])]
    for item in wrong:
        data = _with(cls, code, types, number, item)
        with pytest.raises(MalformedFrameError, match=f"{_NAMES[cls][number]} that is outside of the range"):
            decode_performative(data, 0, len(data))
    for right in (0, (1 << bits) - 1):
        data = _with(cls, code, types, number, encode(TypedValue("ulong", right)))
        assert decode_performative(data, 0, len(data))


def test_a_login_is_not_shown():
    assert "secret" not in repr(SaslInit(mechanism="PLAIN", initial_response=b"\0me\0secret"))


def test_a_frame_of_the_specification():
    assert frame(0, Close()) == bytes.fromhex("0000000c0200000000531845")
    assert frame(1, Close(), b"x", sasl=True) == bytes.fromhex("0000000d020100010053184578")
    assert bytes.fromhex("0000000802000000") == EMPTY_FRAME


def test_the_size_of_a_frame():
    assert frame_size(bytearray(b"xx" + frame(0, Close())), 2, Limits()) == 12


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("0000000701000000", "whose body begins"),
        ("0000000c01000000", "whose body begins"),
        ("0000000c04000000", "whose body begins"),
        ("0002000102000000", "131,072 are allowed"),
    ],
)
def test_frames_that_cannot_be(header, reason):
    with pytest.raises(MalformedFrameError, match=reason):
        frame_size(bytearray(bytes.fromhex(header)), 0, Limits())


def test_the_limits_of_the_specification():
    assert MIN_MAX_FRAME_BYTES == 512
    assert Limits().max_frame_bytes == MAX_FRAME_BYTES >= MIN_MAX_FRAME_BYTES
