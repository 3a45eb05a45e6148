"""Trials of conformance: how messages arrive, and how they are delivered, acknowledged and delivered again."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from pyspark_jms.errors import JMSError
from pyspark_jms.tools.check.findings import Finding, note, problem
from pyspark_jms.tools.check.scratch_queue import PATIENCE_SECONDS, Row, ScratchQueue, trusts_selectors

__all__ = [
    "acknowledgements",
    "bodies",
    "body_rule",
    "browse",
    "end_of_queue",
    "headers_and_properties",
    "large_message",
    "missing_queue",
    "selector",
    "transactions",
    "window",
]

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
    found = {row["JMSCorrelationID"]: row for row in queue.receive(len(_BODIES) - len(refused))}
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
    rows = queue.receive(len(_RULE), queue.patience)
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
    found = queue.receive(1)
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
    found = [row["bytes"] for row in queue.receive(1, PATIENCE_SECONDS)]
    if found == [body]:
        yield Finding("large message", "1 MiB arrived")
    else:
        yield problem("large message", "1 MiB did not arrive as it was sent")


# --- deliveries --------------------------------------------------------------------------------------

_SELECTOR = "kind = 'a'"
_END_SECONDS = 10.0
_WINDOW_BYTES, _BODY_BYTES, _MESSAGES = 4_096, 1_000, 16


def transactions(queue: ScratchQueue) -> Iterator[Finding]:
    """Find whether a transaction is one. It comes first, because it decides how the other trials send."""
    with closing(queue.connect_sender()) as link:
        if not link.dialect.has_transactions:
            queue.uses_transactions = False
            yield Finding("transactions", "not tried: the dialect has none, and confirms each row")
            return
        try:
            for block in queue.encode(link, _texts("aborted", 3)):
                link.send(block)
        except JMSError as error:
            queue.uses_transactions = False
            yield note("transactions", f"refused: {error.fact}", "Writes need transaction=none on this broker.")
            return
    queue.send(_texts("committed", 2))
    found = _received_texts(queue, 2)
    if found == ["committed 0", "committed 1"]:
        yield Finding("transactions", "an aborted one left nothing, a committed one arrived")
    else:
        yield problem("transactions", f"arrived: {found}")


def window(queue: ScratchQueue) -> Iterator[Finding]:
    """Find whether the broker stops when windowBytes are in flight."""
    queue.send([{"text": "x" * _BODY_BYTES}] * _MESSAGES)
    with queue.reader(window_bytes=_WINDOW_BYTES) as reader:
        ahead = reader.count_ahead(queue.patience)
    queue.remove_own()
    if ahead < _MESSAGES:
        yield Finding("window", "the broker waits for acknowledgements when windowBytes are in flight")
    else:
        value = "the broker sends without waiting for acknowledgements"
        yield problem("window", value, "windowBytes has no effect, so a full queue would fill the driver's memory.")


def _texts(text: str, count: int, **columns: Any) -> list[Row]:
    return [{"text": f"{text} {number}", **columns} for number in range(count)]


def _received_texts(queue: ScratchQueue, count: int) -> list[str]:
    return [row["text"] for row in queue.receive(count)]


def _compared(name: str, *, works: bool, trusted: bool, yes: str, no: str) -> Finding:
    """Judge a feature that the dialect uses, or not, and that was seen to work, or not."""
    if trusted and not works:
        return problem(name, no, "The dialect relies on it: report this with the file.")
    if works and not trusted:
        return note(name, yes, "The dialect does not use it on this broker: report it with this file.")
    return Finding(name, yes if works else f"{no}; the dialect does not use it")


def selector(queue: ScratchQueue) -> Iterator[Finding]:
    queue.send([{"text": kind, "properties": [("kind", kind)]} for kind in "abab"])
    try:
        with queue.reader(selector=_SELECTOR) as reader:
            found = [row["text"] for row in reader.receive(2)]
    except JMSError as error:
        works, no = False, f"refused: {error.fact}"
    else:
        works = found == ["a", "a"]
        no = f"of 2 messages that match and 2 that do not, {found.count('a')} and {found.count('b')} came"
    yes = "only the messages that match came"
    yield _compared("selector", works=works, trusted=trusts_selectors(queue.dialect), yes=yes, no=no)


def browse(queue: ScratchQueue) -> Iterator[Finding]:
    """Find whether another consumer receives the messages while they are shown, and they stay."""
    queue.send(_texts("shown", 3))
    try:
        with queue.reader(browse=True) as shown:
            seen = len(shown.receive(3))
            with queue.reader() as other:
                free = len(other.receive(3, _END_SECONDS / 5))
    except JMSError as error:
        works, no = False, f"refused: {error.fact}"
    else:
        stay = len(_received_texts(queue, 3))
        works = seen == free == stay == 3  # noqa: PLR2004
        no = f"{seen} of 3 messages were shown, {free} of them came to another consumer meanwhile, {stay} stayed"
    yes = "messages are shown, come to other consumers meanwhile, and stay"
    yield _compared("browse", works=works, trusted=queue.dialect.browses, yes=yes, no=no)


def end_of_queue(queue: ScratchQueue) -> Iterator[Finding]:
    """Find whether a drain is answered, by which AvailableNow finds the end of a queue."""
    with queue.reader() as reader:
        proven = reader.proves_end(_END_SECONDS)
        reader.receive(0)  # a message of another program would be the reason
    if proven:
        yield Finding("end of queue", "a drain of the empty queue is answered")
    else:
        advice = "AvailableNow does not find the end of a queue."
        yield problem("end of queue", "a drain of the empty queue is not answered", advice)


# --- acknowledgements and redelivery -------------------------------------------------------------------------


def acknowledgements(queue: ScratchQueue) -> Iterator[Finding]:
    """Two of six are acknowledged, the connection is lost, a reader stops in order, and the others are acknowledged."""
    queue.send(_texts("n", 6))
    with queue.reader() as reader:
        first = reader.receive(6)
        confirms = reader.link.confirms_acknowledgements
        reader.acknowledge(2)
        reader.link.drop()  # as the death of the process would
    with queue.reader() as reader:
        lost = reader.receive(4, PATIENCE_SECONDS)
        after_loss = reader.failed_deliveries()
    with queue.reader() as reader:
        stopped = reader.receive(4, PATIENCE_SECONDS)
        after_stop = reader.failed_deliveries()
        reader.acknowledge()
    left = queue.receive(0)
    yield _order([row["text"] for row in first])
    yield _came_back(first, lost, stopped, left, confirms=confirms)
    yield _redelivered(first, lost, stopped, after_loss, after_stop)
    yield _recognised(first, lost, queue.dialect)


def _order(found: list[str]) -> Finding:
    if found == sorted(found):
        return Finding("order", "messages came in the order in which they were sent")
    return note("order", f"messages came as {', '.join(found)}")


def _came_back(
    first: Sequence[Row], lost: Sequence[Row], stopped: Sequence[Row], left: Sequence[Row], *, confirms: bool
) -> Finding:
    wanted = sorted(row["text"] for row in first[2:])
    again = [sorted(row["text"] for row in each) for each in (lost, stopped)]
    confirmed = "acknowledgements are confirmed" if confirms else "acknowledgements are not confirmed"
    if len(first) == 6 and again == [wanted, wanted] and not left:  # noqa: PLR2004
        value = f"{confirmed}; exactly the messages without one came back after a lost connection and after a stop"
        return Finding("acknowledgements", value)
    value = (
        f"{confirmed}; {len(first)} of 6 messages came, 2 were acknowledged, {len(lost)} came after a lost"
        f" connection, {len(stopped)} after a stop, and {len(left)} after all were acknowledged"
    )
    if len(first) != 6 or any(set(wanted) - set(each) for each in again):  # noqa: PLR2004
        return problem("acknowledgements", value, "Messages were lost.")
    return note("acknowledgements", value, "Acknowledged messages came again: reads are at-least-once.")


def _redelivered(
    first: Sequence[Row],
    lost: Sequence[Row],
    stopped: Sequence[Row],
    after_loss: list[int] | None,
    after_stop: list[int] | None,
) -> Finding:
    flags = [sum(bool(row["JMSRedelivered"]) for row in each) for each in (first, lost, stopped)]
    value = (
        f"JMSRedelivered: {flags[0]} of 6 at first, {flags[1]} of 4 after a lost connection, {flags[2]} after a stop"
    )
    if after_loss and after_stop:
        value += f"; failed deliveries: {max(after_loss)} after a lost connection, {max(after_stop)} after a stop"
    if flags[1] == len(lost):
        return Finding("redelivery", value)
    return note("redelivery", value, "Some redeliveries are not marked.")


def _recognised(first: Sequence[Row], lost: Sequence[Row], dialect: Any) -> Finding:
    ids = {row["text"]: row["delivery_id"] for row in first}
    works = bool(lost) and all(row["delivery_id"] is not None for row in lost)
    works = works and all(ids.get(row["text"]) == row["delivery_id"] for row in lost)
    trusted = getattr(dialect, "stable_id_separator", "") is not None
    return _compared(
        "delivery_id",
        works=works,
        trusted=trusted,
        yes="is the same when a message is delivered again",
        no="does not recognise a message that is delivered again",
    )


# --- a queue that does not exist -----------------------------------------------------------------------------


def missing_queue(queue: ScratchQueue) -> Iterator[Finding]:
    """Find whether a message that is accepted is there: some brokers accept and drop it."""
    missing = queue.missing
    try:
        queue.remove_own(queue=missing)
        yield Finding("read missing queue", "the broker creates it, or it exists")
    except JMSError as error:
        yield Finding("read missing queue", f"refused: [{error.code}] {error.fact}")
    try:
        queue.send(_texts("missing", 1), queue=missing)
    except JMSError as error:
        yield Finding("write missing queue", f"refused: [{error.code}] {error.fact}")
        return
    with queue.reader(queue=missing) as reader:
        found = reader.receive(1)
    queue.remove_own(queue=missing)
    if found:
        yield Finding("write missing queue", f"accepted, and {missing} has the message")
    else:
        value = f"accepted, and {missing} does not have the message"
        yield problem("write missing queue", value, "Rows for a wrong name are lost.")
