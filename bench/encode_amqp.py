"""Measures the AMQP encoder beside the STOMP encoder: the same rows as bare messages and as SEND frames.

The rows are those of ``bench.encode``. The typed case has a column ``property_types`` with five types, which STOMP
sends as strings. Run it with ``python -m bench.encode_amqp``.
"""

import json
from statistics import median
from typing import Any

import pyarrow as pa

from bench.encode import ROWS, batch
from bench.one_core import Case, each_turn
from pyspark_jms.amqp.columns.encode import encode as encode_amqp
from pyspark_jms.amqp.dialects import ARTEMIS as AMQP
from pyspark_jms.columns.sink_schema import SendDefaults
from pyspark_jms.jms.model import Destination
from pyspark_jms.stomp.columns.encode import encode as encode_stomp
from pyspark_jms.stomp.dialects import ARTEMIS as STOMP

TURNS = 15
_NOW_MS = 1_760_000_000_000
_DEFAULTS = SendDefaults.of_jms(Destination.parse("queue://orders"))
_MAX_BYTES = 100 << 20


def typed_batch() -> pa.RecordBatch:
    """Orders of 1 KB with properties of five types."""
    plain = batch(body_bytes=1024, plain=True)
    strings = pa.map_(pa.string(), pa.string())
    values = [_typed(i) for i in range(ROWS)]
    types = [("number", "int"), ("share", "double"), ("created", "long"), ("paid", "boolean"), ("note", "string")]
    columns: dict[str, Any] = dict(zip(plain.schema.names, plain.columns, strict=True))
    columns |= {"properties": pa.array(values, strings), "property_types": pa.array([types] * ROWS, strings)}
    return pa.record_batch(columns)


def _typed(i: int) -> list[tuple[str, str]]:
    paid = "true" if i % 3 else "false"
    return [
        ("number", str(i)),
        ("share", f"{i / 2}"),
        ("created", str(_NOW_MS + i)),
        ("paid", paid),
        ("note", f"path {i}"),
    ]


def _amqp(rows: pa.RecordBatch) -> Case:
    return Case(
        rows.num_rows,
        lambda: encode_amqp(
            rows,
            dialect=AMQP,
            defaults=_DEFAULTS,
            property_columns=(),
            now_ms=_NOW_MS,
            message_id_prefix="ID:12345678-90ab-cdef-1234-1234567890ab:",
            max_message_bytes=_MAX_BYTES,
        ),
    )


def _stomp(rows: pa.RecordBatch) -> Case:
    return Case(
        rows.num_rows,
        lambda: encode_stomp(
            rows,
            dialect=STOMP,
            defaults=_DEFAULTS,
            transaction="task-0",
            now_ms=_NOW_MS,
            max_frame_bytes=_MAX_BYTES,
        ),
    )


def rates_and_ratios(*, turns: int) -> dict[str, float]:
    """Rows/s of each AMQP case, and the median of its ratios to the STOMP encoder."""
    batches = {
        "plain": batch(body_bytes=1024, plain=True),
        "nulls": batch(body_bytes=1024, plain=False),
        "typed": typed_batch(),
        "100_b": batch(body_bytes=100, plain=True),
    }
    cases: dict[str, Case] = {}
    for name, rows in batches.items():
        cases |= {f"amqp.{name}": _amqp(rows), f"stomp.{name}": _stomp(rows)}
    found = each_turn(cases, turns=turns)
    document: dict[str, float] = {}
    for name in batches:
        rates, others = found[f"amqp.{name}"], found[f"stomp.{name}"]
        document[f"encode.amqp.{name}_rows_per_s"] = round(median(rates))
        ratios = [rate / other for rate, other in zip(rates, others, strict=True)]
        document[f"encode.amqp.{name}_ratio"] = round(median(ratios), 3)
    return document


if __name__ == "__main__":
    print(json.dumps(rates_and_ratios(turns=TURNS), indent=2))
