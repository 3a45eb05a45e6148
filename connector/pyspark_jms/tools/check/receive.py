"""Receives the messages of a queue and gives them back. Unlike a listing, the result is exact.

Meanwhile other consumers cannot receive the messages, and if the process is killed, each message loses a delivery
attempt. UNSUBSCRIBE gives the messages back without a change. So a user must request this check.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

from pyspark_jms.jms.model import BodyType, Destination, DestinationKind
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.management.queue_facts import look_up_queues
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.sentences import counted
from pyspark_jms.source.end_of_queue import end_of_reading
from pyspark_jms.source.links import SourceLink, SourceProtocol
from pyspark_jms.tools.check.findings import Finding, Verdict, problem
from pyspark_jms.tools.check.queue import (
    BodyKind,
    Queue,
    body_types_finding,
    count_kinds,
    describe_counts,
    describe_losses,
)
from pyspark_jms.tools.check.scratch_queue import decoded

__all__ = ["receive_findings"]

_WINDOW_BYTES = 64 << 20
_QUIET_SECONDS, _SETTLE_SECONDS = 2.0, 0.05
_PAGE = 200
"""The default maxPageSize of ActiveMQ Classic (6.3.1): without an acknowledgement a consumer may get no second page."""
_LONGEST_SECONDS, _LATE_SECONDS = 30.0, 5.0
"""Limits for the two times that messages are received: a producer may never be quiet."""


def receive_findings(
    protocol: SourceProtocol,
    settings: ConnectionSettings,
    queue: str,
    limit: int,
    inspected: Queue | None,
    *,
    loses_bodies: bool,
) -> Iterator[Finding]:
    """Receive until ``limit`` messages, 64 MB, 2 s without a message, or for 30 s.

    ``loses_bodies``: not every message arrives over this protocol, or with its body. ``inspected`` lists such messages.
    """
    found = look_up_queues(protocol.open_management, settings, [queue]).get(queue)
    if found is not None and not found.exists:
        yield Finding("received", "nothing: a subscription would create the queue")
        return
    destination = Destination(DestinationKind.QUEUE, queue)
    listed = inspected if loses_bodies else None
    before = set() if listed is None else {m["messageID"] for each in listed.delivering().values() for m in each}
    condition = StateCondition()
    with closing(protocol.connect(settings, condition)) as link:
        link.subscribe(Subscription(destination=destination, window_bytes=_WINDOW_BYTES, probes=True))
        _until_quiet(link, condition, limit, _LONGEST_SECONDS)
        delivering = {} if listed is None else listed.delivering()
        _until_quiet(link, condition, math.inf, _LATE_SECONDS)  # also what was in flight when the broker listed them
        blocks = link.take()
        is_paged = link.dialect.browse_is_limited
    batches = [decoded(protocol, link, block) for block in blocks]
    yield _received(batches, loses_bodies=loses_bodies, is_paged=is_paged)
    if listed is not None:
        ids = [identifier.decode() for block in blocks for identifier in block.ids if identifier is not None]
        received = _ReceivedIds(ids)
        delivered = [message for message in received.delivered_to_us(delivering) if message["messageID"] not in before]
        kinds = count_kinds(delivered)
        yield body_types_finding(kinds, len(delivered), listed.words.losses, name="bodies delivered")
        yield _never_delivered(count_kinds(received.not_received(delivered, listed.words.losses)))


def _until_quiet(link: SourceLink, condition: StateCondition, limit: float, seconds: float) -> None:
    end = end_of_reading(_QUIET_SECONDS, settle=_SETTLE_SECONDS)
    condition.poll(lambda: link.waiting()[0] >= limit or end.is_reached([link], link.waiting()), seconds, link.check)


class _ReceivedIds:
    """The ids of the received messages; on the wire an id is ``CONSUMER,MESSAGE`` (Artemis)."""

    def __init__(self, ids: list[str]) -> None:
        parts = [identifier.rpartition(",") for identifier in ids]
        self._consumers = {consumer for consumer, _, _ in parts}
        self._messages = {int(message) for _, _, message in parts if message.isdigit()}

    def delivered_to_us(self, delivering: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Return the messages in delivery to this consumer, in order; to all consumers if it received none."""
        keys = [key for key in delivering if any(f":{consumer}," in key for consumer in self._consumers)]
        return [message for key in (keys or delivering) for message in delivering[key]]

    def not_received(self, delivered: list[dict[str, Any]], losses: Mapping[BodyType, str]) -> list[dict[str, Any]]:
        """Return the messages that never arrive: a later one arrived, or their body may be lost. Others may be late."""
        received = [message["messageID"] in self._messages for message in delivered]
        last = max((index for index, yes in enumerate(received) if yes), default=-1)
        return [
            message
            for index, message in enumerate(delivered)
            if not received[index] and (index < last or describe_losses(count_kinds([message]), losses))
        ]


def _received(batches: Iterable[Any], *, loses_bodies: bool, is_paged: bool) -> Finding:
    kinds: Counter[str] = Counter()
    empty = 0
    for rows in batches:
        kinds.update(str(kind) for kind in rows.column("body_type").to_pylist())
        empty += rows.column("text").to_pylist().count("")
    total = kinds.total()
    shown = ", ".join(f"{kind} {count:,}" for kind, count in sorted(kinds.items())) or "nothing"
    advice = "An empty text may be a Map or Object message whose body was lost." if empty and loses_bodies else ""
    if is_paged and total >= _PAGE:
        advice = "There may be more: the broker sends the next maxPageSize messages after an acknowledgement."
    value = f"{counted(total)}, given back: {shown}" + (f"; {counted(empty, 'empty text')}" if empty else "")
    details = {"received": total, "bodyTypes": dict(kinds), "emptyTexts": empty}
    return Finding("received", value, Verdict.NOTE if advice else Verdict.FINE, advice, details)


def _never_delivered(kinds: Counter[BodyKind]) -> Finding:
    if not kinds:
        return Finding("not received", "every message in delivery was received")
    return problem(
        "not received",
        f"the broker does not send {counted(kinds.total())}: {describe_counts(kinds)}",
        "They stay in delivery while a STOMP consumer is subscribed. Only a JMS client can consume them.",
        {"bodyTypes": {str(kind): count for kind, count in kinds.items()}},
    )
