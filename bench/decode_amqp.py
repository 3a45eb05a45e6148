"""Measures the AMQP decoder beside the STOMP decoder: the same orders as bare messages and as MESSAGE frames.

The orders are those of ``bench.decode``; the messages have the layout in which Artemis 2.55 sends what a CORE client
wrote. The typed case has properties of five types.
The slow case has one message in a hundred that the vectorised decoder leaves to the reader of one message. Each result
is rows/s on one core, and the ratio to the STOMP decoder in the same run. Run it with ``python -m bench.decode_amqp``.
"""

import json
import struct

import numpy as np

from bench.decode import case as stomp_case
from bench.one_core import Case, rates
from pyspark_jms.amqp.columns.decode import decode
from pyspark_jms.amqp.dialects import ARTEMIS
from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.jms.model import Destination
from pyspark_jms.stomp.link.inbox import SEGMENT_BYTES

TURNS = 15
_NOW_MS = 1_760_000_000_000
_SIZES = {"100_b": 100, "1_kb": 1024, "10_kb": 10_240}
_BLOCK_BYTES = SEGMENT_BYTES
_NULL, _TRUE = b"\x40", b"\x41"


def _string(text: str, narrow: int = 0xA1) -> bytes:
    data = text.encode()
    if len(data) < 256:
        return bytes([narrow, len(data)]) + data
    return bytes([narrow + 0x10]) + struct.pack(">I", len(data)) + data


def _map(*values: bytes) -> bytes:
    data = b"".join(values)
    return b"\xd1" + struct.pack(">II", len(data) + 4, len(values)) + data


def _section(code: int, value: bytes) -> bytes:
    return b"\x00\x53" + bytes([code]) + value


def _properties(i: int, *, mixed: bool, typed: bool) -> bytes:
    if typed:
        values = [b"\x71" + struct.pack(">i", i), b"\x54" + bytes([i % 100]), b"\x82" + struct.pack(">d", i / 2)]
        values += [b"\x81" + struct.pack(">q", _NOW_MS + i), _TRUE]
    else:
        region = ("north", "south", "east", "west")[i % 4]
        texts = [f"C{i % 1000:06d}", region, f"{i * 7 % 100_000}.50", f"2026-01-01T12.{i % 60:02d}.00", f"path {i}"]
        values = [_string(text) for text in texts]
    names = ["customer", "region", "amount", "created", "note"]
    if mixed and i % 7 == 0:
        names, values = [*names, "extra"], [*values, _string(str(i))]
    pairs = [part for name, value in zip(names, values, strict=True) for part in (_string(name), value)]
    return _section(0x74, _map(*pairs, _string("JMSXDeliveryCount"), _NULL))


def message(i: int, *, body_bytes: int, mixed: bool = False, typed: bool = False, odd: bool = False) -> bytes:
    """An order. ``odd``: with an id that is a uuid."""
    fields = [
        b"\x98" + struct.pack(">QQ", 0, i) if odd else _string(f"ID:12345678-90ab-cdef-1234-{i:012d}"),
        _NULL,
        _string("orders"),
        _string("order"),
        _string("answers") if mixed and i % 5 == 0 else _NULL,
        _NULL if mixed and i % 3 == 0 else _string(f"order-{i}"),
        *[_NULL] * 3,
        b"\x83" + struct.pack(">q", _NOW_MS + i),
    ]
    data = b"".join(fields)
    holds_bytes = mixed and i % 2 == 1
    body = f"{i:012d}" + "x" * (body_bytes - 12)
    kind = _string("x-opt-jms-dest", 0xA3), b"\x51\x00", _string("x-opt-jms-msg-type", 0xA3)
    return b"".join(
        [
            _section(0x70, b"\xc0\x02\x01\x41"),
            _section(0x72, _map(*kind, b"\x51\x03" if holds_bytes else b"\x51\x05")),
            _section(0x73, b"\xd0" + struct.pack(">II", len(data) + 4, len(fields)) + data),
            _properties(i, mixed=mixed, typed=typed),
            _section(0x75, _string(body, 0xA0)) if holds_bytes else _section(0x77, _string(body)),
        ]
    )


def case(*, body_bytes: int, mixed: bool = False, typed: bool = False, odd_share: int = 0) -> Case:
    """``odd_share``: one message in so many is odd."""
    rows = _BLOCK_BYTES // (body_bytes + 400)
    messages = [
        message(i, body_bytes=body_bytes, mixed=mixed, typed=typed, odd=bool(odd_share) and i % odd_share == 0)
        for i in range(rows)
    ]
    block = MessageBlock(b"".join(messages), ends=index_of(np.cumsum([len(message) for message in messages])))
    source = Destination.parse("queue://orders")
    return Case(
        rows,
        lambda: decode(block, dialect=ARTEMIS, source=source, first_sequence=0, body_type="auto"),
    )


def cases() -> dict[str, Case]:
    found = {f"amqp.{name}": case(body_bytes=size) for name, size in _SIZES.items()}
    found |= {f"stomp.{name}": stomp_case(body_bytes=size, mixed=False, escaped=False) for name, size in _SIZES.items()}
    return found | {
        "amqp.mixed_1_kb": case(body_bytes=1024, mixed=True),
        "stomp.mixed_1_kb": stomp_case(body_bytes=1024, mixed=True, escaped=False),
        "amqp.typed_1_kb": case(body_bytes=1024, typed=True),
        "amqp.1_kb_slow_rows": case(body_bytes=1024, odd_share=100),
    }


if __name__ == "__main__":
    found = rates(cases(), turns=TURNS)
    ratios = {
        name.removeprefix("amqp."): found[name] / found[name.replace("amqp.", "stomp.")]
        for name in found
        if name.startswith("amqp.") and name.replace("amqp.", "stomp.") in found
    }
    print(json.dumps({key: round(value) for key, value in found.items()}, indent=2))
    print(json.dumps({key: round(value, 2) for key, value in ratios.items()}, indent=2))
