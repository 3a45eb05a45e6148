"""``QueueFacts``: what the broker's management says of a queue, read in bulk.

Most brokers create a queue for a subscription, without a word, so a misspelled name looks like an empty queue.
"""

import contextlib
import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import DestinationKind, DurableSubscription
from pyspark_jms.jms.names import has_wildcards
from pyspark_jms.management.attributes import QueueAttributes
from pyspark_jms.management.link import ManagementLink, ask
from pyspark_jms.management.routing import is_topic_only, queue_names
from pyspark_jms.network.settings import ConnectionSettings

__all__ = [
    "QueueFacts",
    "count_matching",
    "facts_with_settings",
    "keeps_delivered",
    "look_up_queues",
    "queue_facts",
    "require_name",
    "subscription_facts",
    "warn_of_missing",
    "with_settings",
]

_log = logging.getLogger("pyspark_jms.link")
_FEW = 8
"""So many queues are asked for by name. Of more, the broker lists all whose names contain what theirs begin with."""

_MOST_LISTED = 1_000
"""If more messages are in flight, they are not listed: each takes 300 bytes."""

_PAGE = 500
"""Rows of a reply, of which Artemis makes 900 bytes each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """What a broker says about a queue. A value is None if the broker does not show it, or the user may not ask."""

    name: str
    """As it was asked for: the name of a queue, or ``ADDRESS::QUEUE``."""

    exists: bool
    address: str | None = None
    """The address that routes to the queue. Of a queue that does not exist: its address, if that is a topic."""
    routing_type: DestinationKind | None = None
    durable: bool | None = None
    filter: str | None = None
    non_destructive: bool | None = None
    """Whether an acknowledgement removes nothing. No request to Artemis shows it of a queue: ``keeps_delivered``."""
    purge_on_no_consumers: bool | None = None
    ring_size: int | None = None
    """How many messages the queue keeps. None also if there is no limit."""
    last_value: bool | None = None
    exclusive: bool | None = None
    max_consumers: int | None = None
    """It is None, too, if there is no limit."""
    consumers_before_dispatch: int | None = None
    auto_delete: bool | None = None
    paused: bool | None = None
    messages: int | None = None
    """All messages of the queue, also those in delivery and those that are scheduled for later."""
    delivering: int | None = None
    scheduled: int | None = None
    consumers: int | None = None
    acknowledged: int | None = None
    """Messages since the broker has started, where it lists queues. A non-destructive queue counts none (Artemis 2.55).
    """
    dead_letter_address: str | None = None
    """This and what follows is known where the settings of the address were read (``with_settings``)."""
    full_policy: str | None = None
    """What the broker does with messages to the address when it is full, as ``DROP``."""
    page_full_policy: str | None = None
    """What it does when the pages of the address have reached their limit. None also if there is no limit."""
    max_expiry_delay: float | None = None
    """Seconds after which each message expires. It is None, too, if there is no limit."""
    max_delivery_attempts: int | None = None
    """It is None, too, if there is no limit."""
    redelivery_delay: float | None = None
    """The longest one, in seconds."""

    @property
    def undelivered(self) -> int:
        """Return how many messages the queue could deliver, and delivers to nobody."""
        return max(0, (self.messages or 0) - (self.delivering or 0) - (self.scheduled or 0))

    @property
    def is_topic(self) -> bool:
        """Return whether the name is that of a topic. A subscription of it may have a queue of the same name."""
        return self.routing_type is DestinationKind.TOPIC and self.address == self.name

    def name_to_read(self, separator: str) -> str:
        """Return the name that the queue is read by: a queue of a topic subscription is found by its address only,
        another queue also by its own name (AMQP).
        """
        given, _, queue = self.name.rpartition(separator)
        is_queue = self.routing_type is not DestinationKind.TOPIC
        if self.address == given or (not given and is_queue):
            return self.name
        return f"{self.address}{separator}{queue}"


def queue_facts(link: ManagementLink, names: Iterable[str]) -> dict[str, QueueFacts]:
    """Read the facts of queues by their names, with few requests for many queues. A pattern has none."""
    queues = {name: link.queue_name(name) for name in names if not has_wildcards(name)}
    rows = _rows(link, set(queues.values()))
    found = {name: _facts(name, rows[queue], link.words.queue) for name, queue in queues.items() if queue in rows}
    missing = {name: _missing(link, name) for name in queues if name not in found}
    return {name: found.get(name) or missing[name] for name in queues}


def _missing(link: ManagementLink, name: str) -> QueueFacts:
    if name != link.queue_name(name) or not is_topic_only(link, name):
        return QueueFacts(name=name, exists=False)
    return QueueFacts(name=name, exists=False, address=name, routing_type=DestinationKind.TOPIC)


# --- reading ----------------------------------------------------------------------------------------


def _rows(link: ManagementLink, queues: Collection[str]) -> dict[str, Mapping[str, Any]]:
    """Return queue → attributes, by the broker's words. Queues that do not exist are left out."""
    if link.words.queues is not None:
        try:
            return {row.get("name", ""): row for row in _listed(link, queues, link.words.queues)}
        except InvalidDestinationError as error:  # the user may read attributes, and may not call this operation
            _log.debug("= the broker lists no queues: %s", error.fact)
    read = {queue: _attributes(link, queue) for queue in queues}
    return {queue: row for queue, row in read.items() if row is not None}


def _listed(link: ManagementLink, queues: Collection[str], operation: str) -> Iterator[dict[str, Any]]:
    left = set(queues)
    if len(left) > _FEW:
        start = _common_start(left)
        for page in itertools.count(1):
            rows = link.rows(operation, "name", start, _PAGE, page=page, compare="CONTAINS")
            wanted = [row for row in rows if row.get("name") in left]
            left -= {row["name"] for row in wanted}
            yield from wanted
            if not left or len(rows) < _PAGE:
                break
    if len(left) <= _FEW:  # while the broker creates or deletes queues, a row may move from one page to another
        for queue in left:
            yield from link.rows(operation, "name", queue, 1)


def _common_start(names: Collection[str]) -> str:
    first, last = min(names), max(names)
    while not last.startswith(first):
        first = first[:-1]
    return first


def _attributes(link: ManagementLink, queue: str) -> dict[str, Any] | None:
    words = link.words.queue
    try:
        read = {words.address: link.queue_attribute(queue, words.address)}
    except InvalidDestinationError:
        return None
    for name in filter(None, (getattr(words, field) for field in _READ)):
        if name not in read:
            with contextlib.suppress(InvalidDestinationError):  # an older broker
                read[name] = link.queue_attribute(queue, name)
    return read


def _facts(name: str, row: Mapping[str, Any], words: QueueAttributes) -> QueueFacts:
    facts = {field: read(row.get(getattr(words, field))) for field, read in _READ.items()}
    routing = facts.pop("routing_type")
    kind = None if routing is None else words.kind(str(routing))
    return QueueFacts(name=name, exists=True, address=str(row.get(words.address)), routing_type=kind, **facts)


def _flag(value: object) -> bool | None:
    """Read a text of a listing, or a JSON value of an attribute (Artemis)."""
    return {"true": True, "false": False}.get(str(value).lower())


def _limit(value: object) -> int | None:
    """Read a number of which -1 is no limit."""
    number = _number(value)
    return None if number is None or number < 0 else number


def _number(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None


_READ: Mapping[str, Callable[[Any], Any]] = {
    "routing_type": lambda value: value,
    "filter": lambda value: value or None,
    **dict.fromkeys(("durable", "non_destructive", "purge_on_no_consumers", "last_value"), _flag),
    **dict.fromkeys(("exclusive", "auto_delete", "paused"), _flag),
    **dict.fromkeys(("ring_size", "max_consumers"), _limit),
    **dict.fromkeys(("consumers_before_dispatch", "messages", "delivering", "scheduled"), _number),
    **dict.fromkeys(("consumers", "acknowledged"), _number),
}
"""Field → how the broker's value is read."""


# --- the settings of an address ---------------------------------------------------------------------


_OF_NEW_QUEUES = {
    "non_destructive": "defaultNonDestructive",
    "purge_on_no_consumers": "defaultPurgeOnNoConsumers",
    "ring_size": "defaultRingSize",
    "last_value": "defaultLastValueQueue",
    "max_consumers": "defaultMaxConsumers",
    "consumers_before_dispatch": "defaultConsumersBeforeDispatch",
}
"""Field → the key, in the settings of an address, of what a queue gets that is created there."""


def with_settings(facts: QueueFacts, settings: Mapping[str, Any]) -> QueueFacts:
    """Add what the settings of its address say of a queue, and of one that does not exist yet, what it would be."""
    limits = (settings.get("pageLimitBytes"), settings.get("pageLimitMessages"))
    has_page_limit = any((_number(limit) or -1) >= 0 for limit in limits)
    expiry, attempts = _limit(settings.get("maxExpiryDelay")), _number(settings.get("maxDeliveryAttempts", 10))
    known = replace(
        facts,
        dead_letter_address=settings.get("deadLetterAddress") or None,
        full_policy=settings.get("addressFullMessagePolicy"),
        page_full_policy=settings.get("pageFullMessagePolicy") if has_page_limit else None,
        max_expiry_delay=None if expiry is None else expiry / 1000,
        max_delivery_attempts=attempts if (attempts or 0) > 0 else None,  # 2.44 does not show the default, 10
        redelivery_delay=_longest_delay_ms(settings) / 1000,
    )
    if facts.exists:
        return known
    new = {field: _READ[field](settings.get(key)) for field, key in _OF_NEW_QUEUES.items()}
    return replace(known, **new | {"last_value": bool(new["last_value"] or settings.get("defaultLastValueKey"))})


def _longest_delay_ms(settings: Mapping[str, Any]) -> float:
    """Return the longest redelivery delay: with a multiplier it grows with each delivery, up to its limit, which is ten
    times the delay where it is not set (Artemis).
    """
    delay = float(settings.get("redeliveryDelay", 0))
    limit = float(settings.get("maxRedeliveryDelay", -1))
    limit = 10 * delay if limit < 0 else limit
    grows = float(settings.get("redeliveryMultiplier", 1)) > 1
    return limit if grows and delay > 0 else min(delay, limit)


def facts_with_settings(link: ManagementLink, names: Iterable[str]) -> dict[str, QueueFacts]:
    """Read the facts of a few queues, with the settings of their addresses: one request for each queue."""
    return {name: _with_its_settings(link, facts) for name, facts in queue_facts(link, names).items()}


def _with_its_settings(link: ManagementLink, facts: QueueFacts) -> QueueFacts:
    if not link.words.inspects:
        return facts
    return with_settings(facts, link.settings_of(facts.address or facts.name.partition(link.words.queue_separator)[0]))


def subscription_facts(link: ManagementLink, topic: str, durable: DurableSubscription) -> QueueFacts:
    """Read the facts of a durable subscription's queue, whose name is ``TOPIC::QUEUE``. Of a subscription that does not
    exist yet: what the settings of the topic make it.
    """
    names = dict.fromkeys((*queue_names(durable), str(durable)))  # the last one: over STOMP without a client id
    full_names = [f"{topic}{link.words.queue_separator}{name}" for name in names]
    found = [facts for facts in queue_facts(link, full_names).values() if facts.exists and facts.address == topic]
    missing = QueueFacts(name=full_names[0], exists=False, address=topic, routing_type=DestinationKind.TOPIC)
    return _with_its_settings(link, next(iter(found), missing))


# --- what no attribute shows -------------------------------------------------------------------------


def keeps_delivered(link: ManagementLink, queue: str) -> bool | None:
    """Return whether messages in flight are in the queue too, as in a non-destructive one (Artemis 2.44, 2.55).

    Its attributes, listings and settings do not tell it, and ``updateQueue``, which does, removes a queue's filter.
    The caller has a message in flight, and lets no other consumer have it meanwhile. Returns None if there is none, or
    too many; Artemis 2.19 lists none, and raises.
    """
    if not link.words.inspects:
        return None
    name = link.queue_name(queue)
    if int(link.queue_attribute(name, link.words.queue.delivering)) > _MOST_LISTED:
        return None
    before = _delivered(link, name)
    here = {each.get("messageID") for each in link.queue_operation(name, "listMessages", "")}
    in_flight = before & _delivered(link, name)  # one that was given back meanwhile is in the queue too
    return bool(in_flight & here) if in_flight else None


def _delivered(link: ManagementLink, queue: str) -> set[Any]:
    shown = link.queue_operation(queue, "listDeliveringMessages")
    return {each.get("messageID") for messages in shown.values() for each in messages}


# --- what a query asks when it starts ---------------------------------------------------------------


def look_up_queues(
    open_link: Callable[[ConnectionSettings], ManagementLink], settings: ConnectionSettings, queues: Sequence[str]
) -> dict[str, QueueFacts]:
    """Read what the broker has under each name. Nothing is known of a pattern, and of no queue without the permission
    ``manage`` or on a broker without management.

    Raises only ``InvalidDestinationError``: the broker has such a queue, and reads it by another name, or it has such a
    topic.
    """
    if all(map(has_wildcards, queues)):
        return {}

    def facts_and_separator(link: ManagementLink) -> tuple[dict[str, QueueFacts], str]:
        return queue_facts(link, queues), link.words.queue_separator

    found, separator = ask(open_link, settings, facts_and_separator, "whether the queues exist") or ({}, "")
    for facts in found.values():
        require_name(facts, separator)
    return found


def count_matching(
    open_link: Callable[[ConnectionSettings], ManagementLink], settings: ConnectionSettings, queue: str, selector: str
) -> int | None:
    """Return how many messages of the queue match, or None if the broker does not tell. It compares all of them before
    it answers.
    """

    def matching(link: ManagementLink) -> int | None:
        return int(link.queue_operation(queue, "countMessages", selector)) if link.words.inspects else None

    return ask(open_link, settings, matching, "how many messages match", patient=True)


def require_name(facts: QueueFacts, separator: str) -> None:
    """Raise an ``InvalidDestinationError`` for a topic, and for a queue that is read by another name."""
    queue = facts.name
    if facts.is_topic:
        subscription = queue if facts.exists else "CLIENTID.SUBSCRIPTIONNAME"
        raise InvalidDestinationError(
            f"{queue} is a topic on the broker, and no queue.",
            "To read it as a queue, or to send to a queue of this name, would change the topic for good. Name a queue,"
            " use option topic, or read one of its durable subscriptions: option"
            f" queue={queue}{separator}{subscription}.",
        )
    if facts.exists and (right := facts.name_to_read(separator)) != queue:
        raise InvalidDestinationError(
            f"Under the name {queue} the broker has no queue that can be read.", f"Did you mean {right}?"
        )


def warn_of_missing(found: Iterable[QueueFacts]) -> tuple[str, ...]:
    """Log a warning for each queue that the broker does not have, and return their names."""
    missing = tuple(facts.name for facts in found if not facts.exists)
    for queue in missing:
        _log.warning(
            "! queue %s does not exist on the broker. This query creates it if the user may. Compare the name with the"
            " name that its producers send to.",
            queue,
        )
    return missing
