"""Whether bodies, headers, properties and a large message arrive as they were sent."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pyspark_jms.errors import JMSError
from pyspark_jms.tools.check.conformance.queue import PATIENCE_SECONDS, ConformanceQueue, Row
from pyspark_jms.tools.check.findings import Finding, Verdict

__all__ = ["bodies", "headers_and_properties", "large_message"]

_LARGE_BYTES = 1 << 20
_HOUR_MS = 3_600_000

_MAP = [("n", {"type": "int", "value": "42"}), ("t", {"type": "string", "value": "x"})]
_STREAM = [{"type": "long", "value": "7"}, {"type": "boolean", "value": "true"}]
_BODIES: tuple[tuple[str, str, Row], ...] = (
    ("text", "text", {"body_type": "text", "text": "text äöü € 😀 \\ :\t\r\nend"}),
    ("empty text", "text", {"body_type": "text", "text": ""}),
    ("bytes", "bytes", {"body_type": "bytes", "bytes": bytes(range(256))}),
    ("empty bytes", "bytes", {"body_type": "bytes", "bytes": b""}),
    ("map", "map", {"body_type": "map", "map": _MAP}),
    ("stream", "stream", {"body_type": "stream", "stream": _STREAM}),
    ("object", "bytes", {"body_type": "object", "bytes": bytes.fromhex("aced000574000161")}),
    ("no body", "body_type", {"body_type": "message"}),
)
"""Name, the column that has the content, and the row. The object is Java's serialization of "a"."""


def bodies(queue: ConformanceQueue) -> Iterator[Finding]:
    refused = {}
    for name, _, row in _BODIES:
        try:
            queue.send([{**row, "JMSCorrelationID": name}])
        except JMSError as error:
            refused[name] = error.fact
    with queue.reader() as reader:
        found = {row["JMSCorrelationID"]: row for row in reader.receive(len(_BODIES) - len(refused))}
        reader.acknowledge()
    for name, column, sent in _BODIES:
        arrived = found.get(name)
        if name in refused:
            yield Finding(name=f"body: {name}", value=f"refused: {refused[name]}", verdict=Verdict.NOTE)
        elif arrived is None:
            yield Finding(name=f"body: {name}", value="did not arrive", verdict=Verdict.PROBLEM)
        elif arrived["body_type"] != sent["body_type"]:
            yield Finding(name=f"body: {name}", value=f"arrived as {arrived['body_type']}", verdict=Verdict.PROBLEM)
        elif _comparable(arrived[column]) != _comparable(sent[column]):
            yield Finding(name=f"body: {name}", value="arrived changed", verdict=Verdict.PROBLEM)
        else:
            yield Finding(name=f"body: {name}", value="arrived as it was sent")


def _comparable(value: Any) -> Any:
    """A map has no order; its entries are pairs, and the elements of a stream are not."""
    is_map = isinstance(value, list) and all(isinstance(entry, tuple) for entry in value)
    return dict(value) if is_map else value


_PROPERTIES = (
    ("c_string", "string", "value: \\ ä\nend"),
    ("c_boolean", "boolean", "true"),
    ("c_byte", "byte", "-128"),
    ("c_short", "short", "-32768"),
    ("c_int", "int", "2147483647"),
    ("c_long", "long", "-9223372036854775808"),
    ("c_float", "float", "1.5"),
    ("c_double", "double", "-2.25"),
)


def headers_and_properties(queue: ConformanceQueue) -> Iterator[Finding]:
    sent = {
        "text": "x",
        "JMSCorrelationID": "correlation",
        "JMSType": "kind",
        "JMSReplyTo": f"queue://{queue.name}",
        "JMSPriority": 7,
        "JMSDeliveryMode": 2,
        "time_to_live": _HOUR_MS,
        "properties": [(name, value) for name, _, value in _PROPERTIES],
        "property_types": [(name, kind) for name, kind, _ in _PROPERTIES if kind != "string"],
    }
    before = datetime.now(UTC)
    queue.send([sent])
    with queue.reader() as reader:
        found = reader.receive(1)
        reader.acknowledge()
    if len(found) != 1:
        yield Finding(name="headers", value=f"{len(found)} of 1 message arrived", verdict=Verdict.PROBLEM)
        return
    yield _headers(sent, found[0], before)
    yield from _properties(found[0])


def _headers(sent: Row, row: Row, before: datetime) -> Finding:
    names = ("JMSCorrelationID", "JMSType", "JMSReplyTo", "JMSPriority", "JMSDeliveryMode")
    changed = [f"{name} is {row[name]!r}" for name in names if row[name] != sent[name]]
    changed += [f"{name} is null" for name in ("JMSMessageID", "JMSTimestamp", "JMSExpiration") if row[name] is None]
    if row["JMSExpiration"] is not None:
        hours = (row["JMSExpiration"] - before).total_seconds() * 1000 / _HOUR_MS
        changed += [] if 0.9 < hours < 1.1 else [f"JMSExpiration is in {hours:.1f} hours and not in 1"]  # noqa: PLR2004
    if not changed:
        return Finding(name="headers", value="all arrived as they were sent")
    return Finding(name="headers", value="; ".join(changed) + "; the others arrived", verdict=Verdict.NOTE)


def _properties(row: Row) -> Iterator[Finding]:
    values, types = dict(row["properties"] or ()), dict(row["property_types"] or ())
    wrong = [name for name, _, value in _PROPERTIES if values.get(name) != value]
    untyped = [name for name, kind, _ in _PROPERTIES if kind != types.get(name, "string")]
    yield Finding(
        name="properties",
        value=f"arrived otherwise: {', '.join(wrong)}" if wrong else "every value arrived",
        verdict=Verdict.PROBLEM if wrong else Verdict.FINE,
    )
    yield Finding(
        name="property types",
        value=f"lost: {', '.join(untyped)}" if untyped else "kept",
        verdict=Verdict.NOTE if untyped else Verdict.FINE,
    )


def large_message(queue: ConformanceQueue) -> Iterator[Finding]:
    """Larger than a frame of any broker that is known."""
    blocks = (hashlib.sha256(number.to_bytes(4, "big")).digest() for number in range(_LARGE_BYTES // 32))
    body = b"".join(blocks)
    try:
        queue.send([{"bytes": body}])
    except JMSError as error:
        yield Finding(name="large message", value=f"1 MiB is refused: {error.fact}", verdict=Verdict.NOTE)
        return
    with queue.reader() as reader:
        found = [row["bytes"] for row in reader.receive(1, PATIENCE_SECONDS)]
        reader.acknowledge()
    same = found == [body]
    yield Finding(
        name="large message",
        value="1 MiB arrived" if same else "1 MiB did not arrive as it was sent",
        verdict=Verdict.FINE if same else Verdict.PROBLEM,
    )
