"""What is on a queue, before a query subscribes: depth, body types, messages in delivery. By management alone.

Reads the headers and properties of listed messages, and no body.
"""

import json
from collections.abc import Iterator
from typing import Any

from pyspark_jms.check.census import Kind, census_finding, kinds_of
from pyspark_jms.check.findings import Finding, Verdict
from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import BodyType
from pyspark_jms.stomp.dialects.management import Management
from pyspark_jms.stomp.link.management import ManagementLink

__all__ = ["Queue", "queue_findings"]


class Queue:
    def __init__(self, link: ManagementLink, queue: str) -> None:
        self.name = link.queue_name(queue)
        self._link = link

    @property
    def words(self) -> Management:
        return self._link.words

    def attribute(self, name: str) -> Any:
        return self._link.queue_attribute(self.name, name)

    def number(self, name: str) -> int:
        return int(self.attribute(name))

    def listed(self) -> list[dict[str, Any]]:
        """The first messages that wait: as many as the broker shows at a time (200, unless it is set otherwise)."""
        return list(self._link.queue_operation(self.name, self.words.list_messages, ""))

    def delivering(self) -> dict[str, list[dict[str, Any]]]:
        """By the consumer that has them."""
        return dict(self._link.queue_operation(self.name, self.words.list_delivering))

    def stomp_sessions(self) -> list[str]:
        """As they stand in the keys of ``delivering``."""
        words = self.words.consumers
        of_queue = json.dumps({**words.of_queue, words.value_key: self.name})
        reply = json.loads(self._link.operation(self.words.broker_resource, words.operation, of_queue, 1, 1_000))
        rows = reply[words.rows_key]
        return [f":{row[words.session_key]}:" for row in rows if row[words.protocol_key] == words.stomp]

    def settings(self) -> dict[str, Any]:
        address = str(self.attribute(self.words.queue.address))
        return dict(json.loads(self._link.operation(self.words.broker_resource, self.words.address_settings, address)))

    def depth_of(self, queue: str) -> int | None:
        try:
            return int(self._link.queue_attribute(queue, self.words.queue.messages))
        except InvalidDestinationError:
            return None


def queue_findings(asked: Queue, most: int) -> Iterator[Finding]:
    """``most``: more messages in delivery than that are counted, not looked at."""
    try:
        depth = asked.number(asked.words.queue.messages)
    except InvalidDestinationError:
        yield Finding(
            name="queue",
            value=f"there is no queue {asked.name} on this broker",
            verdict=Verdict.NOTE,
            advice="Is the name right? The first message or reader may create it, where the broker allows that.",
        )
        return
    delivering = asked.number(asked.words.queue.delivering)
    yield _depth(asked, depth, delivering)
    yield _body_types(asked, depth, delivering, most)
    if delivering:
        yield _in_delivery(asked, delivering, most)
    yield _dead_letters(asked)


def _depth(asked: Queue, depth: int, delivering: int) -> Finding:
    words = asked.words.queue
    consumers, scheduled, paused = map(asked.attribute, (words.consumers, words.scheduled, words.paused))
    parts = [f"{depth:,} messages", f"{delivering:,} of them in delivery to {consumers} consumers"]
    if scheduled:
        parts.append(f"{scheduled:,} scheduled for later")
    if paused:
        parts.append("the queue is paused")
    return Finding(
        name="queue",
        value=f"{asked.name}: {', '.join(parts)}",
        verdict=Verdict.NOTE if paused else Verdict.FINE,
        advice="A paused queue delivers nothing." if paused else "",
        figures={"messages": depth, "delivering": delivering, "consumers": consumers, "scheduled": scheduled},
    )


def _body_types(asked: Queue, depth: int, delivering: int, most: int) -> Finding:
    messages = asked.listed()
    if 0 < delivering <= most:
        messages += [message for listed in asked.delivering().values() for message in listed]
    return census_finding(kinds_of(messages, asked.words), depth, asked.words)


def _in_delivery(asked: Queue, delivering: int, most: int) -> Finding:
    if delivering > most:
        return Finding(
            name="in delivery",
            value=f"{delivering:,} messages, more than --max: not looked at",
            verdict=Verdict.NOTE,
        )
    sessions = asked.stomp_sessions()
    held = [
        message
        for consumer, listed in asked.delivering().items()
        if any(session in consumer for session in sessions)
        for message in listed
    ]
    streams = kinds_of(held, asked.words)[Kind(BodyType.STREAM)]
    if not streams:
        return Finding(name="in delivery", value="nothing that a reader over STOMP cannot receive")
    return Finding(
        name="in delivery",
        value=f"{streams:,} StreamMessages are held by readers over STOMP",
        verdict=Verdict.PROBLEM,
        advice="Those that were never put on the wire stay there until their reader ends, and then come back: only a"
        " JMS client can consume them.",
        figures={"streamsAtStompReaders": streams},
    )


def _dead_letters(asked: Queue) -> Finding:
    settings = asked.settings()
    attempts = int(settings.get(asked.words.delivery_attempts_key, asked.words.default_delivery_attempts))
    address = settings.get(asked.words.dead_letter_key)
    if attempts < 0:
        return Finding(name="dead letters", value="a message is delivered without limit")
    if not address:
        return Finding(
            name="dead letters",
            value=f"after {attempts} delivery attempts a message is deleted",
            verdict=Verdict.NOTE,
            advice="A killed reader costs an attempt for every message in flight: give the address a"
            " dead-letter-address.",
            figures={"maxDeliveryAttempts": attempts},
        )
    depth = asked.depth_of(str(address))
    held = "" if depth is None else f", which holds {depth:,}"
    return Finding(
        name="dead letters",
        value=f"after {attempts} delivery attempts a message goes to {address}{held}",
        figures={"maxDeliveryAttempts": attempts, "deadLetterAddress": address, "deadLetters": depth},
    )
