"""Checks a queue with management requests: depth, body types, messages in delivery, dead letters.

The requests are those of Artemis. They list headers and properties of messages, and no body.
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.headers import Annotation
from pyspark_jms.jms.model import ANNOTATED_BODY_TYPES, BODY_MARKER, BodyType
from pyspark_jms.management.attributes import Management
from pyspark_jms.management.link import ManagementLink
from pyspark_jms.management.queue_facts import QueueFacts, queue_facts, require_name, with_settings
from pyspark_jms.management.queue_rules import Effect, Judgement, judge
from pyspark_jms.sentences import counted
from pyspark_jms.tools.check.findings import Finding, Verdict, note, problem

__all__ = [
    "BodyKind",
    "Queue",
    "body_types_finding",
    "count_kinds",
    "counts_finding",
    "describe_counts",
    "describe_losses",
    "fact_findings",
    "name_finding",
    "paging_findings",
    "queue_findings",
]

_BODY_TYPES = {
    0: BodyType.MESSAGE,
    2: BodyType.OBJECT,
    3: BodyType.TEXT,
    4: BodyType.BYTES,
    5: BodyType.MAP,
    6: BodyType.STREAM,
}
"""The code in a listed message → the body type, as measured on Artemis 2.44.0 and 2.55.0."""

_OTHER = "other"
"""An unknown code, or an AMQP message without the annotation of JMS clients and of this sink."""


class Queue:
    """A queue of a broker that can be inspected."""

    def __init__(self, link: ManagementLink, queue: str) -> None:
        self.name = link.queue_name(queue)
        self.words: Management = link.words
        self._link = link

    def facts(self) -> QueueFacts:
        return queue_facts(self._link, [self.name])[self.name]

    def list_messages(self) -> list[dict[str, Any]]:
        """List the first waiting messages: as many as the broker lists at a time (200 by default)."""
        return list(self._link.queue_operation(self.name, "listMessages", ""))

    def delivering(self) -> dict[str, list[dict[str, Any]]]:
        """Return, for each consumer, the messages in delivery to it."""
        return dict(self._link.queue_operation(self.name, "listDeliveringMessages"))

    def stomp_sessions(self) -> list[str]:
        """Return the STOMP sessions, as in the keys of ``delivering``."""
        rows = self._link.rows("listConsumers", "queue", self.name, 1_000)
        return [f":{row['session']}:" for row in rows if row["protocol"] == "STOMP"]

    @property
    def address(self) -> str:
        return str(self._link.queue_attribute(self.name, self.words.queue.address))

    def settings(self) -> dict[str, Any]:
        return self._link.settings_of(self.address)

    def nodes(self) -> int:
        """Return the nodes of the broker's cluster; a live broker and its backup are one."""
        try:
            shown = self._link.operation(self.words.broker_resource, "listNetworkTopology")
        except InvalidDestinationError:
            return 1
        return len({node.get("nodeID") for node in json.loads(shown or "[]")})

    def is_paging(self) -> bool:
        return bool(self._link.attribute(f"address.{self.address}", "paging"))

    def depth_of(self, queue: str) -> int | None:
        try:
            return int(self._link.queue_attribute(queue, self.words.queue.messages))
        except InvalidDestinationError:
            return None


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
        return note(
            "queue",
            f"there is no queue {facts.name} on this broker",
            "Check the name. The broker may create the queue for its first message or consumer.",
        )
    parts = [
        counted(facts.messages or 0),
        f"{facts.delivering:,} of them in delivery to {counted(facts.consumers or 0, 'consumer')}",
        f"{facts.scheduled:,} scheduled for later" if facts.scheduled else "",
        "the queue is paused" if facts.paused else "",
    ]
    counts = {"messages": facts.messages, "delivering": facts.delivering, "consumers": facts.consumers}
    details = counts if facts.scheduled is None else {**counts, "scheduled": facts.scheduled}
    value = f"{facts.name}: {', '.join(filter(None, parts))}"
    if facts.paused:
        return note("queue", value, "A paused queue delivers nothing.", details)
    return Finding("queue", value, details=details)


def queue_findings(inspected: Queue, limit: int) -> Iterator[Finding]:
    """``limit``: if more messages are in delivery, they are counted and not listed."""
    facts = inspected.facts()
    yield counts_finding(facts)
    if not facts.exists:
        return
    depth, delivering = facts.messages or 0, facts.delivering or 0
    yield _body_types(inspected, depth, delivering, limit)
    if delivering and BodyType.STREAM in inspected.words.losses:
        yield _in_delivery(inspected, delivering, limit)
    yield _dead_letters(inspected)
    yield from _cluster(inspected)


def fact_findings(facts: QueueFacts, features: Iterable[Feature]) -> Iterator[Finding]:
    """Report what a query refuses or warns of. ``counts_finding`` reports that the queue is paused."""
    judged = [(feature, each) for feature in features for each in judge(facts, feature) if each.rule.name != "paused"]
    for name, group in itertools.groupby(sorted(judged, key=_rule_of), _rule_of):
        every = list(group)
        first = every[0][1]
        uses = [f"{feature.value}: {each.effect.value}, {each.consequence}" for feature, each in every]
        refused = [feature.value for feature, each in every if each.effect is Effect.REFUSE]
        value = f"{facts.name} {first.fact}. {'; '.join(uses)}"
        yield (problem if refused else note)(name, value, first.advice, {"refused": refused})


def _rule_of(judged: tuple[Feature, Judgement]) -> str:
    return judged[1].rule.name


def _cluster(inspected: Queue) -> Iterator[Finding]:
    """Yield nothing without a cluster. A reader is connected to one node, and each node has messages of its own."""
    nodes = inspected.nodes()
    if nodes <= 1:
        return
    delay = int(inspected.settings().get("redistributionDelay", -1))
    details = {"nodes": nodes, "redistributionDelay": delay}
    if delay >= 0:
        yield Finding(
            "cluster",
            f"{nodes} nodes; the messages of a node without a consumer move to one that has one",
            advice="With AvailableNow a query may end before the messages of other nodes have moved.",
            details=details,
        )
        return
    yield note(
        "cluster",
        f"{nodes} nodes; a query reads the messages of the node that it is connected to, and no others",
        "Run one query for each node, or set redistribution-delay of this address to 0: it is -1, so messages"
        " never move to the node that has the consumer. AvailableNow takes the queue for empty if this node has none.",
        details,
    )


def paging_findings(inspected: Queue) -> Iterator[Finding]:
    """A selector over AMQP finds only messages that are in memory; a few thousand of the oldest (Artemis)."""
    try:
        paging = inspected.is_paging()
    except InvalidDestinationError:
        return
    if not paging:
        yield Finding("paging", "the messages are in the broker's memory")
        return
    yield note(
        "paging",
        "messages of this address are on disk (paging)",
        "With a selector, an AMQP client does not get matching messages behind many others on disk until those"
        " before them are consumed. Read this queue without option selector, and filter the DataFrame.",
    )


def _in_delivery(inspected: Queue, delivering: int, limit: int) -> Finding:
    if delivering > limit:
        return note("in delivery", f"{counted(delivering)}, more than --max: not listed")
    sessions = inspected.stomp_sessions()
    held = [
        message
        for consumer, list_messages in inspected.delivering().items()
        if any(session in consumer for session in sessions)
        for message in list_messages
    ]
    streams = count_kinds(held)[BodyKind(BodyType.STREAM)]
    if not streams:
        return Finding("in delivery", "every message can be received over STOMP")
    return problem(
        "in delivery",
        f"in delivery to STOMP consumers: {counted(streams, 'StreamMessage')}",
        "The broker cannot send some StreamMessages over STOMP. Those stay in delivery until the consumer ends."
        " Only a JMS client can consume them.",
        {"streamsAtStompReaders": streams},
    )


def _dead_letters(inspected: Queue) -> Finding:
    settings = inspected.settings()
    facts = with_settings(QueueFacts(name=inspected.name, exists=True), settings)
    attempts, address = facts.max_delivery_attempts, facts.dead_letter_address
    if attempts is None:
        return Finding("dead letters", "the broker does not limit the delivery attempts of a message")
    after, details = f"after {attempts} delivery attempts a message", {"maxDeliveryAttempts": attempts}
    if not address:
        advice = "A killed consumer costs one attempt for every message in flight. Configure a dead-letter-address."
        return note("dead letters", f"{after} is deleted", advice, details)
    depth = inspected.depth_of(str(address))
    held = "" if depth is None else f", which has {counted(depth)}"
    found = details | {"deadLetterAddress": address, "deadLetters": depth}
    return Finding("dead letters", f"{after} goes to {address}{held}", details=found)


# --- the types of bodies, and which bodies are lost --------------------------------------------------


@dataclass(frozen=True, slots=True)
class BodyKind:
    body_type: str
    enveloped: bool = False

    def __str__(self) -> str:
        return f"{self.body_type} (envelope)" if self.enveloped else self.body_type


def count_kinds(messages: Iterable[Mapping[str, Any]]) -> Counter[BodyKind]:
    return Counter(_kind(message) for message in messages)


def _kind(message: Mapping[str, Any]) -> BodyKind:
    marker = message.get(BODY_MARKER)
    if marker in tuple(BodyType):
        return BodyKind(str(marker), enveloped=True)
    amqp = dict(enumerate(ANNOTATED_BODY_TYPES)).get(message.get(Annotation.MESSAGE_TYPE, -1), _OTHER)
    return BodyKind(_BODY_TYPES.get(message.get("type", -1), amqp))


def describe_counts(kinds: Counter[BodyKind]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in sorted(kinds.items(), key=lambda item: str(item[0])))


def describe_losses(kinds: Iterable[BodyKind], losses: Mapping[BodyType, str]) -> list[str]:
    """Return a sentence for each body type that does not arrive as it was sent."""
    plain = {kind.body_type for kind in kinds if not kind.enveloped}
    return [f"{kind.capitalize()} bodies {what}." for kind, what in losses.items() if kind in plain]


def _body_types(inspected: Queue, depth: int, delivering: int, limit: int) -> Finding:
    messages = inspected.list_messages()
    if 0 < delivering <= limit:
        messages += [message for list_messages in inspected.delivering().values() for message in list_messages]
    return body_types_finding(count_kinds(messages), depth, inspected.words.losses)


def body_types_finding(
    kinds: Counter[BodyKind], depth: int, losses: Mapping[BodyType, str], *, name: str = "body types"
) -> Finding:
    """``depth``: the messages on the queue, listed or not."""
    seen = kinds.total()
    if not seen:
        return note(name, "the broker lists no message") if depth else Finding(name, "the queue is empty")
    whole = seen >= depth
    lost = describe_losses(kinds, losses)
    advice = [*lost, "Agree with the producers on text and bytes."] if lost else []
    if not whole:
        advice.append("The broker lists no more messages at a time. --receive counts all messages.")
    part = f"all {seen:,}" if whole else f"the first {seen:,} of {depth:,}"
    verdict = Verdict.PROBLEM if lost else Verdict.FINE if whole else Verdict.NOTE
    details = {"seen": seen, "bodyTypes": {str(kind): count for kind, count in kinds.items()}}
    return Finding(name, f"{describe_counts(kinds)} ({part})", verdict, " ".join(advice), details)
