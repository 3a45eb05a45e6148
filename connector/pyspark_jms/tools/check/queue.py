"""Checks a queue with management requests: depth, body types, messages in delivery, dead letters.

The dialect has the words of the requests. They list headers and properties of messages, and no body.
"""

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import BodyType
from pyspark_jms.management.attributes import Inspection, Management
from pyspark_jms.management.link import ManagementLink
from pyspark_jms.management.queue_facts import QueueFacts, queue_facts, require_name
from pyspark_jms.management.queue_rules import Effect, Judgement, judge
from pyspark_jms.sentences import counted
from pyspark_jms.tools.check.body_type_counts import BodyKind, body_types_finding, count_kinds
from pyspark_jms.tools.check.findings import Finding, Verdict

__all__ = [
    "Queue",
    "counts_finding",
    "fact_findings",
    "inspected_queue",
    "name_finding",
    "paging_findings",
    "queue_findings",
]


class Queue:
    """A queue of a broker that can be inspected."""

    def __init__(self, link: ManagementLink, inspection: Inspection, queue: str) -> None:
        self.name = link.queue_name(queue)
        self.words: Management = link.words
        self.inspection = inspection
        self._link = link

    def facts(self) -> QueueFacts:
        return queue_facts(self._link, [self.name])[self.name]

    def list_messages(self) -> list[dict[str, Any]]:
        """The first waiting messages: as many as the broker lists at a time (200 by default)."""
        return list(self._link.queue_operation(self.name, self.inspection.list_messages, ""))

    def delivering(self) -> dict[str, list[dict[str, Any]]]:
        """Consumer -> the messages in delivery to it."""
        return dict(self._link.queue_operation(self.name, self.inspection.list_delivering))

    def stomp_sessions(self) -> list[str]:
        """The STOMP sessions, as in the keys of ``delivering``."""
        words = self.inspection.consumers
        rows = self._link.rows(words, self.name, 1_000)
        return [f":{row[words.session_key]}:" for row in rows if row[words.protocol_key] == words.stomp]

    def settings(self) -> dict[str, Any]:
        address = str(self._link.queue_attribute(self.name, self.words.queue.address))
        return dict(
            json.loads(self._link.operation(self.words.broker_resource, self.inspection.address_settings, address))
        )

    def nodes(self) -> int:
        """The nodes of the broker's cluster; a live broker and its backup are one."""
        try:
            shown = self._link.operation(self.words.broker_resource, self.inspection.topology)
        except InvalidDestinationError:
            return 1
        return len({node.get("nodeID") for node in json.loads(shown or "[]")})

    def is_paging(self) -> bool:
        address = str(self._link.queue_attribute(self.name, self.words.queue.address))
        return bool(self._link.attribute(self.inspection.address_resource.format(address), self.inspection.paging))

    def depth_of(self, queue: str) -> int | None:
        try:
            return int(self._link.queue_attribute(queue, self.words.queue.messages))
        except InvalidDestinationError:
            return None


def inspected_queue(link: ManagementLink, queue: str) -> Queue | None:
    """Return None if the broker answers with nothing but the metrics of a queue."""
    return None if link.words.inspection is None else Queue(link, link.words.inspection, queue)


def name_finding(link: ManagementLink, queue: str) -> Finding | None:
    """Report a name that a read as a queue refuses: it would change a topic for good."""
    try:
        for facts in queue_facts(link, [queue]).values():
            require_name(facts, link.words.queue_separator)
    except InvalidDestinationError as error:
        return Finding.of_error("queue", error, Verdict.PROBLEM)
    return None


def counts_finding(facts: QueueFacts) -> Finding:
    if not facts.exists:
        return _no_queue(facts.name)
    parts = [
        counted(facts.messages or 0),
        f"{facts.delivering:,} of them in delivery to {counted(facts.consumers or 0, 'consumer')}",
    ]
    if facts.scheduled:
        parts.append(f"{facts.scheduled:,} scheduled for later")
    if facts.paused:
        parts.append("the queue is paused")
    counts = {"messages": facts.messages, "delivering": facts.delivering, "consumers": facts.consumers}
    return Finding(
        name="queue",
        value=f"{facts.name}: {', '.join(parts)}",
        verdict=Verdict.NOTE if facts.paused else Verdict.FINE,
        advice="A paused queue delivers nothing." if facts.paused else "",
        details=counts if facts.scheduled is None else {**counts, "scheduled": facts.scheduled},
    )


def queue_findings(inspected: Queue, limit: int) -> Iterator[Finding]:
    """``limit``: if more messages are in delivery, they are counted and not listed."""
    facts = inspected.facts()
    yield counts_finding(facts)
    if not facts.exists:
        return
    depth, delivering = facts.messages or 0, facts.delivering or 0
    yield _body_types(inspected, depth, delivering, limit)
    if delivering and BodyType.STREAM in inspected.inspection.losses:
        yield _in_delivery(inspected, delivering, limit)
    yield _dead_letters(inspected)
    if (cluster := _cluster(inspected)) is not None:
        yield cluster


def fact_findings(facts: QueueFacts, features: Iterable[Feature]) -> Iterator[Finding]:
    """Report what a query refuses or warns of. ``counts_finding`` reports that the queue is paused."""
    judged = [(feature, each) for feature in features for each in judge(facts, feature) if each.rule.name != "paused"]
    for name, group in itertools.groupby(sorted(judged, key=_rule_of), _rule_of):
        every = list(group)
        first = every[0][1]
        uses = [f"{feature.value}: {each.effect.value}, {each.consequence}" for feature, each in every]
        is_refused = any(each.effect is Effect.REFUSE for _, each in every)
        yield Finding(
            name=name,
            value=f"{facts.name} {first.fact}. {'; '.join(uses)}",
            verdict=Verdict.PROBLEM if is_refused else Verdict.NOTE,
            advice=first.advice,
            details={"refused": [feature.value for feature, each in every if each.effect is Effect.REFUSE]},
        )


def _rule_of(judged: tuple[Feature, Judgement]) -> str:
    return judged[1].rule.name


def _cluster(inspected: Queue) -> Finding | None:
    """A reader is connected to one node, and each node has messages of its own."""
    nodes = inspected.nodes()
    if nodes <= 1:
        return None
    delay = int(inspected.settings().get(inspected.inspection.settings.redistribution_delay, -1))
    details = {"nodes": nodes, "redistributionDelay": delay}
    if delay >= 0:
        return Finding(
            name="cluster",
            value=f"{nodes} nodes; the messages of a node without a consumer move to one that has one",
            advice="With AvailableNow a query may end before the messages of other nodes have moved.",
            details=details,
        )
    return Finding(
        name="cluster",
        value=f"{nodes} nodes; a query reads the messages of the node that it is connected to, and no others",
        verdict=Verdict.NOTE,
        advice="Run one query for each node, or set redistribution-delay of this address to 0: it is -1, so messages"
        " never move to the node that has the consumer. AvailableNow takes the queue for empty if this node has none.",
        details=details,
    )


def paging_findings(inspected: Queue) -> Iterator[Finding]:
    """A selector over AMQP finds only messages that are in memory; a few thousand of the oldest (Artemis)."""
    try:
        paging = inspected.is_paging()
    except InvalidDestinationError:
        return
    if not paging:
        yield Finding(name="paging", value="the messages are in the broker's memory")
        return
    yield Finding(
        name="paging",
        value="messages of this address are on disk (paging)",
        verdict=Verdict.NOTE,
        advice="With a selector, an AMQP client does not get matching messages behind many others on disk until those"
        " before them are consumed. Read this queue without option selector, and filter the DataFrame.",
    )


def _no_queue(name: str) -> Finding:
    return Finding(
        name="queue",
        value=f"there is no queue {name} on this broker",
        verdict=Verdict.NOTE,
        advice="Check the name. The broker may create the queue for its first message or consumer.",
    )


def _body_types(inspected: Queue, depth: int, delivering: int, limit: int) -> Finding:
    messages = inspected.list_messages()
    if 0 < delivering <= limit:
        messages += [message for list_messages in inspected.delivering().values() for message in list_messages]
    return body_types_finding(count_kinds(messages, inspected.inspection), depth, inspected.inspection)


def _in_delivery(inspected: Queue, delivering: int, limit: int) -> Finding:
    if delivering > limit:
        return Finding(
            name="in delivery",
            value=f"{counted(delivering)}, more than --max: not listed",
            verdict=Verdict.NOTE,
        )
    sessions = inspected.stomp_sessions()
    held = [
        message
        for consumer, list_messages in inspected.delivering().items()
        if any(session in consumer for session in sessions)
        for message in list_messages
    ]
    streams = count_kinds(held, inspected.inspection)[BodyKind(BodyType.STREAM)]
    if not streams:
        return Finding(name="in delivery", value="every message can be received over STOMP")
    return Finding(
        name="in delivery",
        value=f"in delivery to STOMP consumers: {counted(streams, 'StreamMessage')}",
        verdict=Verdict.PROBLEM,
        advice="The broker cannot send some StreamMessages over STOMP. Those stay in delivery until the consumer ends."
        " Only a JMS client can consume them.",
        details={"streamsAtStompReaders": streams},
    )


def _dead_letters(inspected: Queue) -> Finding:
    settings, keys = inspected.settings(), inspected.inspection
    attempts = int(settings.get(keys.delivery_attempts_key, keys.default_delivery_attempts))
    address = settings.get(keys.dead_letter_key)
    if attempts < 0:
        return Finding(name="dead letters", value="the broker does not limit the delivery attempts of a message")
    if not address:
        return Finding(
            name="dead letters",
            value=f"after {attempts} delivery attempts a message is deleted",
            verdict=Verdict.NOTE,
            advice="A killed consumer costs one attempt for every message in flight. Configure a dead-letter-address.",
            details={"maxDeliveryAttempts": attempts},
        )
    depth = inspected.depth_of(str(address))
    held = "" if depth is None else f", which has {counted(depth)}"
    return Finding(
        name="dead letters",
        value=f"after {attempts} delivery attempts a message goes to {address}{held}",
        details={"maxDeliveryAttempts": attempts, "deadLetterAddress": address, "deadLetters": depth},
    )
