"""Measures the AMQP decoder beside the STOMP decoder: the same orders as bare messages and as MESSAGE frames.

The orders are those of ``bench.decode``; the messages have the layout in which Artemis 2.55 sends what a CORE client
wrote. The typed case has properties of five types.
The slow case has one message in a hundred that the vectorised decoder leaves to the reader of one message. Each result
is rows/s on one core, and the ratio to the STOMP decoder in the same run. Run it with ``python -m bench.decode_amqp``.
"""

import json
import struct
from statistics import median

import numpy as np

from bench.amqp_values import NULL, SYMBOL, TRUE, binary, list32, map32, section, string, timestamp
from bench.decode import case as stomp_case
from bench.one_core import Case, each_turn
from pyspark_jms.amqp.columns.decode import decode
from pyspark_jms.amqp.dialects import ARTEMIS
from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.jms.model import Destination
from pyspark_jms.stomp.link.inbox import SEGMENT_BYTES

TURNS = 15
_NOW_MS = 1_760_000_000_000
_SIZES = {"100_b": 100, "1_kb": 1024, "10_kb": 10_240}
_BLOCK_BYTES, _BLOCK_MESSAGES = SEGMENT_BYTES, 1 << 14


def _properties(i: int, *, mixed: bool, typed: bool, odd: bool) -> bytes:
    if typed:
        values = [b"\x71" + struct.pack(">i", i), b"\x54" + bytes([i % 100]), b"\x82" + struct.pack(">d", i / 2)]
        values += [b"\x81" + struct.pack(">q", _NOW_MS + i), TRUE]
    else:
        region = ("north", "south", "east", "west")[i % 4]
        texts = [f"C{i % 1000:06d}", region, f"{i * 7 % 100_000}.50", f"2026-01-01T12.{i % 60:02d}.00", f"path {i}"]
        values = [string(text) for text in texts]
    names = ["customer", "region", "amount", "created", "note"]
    if mixed and i % 7 == 0:
        names, values = [*names, "extra"], [*values, string(str(i))]
    if odd:
        values[-1] = b"\x84" + bytes(8)
    pairs = [part for name, value in zip(names, values, strict=True) for part in (string(name), value)]
    return section(0x74, map32(*pairs, string("JMSXDeliveryCount"), NULL))


def message(i: int, *, body_bytes: int, mixed: bool = False, typed: bool = False, odd: bool = False) -> bytes:
    """An order. ``odd``: with a decimal64 as property, which is left to the reader of one message."""
    fields = [
        string(f"ID:12345678-90ab-cdef-1234-{i:012d}"),
        NULL,
        string("orders"),
        string("order"),
        string("answers") if mixed and i % 5 == 0 else NULL,
        NULL if mixed and i % 3 == 0 else string(f"order-{i}"),
        *[NULL] * 3,
        timestamp(_NOW_MS + i),
    ]
    holds_bytes = mixed and i % 2 == 1
    body = f"{i:012d}" + "x" * (body_bytes - 12)
    kind = string("x-opt-jms-dest", SYMBOL), b"\x51\x00", string("x-opt-jms-msg-type", SYMBOL)
    return b"".join(
        [
            section(0x70, b"\xc0\x02\x01\x41"),
            section(0x72, map32(*kind, b"\x51\x03" if holds_bytes else b"\x51\x05")),
            section(0x73, list32(*fields)),
            _properties(i, mixed=mixed, typed=typed, odd=odd),
            section(0x75, binary(body.encode())) if holds_bytes else section(0x77, string(body)),
        ]
    )


def case(*, body_bytes: int, mixed: bool = False, typed: bool = False, odd_share: int = 0) -> Case:
    """A block as the receiver closes it. ``odd_share``: one message in so many is odd."""
    rows = min(_BLOCK_BYTES // (body_bytes + 400), _BLOCK_MESSAGES)
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
    """Each ``amqp`` case and, under the same name, its ``stomp`` case."""
    found: dict[str, Case] = {}
    for name, size in _SIZES.items():
        found[f"amqp.{name}"] = case(body_bytes=size)
        found[f"stomp.{name}"] = stomp_case(body_bytes=size, mixed=False, escaped=False)
    return found | {
        "amqp.mixed": case(body_bytes=1024, mixed=True),
        "stomp.mixed": stomp_case(body_bytes=1024, mixed=True, escaped=False),
        "amqp.typed": case(body_bytes=1024, typed=True),
        "stomp.typed": stomp_case(body_bytes=1024, mixed=False, escaped=False, typed=True),
        "amqp.slow_rows": case(body_bytes=1024, odd_share=100),
    }


def rates_and_ratios(*, turns: int) -> dict[str, float]:
    """Rows/s of each AMQP case, and the median of its ratios to the STOMP decoder, which reads types from a header.

    The ratio of ``slow_rows`` is that to the same messages without slow rows.
    """
    found = each_turn(cases(), turns=turns)
    beside = {"slow_rows": "amqp.1_kb"}
    document: dict[str, float] = {}
    for name in (case.removeprefix("amqp.") for case in found if case.startswith("amqp.")):
        rates, others = found[f"amqp.{name}"], found[beside.get(name, f"stomp.{name}")]
        document[f"decode.amqp.{name}_rows_per_s"] = round(median(rates))
        ratios = [rate / other for rate, other in zip(rates, others, strict=True)]
        document[f"decode.amqp.{name}_ratio"] = round(median(ratios), 3)
    return document


if __name__ == "__main__":
    print(json.dumps(rates_and_ratios(turns=TURNS), indent=2))
