"""Measures the decoder: a segment of MESSAGE frames → a RecordBatch, on one core in memory, without Spark and broker.

The base case has 1 KB of text and five properties, frames as Artemis writes them, and one header layout. The escaped
case has two colons in one value. The mixed case has escapes, text and bytes, with and without JMSCorrelationID,
JMSReplyTo and a sixth property, so that no two neighbouring frames have the same layout. The decoder gets the frame
ends, as the receiver finds them; case ``scan`` measures the receiver's part. Run it with ``python -m bench.decode``.
"""

import json

from bench.one_core import Case, rates
from pyspark_jms.jms.model import TYPES_MARKER, Destination
from pyspark_jms.stomp.columns.decode import decode
from pyspark_jms.stomp.dialects import ARTEMIS
from pyspark_jms.stomp.link.inbox import SEGMENT_BYTES
from pyspark_jms.stomp.wire.scan import FrameScanner

READ_BYTES = 64 << 10
TURNS = 31
_FIRST_ID = 2_147_483_700
_NOW_MS = 1_760_000_000_000


_TYPES = {"customer": "int", "region": "int", "amount": "double", "created": "long", "note": "boolean"}


def frame(i: int, *, body_bytes: int, mixed: bool, escaped: bool, typed: bool = False) -> bytes:
    """An order, as Artemis 2.44 delivers it. ``typed``: its properties have the values of five types."""
    holds_bytes = mixed and i % 2 == 1
    length = f"content-length:{body_bytes}"
    colon = r"\c" if escaped else "."
    headers = [
        "subscription:1",
        length if holds_bytes else None,
        f"message-id:61,{_FIRST_ID + i}",
        "destination:orders",
        None if mixed and i % 3 == 0 else f"correlation-id:order-{i}",
        "expires:0",
        "redelivered:false",
        "priority:4",
        "persistent:true",
        r"reply-to:queue\c//answers" if mixed and i % 5 == 0 else None,
        f"timestamp:{_NOW_MS + i}",
        "type:order",
        "destination-type:ANYCAST",
        *(_typed(i) if typed else _strings(i, colon)),
        f"extra:{i}" if mixed and i % 7 == 0 else None,
        f"ack:61,{_FIRST_ID + i}",
        None if holds_bytes else length,
    ]
    body = f"{i:012d}" + "x" * (body_bytes - 12)
    return ("\n".join(["MESSAGE", *filter(None, headers)]) + f"\n\n{body}\0\n").encode()


def _strings(i: int, colon: str) -> list[str]:
    return [
        f"customer:C{i % 1000:06d}",
        f"region:{('north', 'south', 'east', 'west')[i % 4]}",
        f"amount:{i * 7 % 100_000}.50",
        f"created:2026-01-01T12{colon}{i % 60:02d}{colon}00",
        f"note:path {i}",
    ]


def _typed(i: int) -> list[str]:
    """Values of ``_TYPES``, and the header that the sink writes for column ``property_types``."""
    values = zip(_TYPES, [i, i % 100, i / 2, _NOW_MS + i, "true"], strict=True)
    types = json.dumps(_TYPES, separators=(",", ":")).replace(":", "\\c")
    return [*(f"{name}:{value}" for name, value in values), f"{TYPES_MARKER}:{types}"]


def case(*, body_bytes: int, mixed: bool, escaped: bool, typed: bool = False) -> Case:
    scanner = FrameScanner(max_body_bytes=1 << 20)
    while scanner.size < SEGMENT_BYTES:
        scanner.feed(frame(scanner.messages, body_bytes=body_bytes, mixed=mixed, escaped=escaped, typed=typed))
    block = scanner.take()
    source = Destination.parse("queue://orders")
    return Case(
        len(block),
        lambda: decode(block, dialect=ARTEMIS, source=source, first_sequence=0, body_type="auto"),
    )


def scan() -> Case:
    """The receiver's part: finding frame ends and message ids, in reads of the size that a socket returns."""
    frames = [frame(i, body_bytes=1024, mixed=False, escaped=False) for i in range(5000)]
    data = memoryview(b"".join(frames))
    reads = [data[at : at + READ_BYTES] for at in range(0, len(data), READ_BYTES)]

    def feed() -> None:
        scanner = FrameScanner(max_body_bytes=1 << 20)
        for read in reads:
            scanner.feed(read)

    return Case(len(frames), feed)


def cases() -> dict[str, Case]:
    return {
        "scan.frames_per_s": scan(),
        "decode.rows_per_s": case(body_bytes=1024, mixed=False, escaped=False),
        "decode.mixed_rows_per_s": case(body_bytes=1024, mixed=True, escaped=True),
        "decode.escaped_rows_per_s": case(body_bytes=1024, mixed=False, escaped=True),
        "decode.100_b_rows_per_s": case(body_bytes=100, mixed=False, escaped=False),
    }


if __name__ == "__main__":
    print(json.dumps({key: round(value) for key, value in rates(cases(), turns=TURNS).items()}, indent=2))
