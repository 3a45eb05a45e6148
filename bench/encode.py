"""Measures the encoder: rows of a RecordBatch → SEND frames, on one core in memory, without Spark and broker.

The base case has 1 KB of text and five properties. ``encode.rows_per_s`` has nulls in the header columns and in the
properties, and values that need escapes; ``encode.plain_rows_per_s`` has none of these. Run it with
``python -m bench.encode``.
"""

import json

import pyarrow as pa

from bench.one_core import Case, rates
from pyspark_jms.columns.sink_schema import SendDefaults
from pyspark_jms.jms.model import Destination
from pyspark_jms.stomp.columns.encode import encode
from pyspark_jms.stomp.dialects import ARTEMIS

ROWS = 10_000  # Spark's spark.sql.execution.arrow.maxRecordsPerBatch
TURNS = 31
_NOW_MS = 1_760_000_000_000


def batch(*, body_bytes: int, plain: bool) -> pa.RecordBatch:
    """Orders. Unless ``plain``, each order has a time with two colons, every tenth note has a line feed, and every
    seventh note and every third JMSType are null.
    """
    maps = pa.map_(pa.string(), pa.string())
    return pa.record_batch(
        {
            "JMSCorrelationID": pa.array([f"order-{i}" for i in range(ROWS)]),
            "JMSType": pa.array([None if i % 3 == 0 and not plain else "order" for i in range(ROWS)]),
            "JMSPriority": pa.array([4 if plain else i % 10 for i in range(ROWS)], pa.int32()),
            "properties": pa.array([_properties(i, plain=plain) for i in range(ROWS)], maps),
            "text": pa.array([f"{i:012d}" + "x" * (body_bytes - 12) for i in range(ROWS)]),
        }
    )


def _properties(i: int, *, plain: bool) -> list[tuple[str, str | None]]:
    return [
        ("customer", f"C{i % 1000:06d}"),
        ("region", ("north", "south", "east", "west")[i % 4]),
        ("amount", f"{i * 7 % 100_000}.50"),
        ("created", "2026-01-01T120000" if plain else f"2026-01-01T12:{i % 60:02d}:00"),
        ("note", "none" if plain else None if i % 7 == 0 else f"line\n{i}" if i % 10 == 0 else "none"),
    ]


def case(*, body_bytes: int, plain: bool) -> Case:
    defaults = SendDefaults.of_jms(Destination.parse("queue://orders"))
    rows = batch(body_bytes=body_bytes, plain=plain)
    return Case(
        rows.num_rows,
        lambda: encode(
            rows,
            dialect=ARTEMIS,
            defaults=defaults,
            transaction="task-0",
            now_ms=_NOW_MS,
            max_frame_bytes=100 << 20,
        ),
    )


def cases() -> dict[str, Case]:
    return {
        "encode.rows_per_s": case(body_bytes=1024, plain=False),
        "encode.plain_rows_per_s": case(body_bytes=1024, plain=True),
        "encode.100_b_rows_per_s": case(body_bytes=100, plain=False),
    }


if __name__ == "__main__":
    print(json.dumps({key: round(value) for key, value in rates(cases(), turns=TURNS).items()}, indent=2))
