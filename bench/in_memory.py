"""Measures decoders and encoders on one core in memory, without broker and Spark. Cases take turns; medians count.

The base case has 1 KB of text and five properties, as Artemis writes them, and one header layout. The mixed case of the
decoders has text and bytes, with and without JMSCorrelationID, JMSReplyTo and a sixth property, so that no two
neighbouring messages have the same layout; over STOMP alone also escapes. The STOMP decoder gets the frame ends, as the
receiver finds them; ``scan.frames_per_s`` is the receiver's part. The typed cases have properties of five types. One
message in a hundred of the slow case is left to the reader of one message. Run it with ``python -m bench.in_memory``.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
import pyarrow as pa

from bench.raw_amqp import section, wide
from pyspark_jms.amqp.columns.decode import decode as decode_amqp
from pyspark_jms.amqp.columns.encode import encode as encode_amqp
from pyspark_jms.amqp.dialects import ARTEMIS as AMQP
from pyspark_jms.amqp.wire.values import Symbol, TypedValue, encode
from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.jms.model import TYPES_MARKER, Destination
from pyspark_jms.stomp.columns.decode import decode as decode_stomp
from pyspark_jms.stomp.columns.encode import encode as encode_stomp
from pyspark_jms.stomp.dialects import ARTEMIS as STOMP
from pyspark_jms.stomp.link.prefetch import SEGMENT_BYTES
from pyspark_jms.stomp.wire.scan import FrameScanner

__all__ = ["Case", "codec_rates", "each_turn"]

_NOT_COUNTED = 3
_ROWS = 10_000  # Spark's spark.sql.execution.arrow.maxRecordsPerBatch
_BLOCK_MESSAGES = 1 << 14
_READ_BYTES = 64 << 10
_MAX_BYTES = 100 << 20
_FIRST_ID = 2_147_483_700
_NOW_MS = 1_760_000_000_000
_ORDERS = Destination.parse("queue://orders")
_REGIONS = ("north", "south", "east", "west")
_TYPES = {"customer": "int", "region": "int", "amount": "double", "created": "long", "note": "boolean"}


# --- turns ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """``action`` handles ``rows`` rows (or operations) each time it is called."""

    rows: int
    action: Callable[[], object]


def each_turn(cases: Mapping[str, Case], *, turns: int) -> dict[str, list[float]]:
    """Rows for each second of CPU time, so that other programs do not count, by turn. Arrow is limited to one core.

    Of several calls in a row only the last one counts, because the first ones allocate memory page by page.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        for _ in range(turns):
            for name, case in cases.items():
                for _ in range(_NOT_COUNTED):
                    case.action()
                began = time.process_time()
                case.action()
                seconds[name].append(time.process_time() - began)
    finally:
        pa.set_cpu_count(threads)
    return {name: [cases[name].rows / taken for taken in every] for name, every in seconds.items()}


def codec_rates(*, turns: int) -> dict[str, float]:
    """Rows/s of each case, and the median of the ratios of AMQP to STOMP on the same messages.

    The STOMP decoder reads types from a header. The ratio of ``slow_rows`` is that to the messages without slow rows.
    """
    alone = {
        "scan.frames_per_s": _scan(),
        "decode.rows_per_s": _stomp_decoder(),
        "decode.mixed_rows_per_s": _stomp_decoder(mixed=True, escaped=True),
        "encode.rows_per_s": _stomp_encoder(_batch()),
    }
    found = {name: round(median(rates)) for name, rates in each_turn(alone, turns=turns).items()}
    return found | _beside_stomp(_decoders(), turns) | _beside_stomp(_encoders(), turns)


def _beside_stomp(cases: Mapping[str, tuple[Case, Case | None]], turns: int) -> dict[str, float]:
    """``cases``: over AMQP and over STOMP. Without the latter, the first case is the other side of the ratio."""
    first = next(iter(cases))
    flat = {f"{name}/{side}": case for name, pair in cases.items() for side, case in enumerate(pair) if case}
    found, document = each_turn(flat, turns=turns), dict[str, float]()
    for name, (_, stomp) in cases.items():
        rates, others = found[f"{name}/0"], found[f"{name}/1" if stomp else f"{first}/0"]
        document[f"{name}_rows_per_s"] = round(median(rates))
        ratios = [rate / other for rate, other in zip(rates, others, strict=True)]
        document[f"{name}_ratio"] = round(median(ratios), 3)
    return document


# --- decoders ------------------------------------------------------------------------------------


def _decoders() -> dict[str, tuple[Case, Case | None]]:
    return {
        "decode.amqp.1_kb": (_amqp_decoder(), _stomp_decoder()),
        "decode.amqp.100_b": (_amqp_decoder(body_bytes=100), _stomp_decoder(body_bytes=100)),
        "decode.amqp.10_kb": (_amqp_decoder(body_bytes=10_240), _stomp_decoder(body_bytes=10_240)),
        "decode.amqp.mixed": (_amqp_decoder(mixed=True), _stomp_decoder(mixed=True)),
        "decode.amqp.typed": (_amqp_decoder(typed=True), _stomp_decoder(typed=True)),
        "decode.amqp.slow_rows": (_amqp_decoder(odd_share=100), None),
    }


def _strings(i: int, colon: str = ".") -> dict[str, str]:
    return {
        "customer": f"C{i % 1000:06d}",
        "region": _REGIONS[i % 4],
        "amount": f"{i * 7 % 100_000}.50",
        "created": f"2026-01-01T12{colon}{i % 60:02d}{colon}00",
        "note": f"path {i}",
    }


def _body(i: int, size: int) -> str:
    return f"{i:012d}" + "x" * (size - 12)


def _frame(i: int, *, body_bytes: int = 1024, mixed: bool = False, escaped: bool = False, typed: bool = False) -> bytes:
    """An order, as Artemis 2.44 delivers it. ``escaped``: with two colons in one value."""
    own: dict[str, object] = dict(_strings(i, r"\c" if escaped else "."))
    if typed:  # and the header that the sink writes for column ``property_types``
        own = dict(zip(_TYPES, (i, i % 100, i / 2, _NOW_MS + i, "true"), strict=True))
        own[TYPES_MARKER] = json.dumps(_TYPES, separators=(",", ":")).replace(":", "\\c")
    holds_bytes = mixed and i % 2 == 1
    length = f"content-length:{body_bytes}"
    headers = [
        "subscription:1",
        length if holds_bytes else None,
        f"message-id:61,{_FIRST_ID + i}",
        "destination:orders",
        None if mixed and i % 3 == 0 else f"correlation-id:order-{i}",
        *("expires:0", "redelivered:false", "priority:4", "persistent:true"),
        r"reply-to:queue\c//answers" if mixed and i % 5 == 0 else None,
        *(f"timestamp:{_NOW_MS + i}", "type:order", "destination-type:ANYCAST"),
        *(f"{name}:{value}" for name, value in own.items()),
        f"extra:{i}" if mixed and i % 7 == 0 else None,
        f"ack:61,{_FIRST_ID + i}",
        None if holds_bytes else length,
    ]
    return ("\n".join(["MESSAGE", *filter(None, headers)]) + f"\n\n{_body(i, body_bytes)}\0\n").encode()


def _stomp_decoder(**shape: int) -> Case:
    scanner = FrameScanner(max_body_bytes=1 << 20)
    while scanner.size < SEGMENT_BYTES:
        scanner.feed(_frame(scanner.messages, **shape))  # type: ignore[arg-type]
    block = scanner.take()
    decoding = partial(decode_stomp, dialect=STOMP, source=_ORDERS, first_sequence=0, body_type="auto")
    return Case(len(block), partial(decoding, block))


def _scan() -> Case:
    """The receiver's part: finding frame ends and message ids, in reads of the size that a socket returns."""
    frames = [_frame(i) for i in range(5000)]
    data = memoryview(b"".join(frames))
    reads = [data[at : at + _READ_BYTES] for at in range(0, len(data), _READ_BYTES)]

    def feed() -> None:
        scanner = FrameScanner(max_body_bytes=1 << 20)
        for read in reads:
            scanner.feed(read)

    return Case(len(frames), feed)


def _properties(i: int, *, mixed: bool, typed: bool, odd: bool) -> bytes:
    values = {name: encode(value) for name, value in _strings(i).items()}
    if typed:
        own = [encode(TypedValue("int", i)), b"\x54" + bytes([i % 100]), encode(i / 2), encode(_NOW_MS + i), b"\x41"]
        values = dict(zip(values, own, strict=True))
    if mixed and i % 7 == 0:
        values["extra"] = encode(str(i))
    if odd:
        values["note"] = b"\x84" + bytes(8)
    pairs = [part for name, value in values.items() for part in (encode(name), value)]
    return section(0x74, wide(0xD1, *pairs, encode("JMSXDeliveryCount"), encode(None)))


def _message(i: int, *, body_bytes: int = 1024, mixed: bool = False, typed: bool = False, odd: bool = False) -> bytes:
    """An order in the layout in which Artemis 2.55 sends what a CORE client wrote. ``odd``: with a decimal64 as
    property, which is left to the reader of one message.
    """
    fields = [
        *(f"ID:12345678-90ab-cdef-1234-{i:012d}", None, "orders", "order"),
        "answers" if mixed and i % 5 == 0 else None,
        None if mixed and i % 3 == 0 else f"order-{i}",
        *(None, None, None, TypedValue("timestamp", _NOW_MS + i)),
    ]
    holds_bytes, body = mixed and i % 2 == 1, _body(i, body_bytes)
    kind = encode(Symbol("x-opt-jms-dest")), b"\x51\x00", encode(Symbol("x-opt-jms-msg-type"))
    return b"".join(
        [
            section(0x70, b"\xc0\x02\x01\x41"),
            section(0x72, wide(0xD1, *kind, b"\x51\x03" if holds_bytes else b"\x51\x05")),
            section(0x73, wide(0xD0, *map(encode, fields))),
            _properties(i, mixed=mixed, typed=typed, odd=odd),
            section(0x75, encode(body.encode())) if holds_bytes else section(0x77, encode(body)),
        ]
    )


def _amqp_decoder(*, body_bytes: int = 1024, odd_share: int = 0, **shape: bool) -> Case:
    """A block as the receiver closes it. ``odd_share``: one message in so many is odd."""
    rows = min(SEGMENT_BYTES // (body_bytes + 400), _BLOCK_MESSAGES)
    odd = [bool(odd_share) and i % odd_share == 0 for i in range(rows)]
    messages = [_message(i, body_bytes=body_bytes, odd=odd[i], **shape) for i in range(rows)]
    block = MessageBlock(b"".join(messages), ends=index_of(np.cumsum([len(message) for message in messages])))
    decoding = partial(decode_amqp, dialect=AMQP, source=_ORDERS, first_sequence=0, body_type="auto")
    return Case(rows, partial(decoding, block))


# --- encoders ------------------------------------------------------------------------------------


def _encoders() -> dict[str, tuple[Case, Case | None]]:
    batches = {"plain": _batch(plain=True), "typed": _typed_batch()}
    return {f"encode.amqp.{name}": (_amqp_encoder(rows), _stomp_encoder(rows)) for name, rows in batches.items()}


def _batch(*, plain: bool = False) -> pa.RecordBatch:
    """Orders of 1 KB. Unless ``plain``, each order has a time with two colons, every tenth note has a line feed, and
    every seventh note and every third JMSType are null.
    """
    return pa.record_batch(
        {
            "JMSCorrelationID": pa.array([f"order-{i}" for i in range(_ROWS)]),
            "JMSType": pa.array([None if i % 3 == 0 and not plain else "order" for i in range(_ROWS)]),
            "JMSPriority": pa.array([4 if plain else i % 10 for i in range(_ROWS)], pa.int32()),
            "properties": _maps([_row_properties(i, plain=plain) for i in range(_ROWS)]),
            "text": pa.array([_body(i, 1024) for i in range(_ROWS)]),
        }
    )


def _maps(rows: list[dict[str, str | None]]) -> pa.Array:
    return pa.array([list(row.items()) for row in rows], pa.map_(pa.string(), pa.string()))


def _row_properties(i: int, *, plain: bool) -> dict[str, str | None]:
    note = "none" if plain else None if i % 7 == 0 else f"line\n{i}" if i % 10 == 0 else "none"
    created = "2026-01-01T120000" if plain else f"2026-01-01T12:{i % 60:02d}:00"
    return {**_strings(i), "created": created, "note": note}


def _typed_batch() -> pa.RecordBatch:
    """Orders of 1 KB with properties of five types, which STOMP sends as strings."""
    plain = _batch(plain=True)
    values = [
        {
            "number": str(i),
            "share": f"{i / 2}",
            "created": str(_NOW_MS + i),
            "paid": "true" if i % 3 else "false",
            "note": f"path {i}",
        }
        for i in range(_ROWS)
    ]
    types: dict[str, str | None] = dict(zip(values[0], ("int", "double", "long", "boolean", "string"), strict=True))
    columns = dict(zip(plain.schema.names, plain.columns, strict=True))
    columns |= {"properties": _maps(values), "property_types": _maps([types] * _ROWS)}  # type: ignore[arg-type]
    return pa.record_batch(columns)


def _amqp_encoder(rows: pa.RecordBatch) -> Case:
    prefix = "ID:12345678-90ab-cdef-1234-1234567890ab:"
    limits = {"now_ms": _NOW_MS, "message_id_prefix": prefix, "max_message_bytes": _MAX_BYTES}
    return Case(_ROWS, partial(encode_amqp, rows, dialect=AMQP, destination=_ORDERS, property_columns=(), **limits))  # type: ignore[arg-type]


def _stomp_encoder(rows: pa.RecordBatch) -> Case:
    limits = {"now_ms": _NOW_MS, "transaction": "task-0", "max_frame_bytes": _MAX_BYTES}
    return Case(_ROWS, partial(encode_stomp, rows, dialect=STOMP, destination=_ORDERS, **limits))  # type: ignore[arg-type]


if __name__ == "__main__":
    print(json.dumps(codec_rates(turns=15), indent=2))
