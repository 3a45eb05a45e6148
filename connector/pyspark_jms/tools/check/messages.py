"""Trials of messages: do bodies, headers, properties and a large message arrive as they were sent?"""

import hashlib
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pyspark_jms.errors import JMSError
from pyspark_jms.tools.check.findings import Finding, note, problem
from pyspark_jms.tools.check.scratch_queue import PATIENCE_SECONDS, Row, ScratchQueue

__all__ = ["bodies", "body_rule", "headers_and_properties", "large_message"]

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


def bodies(queue: ScratchQueue) -> Iterator[Finding]:
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
            yield note(f"body: {name}", f"refused: {refused[name]}")
        elif arrived is None:
            yield problem(f"body: {name}", "did not arrive")
        elif arrived["body_type"] != sent["body_type"]:
            yield problem(f"body: {name}", f"arrived as {arrived['body_type']}")
        elif _comparable(arrived[column]) != _comparable(sent[column]):
            yield problem(f"body: {name}", "arrived changed")
        else:
            yield Finding(f"body: {name}", "arrived as it was sent")


_RULE: tuple[tuple[str, str | bytes], ...] = (("text", "text"), ("bytes", b"bytes"), ("text", ""), ("bytes", b""))


def body_rule(queue: ScratchQueue) -> Iterator[Finding]:
    """Find whether text and bytes, also empty ones, are received as the type that was sent, and what their timestamp
    shows of the broker's clock.
    """
    wanted = [kind for kind, _ in _RULE]
    before = time.time() * 1000
    queue.send([{"body_type": kind, kind: body} for kind, body in _RULE])
    with queue.reader() as reader:
        rows = reader.receive(len(_RULE), queue.patience)
        reader.acknowledge()
    found, sent = [row["body_type"] for row in rows], rows[0]["JMSTimestamp"] if rows else None
    queue.clock = None if sent is None else (before, sent.timestamp() * 1000, time.time() * 1000)
    if found == wanted:
        yield Finding("body rule", "text and bytes are distinguished")
    elif len(found) < len(wanted):
        value = f"{len(found)} of {len(wanted)} messages were received within {queue.patience:g} s"
        yield problem("body rule", value, "Check whether the queue is paused or has a filter.")
    else:
        yield problem(
            "body rule",
            f"sent {', '.join(wanted)}; read as {', '.join(found)}",
            "The body rule of this broker version is unknown. Use option bodyType, and please report a bug.",
        )


def _comparable(value: Any) -> Any:
    """Return a map as a ``dict``, because it has no order. Its entries are pairs, the elements of a stream are not."""
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


def headers_and_properties(queue: ScratchQueue) -> Iterator[Finding]:
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
        yield problem("headers", f"{len(found)} of 1 message arrived")
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
        return Finding("headers", "all arrived as they were sent")
    return note("headers", "; ".join(changed) + "; the others arrived")


def _properties(row: Row) -> Iterator[Finding]:
    values, types = dict(row["properties"] or ()), dict(row["property_types"] or ())
    wrong = [name for name, _, value in _PROPERTIES if values.get(name) != value]
    untyped = [name for name, kind, _ in _PROPERTIES if kind != types.get(name, "string")]
    if wrong:
        yield problem("properties", f"arrived otherwise: {', '.join(wrong)}")
    else:
        yield Finding("properties", "every value arrived")
    yield note("property types", f"lost: {', '.join(untyped)}") if untyped else Finding("property types", "kept")


def large_message(queue: ScratchQueue) -> Iterator[Finding]:
    """Send a message that is larger than a frame of any broker that is known."""
    blocks = (hashlib.sha256(number.to_bytes(4, "big")).digest() for number in range(_LARGE_BYTES // 32))
    body = b"".join(blocks)
    try:
        queue.send([{"bytes": body}])
    except JMSError as error:
        yield note("large message", f"1 MiB is refused: {error.fact}")
        return
    with queue.reader() as reader:
        found = [row["bytes"] for row in reader.receive(1, PATIENCE_SECONDS)]
        reader.acknowledge()
    if found == [body]:
        yield Finding("large message", "1 MiB arrived")
    else:
        yield problem("large message", "1 MiB did not arrive as it was sent")
