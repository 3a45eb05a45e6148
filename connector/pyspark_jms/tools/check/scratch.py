"""``check`` over STOMP, with messages: types of bodies, prefetch window. The queue stays, and is empty afterwards.

It is a queue of the conformance tests: only messages of the run are acknowledged.
"""

import contextlib
import time
from collections.abc import Generator

from pyspark_jms.errors import InvalidDestinationError, JMSError
from pyspark_jms.tools.check.conformance.queue import ConformanceQueue, EndedEarly
from pyspark_jms.tools.check.findings import Finding, Verdict

__all__ = ["SCRATCH_QUEUE", "Clock", "scratch_findings"]

SCRATCH_QUEUE = "pyspark-jms.check"
"""All runs use one name, because the broker may keep an auto-created queue for ever."""

Clock = tuple[float, float, float]
"""This machine's time before a SEND, the broker's timestamp, this machine's time afterwards; epoch milliseconds."""

_WINDOW_BYTES, _BODY_BYTES, _MESSAGES = 4_096, 1_000, 16
_BODIES: tuple[tuple[str, str | bytes], ...] = (("text", "text"), ("bytes", b"bytes"), ("text", ""), ("bytes", b""))
_REMEDY = "Permit this user to create queues, or name a queue that the user can read and write with --scratch-queue."
_NOT_RECEIVED = "Check whether the queue is paused or has a filter."


def scratch_findings(queue: ConformanceQueue) -> Generator[Finding, None, Clock | None]:
    """Run the tests, and return what they show of the broker's clock. The first error ends them; usually the user
    cannot create the queue.
    """
    try:
        queue.look_up()
    except InvalidDestinationError as error:
        yield Finding.of_error("scratch queue", error, Verdict.PROBLEM)
        return None
    clock = None
    try:
        finding, clock = _body_rule(queue)
        yield finding
        yield _window(queue)
    except EndedEarly as end:
        advice = "Let no other program use this queue, and remove what an interrupted check has left there."
        with contextlib.suppress(JMSError, EndedEarly):
            queue.remove_own()
        yield Finding(name="scratch queue", value=str(end), verdict=Verdict.NOTE, advice=advice)
    except JMSError as error:
        yield Finding.of_error("scratch queue", error, remedy=f"{error.remedy} {_REMEDY}")
    return clock


def _body_rule(queue: ConformanceQueue) -> tuple[Finding, Clock | None]:
    """Find whether text and bytes, also empty ones, are received as the type that was sent."""
    wanted = [kind for kind, _ in _BODIES]
    before = time.time() * 1000
    queue.send([{"body_type": kind, kind: body} for kind, body in _BODIES])
    with queue.reader() as reader:
        rows = reader.receive(len(_BODIES), queue.patience)
        reader.acknowledge()
    sent = rows[0]["JMSTimestamp"] if rows else None
    clock = None if sent is None else (before, sent.timestamp() * 1000, time.time() * 1000)
    return _read_as([row["body_type"] for row in rows], wanted, queue.patience), clock


def _read_as(found: list[str], wanted: list[str], seconds: float) -> Finding:
    if found == wanted:
        return Finding(name="body rule", value="text and bytes are distinguished")
    if len(found) < len(wanted):
        return Finding(
            name="body rule",
            value=f"{len(found)} of {len(wanted)} messages were received within {seconds:g} s",
            verdict=Verdict.PROBLEM,
            advice=_NOT_RECEIVED,
        )
    return Finding(
        name="body rule",
        value=f"sent {', '.join(wanted)}; read as {', '.join(found)}",
        verdict=Verdict.PROBLEM,
        advice="The body rule of this broker version is unknown. Use option bodyType, and please report a bug.",
    )


def _window(queue: ConformanceQueue) -> Finding:
    """Find whether the broker stops when windowBytes are in flight."""
    queue.send([{"text": "x" * _BODY_BYTES}] * _MESSAGES)
    with queue.reader(window_bytes=_WINDOW_BYTES) as reader:
        ahead = reader.count_ahead(queue.patience)
    queue.remove_own()
    if ahead < _MESSAGES:
        return Finding(name="window", value="the broker waits for acknowledgements when windowBytes are in flight")
    return Finding(
        name="window",
        value="the broker sends without waiting for acknowledgements",
        verdict=Verdict.PROBLEM,
        advice="windowBytes has no effect, so a full queue would fill the driver's memory.",
    )
