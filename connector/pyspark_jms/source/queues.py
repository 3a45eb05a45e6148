"""What a query needs of its queues: asked before it subscribes, by the table of ``management.queue_rules``."""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial

from pyspark_jms.jms.dialect import BrokerDialect
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.jms.names import has_wildcards
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.management.link import ask
from pyspark_jms.management.queue_facts import (
    QueueFacts,
    keeps_delivered,
    subscription_facts,
    warn_of_missing,
)
from pyspark_jms.management.queue_rules import require_own, require_usable
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.links import Reading, SourceLink, SourceProtocol

__all__ = ["features_of", "left_on", "require_queues", "require_removal", "tried_out", "warn_of_undelivered"]

_log = logging.getLogger("pyspark_jms.source")
_MOST_TRIED = 16
"""So many queues at most are tried: each costs two connections."""

_ARRIVAL_SECONDS = 1.0


def features_of(options: SourceOptions) -> list[tuple[Feature, int]]:
    """Return how the queues are read, with the number of consumers that each queue gets."""
    if options.journal is not None:
        feature = Feature.JOURNAL
    else:
        feature = Feature.REGISTER if options.exactly_once else Feature.AT_LEAST_ONCE_READ
    readers = max(1, options.readers // len(options.destinations))  # each has its share of the queues
    needed = readers if feature is Feature.REGISTER else options.connections
    return [(feature, needed), *([(Feature.CONNECTIONS, needed)] if options.connections > 1 else [])]


def require_queues(reading: Reading) -> dict[str, QueueFacts]:
    """Refuse queues that cannot be read as the options ask for, and warn of others and of missing ones. Return what is
    known: nothing without the permission ``manage``.
    """
    options = reading.options
    letters = options.dead_letter_queue
    found = reading.look_up(options.queues)
    warn_of_missing(found.values())
    found |= _subscription(reading)
    require_usable((facts, feature, needed) for facts in found.values() for feature, needed in features_of(options))
    if letters is not None:
        reading.require_destination(Destination(DestinationKind.QUEUE, letters))
        require_own(reading.protocol.open_management, options.connection, {letters: Feature.DEAD_LETTERS})
    return found


def _subscription(reading: Reading) -> dict[str, QueueFacts]:
    options = reading.options
    durable, topic = options.durable, options.destinations[0].name
    if durable is None or has_wildcards(topic):
        return {}
    about = f"what the queue of subscription {durable} is"
    open_link = reading.protocol.open_management
    facts = ask(open_link, options.connection, lambda it: subscription_facts(it, topic, durable), about)
    return {} if facts is None else {facts.name: facts}


def require_removal(reading: Reading, found: Sequence[QueueFacts]) -> None:
    """Refuse a queue that keeps what is acknowledged. A queue without a message to deliver is not tried."""
    options = reading.options
    features = [(each, needed) for each, needed in features_of(options) if each is not Feature.AT_LEAST_ONCE_READ]
    tried = [facts for facts in found if facts.non_destructive is None and facts.undelivered][:_MOST_TRIED]
    selector_for = options.selector_for if options.durable is None else lambda _: None  # its queue has the selector
    for known in tried_out(tried, reading.protocol, options.connection, selector_for) if features else ():
        require_usable((known, feature, needed) for feature, needed in features if known.non_destructive)


def left_on(reading: Reading) -> list[QueueFacts]:
    """Return the queues whose number of messages the broker tells, in the order of the options."""
    found = reading.look_up(reading.options.queues)
    found |= _subscription(reading)
    return [facts for facts in found.values() if facts.messages is not None]


def warn_of_undelivered(reading: Reading) -> None:
    """Log a line, when a run ends without a message, for each queue that has messages."""
    options = reading.options
    if options.selector is not None:
        return  # they may be others
    for facts in reading.look_up(options.queues).values():
        if facts.undelivered:
            _log.warning(
                "! the run ends without a message, although queue %s has %s: it may be paused or wait for more"
                " consumers, another consumer may have their group, or they were sent after the start of the run",
                facts.name,
                f"{facts.undelivered:,} that it delivers to nobody",
            )


def tried_out(
    found: Sequence[QueueFacts],
    protocol: SourceProtocol,
    settings: ConnectionSettings,
    selector_for: Callable[[BrokerDialect], str | None] = lambda _: None,
) -> list[QueueFacts]:
    """Add whether each queue is non-destructive, by one message that is in flight meanwhile. It is given back without a
    delivery attempt. The queues have a second together to deliver one: of the others it stays unknown.
    """
    kept: dict[str, bool | None] = {}
    links: dict[str, SourceLink] = {}
    condition = StateCondition()
    with ExitStack() as stack:
        for name in (facts.name for facts in found if _can_be_tried(facts)):
            try:
                link = stack.enter_context(closing(protocol.connect(settings, condition)))
                link.subscribe(_of_one_message(name, selector_for(link.dialect)))
                links[name] = link
            except Exception as error:  # noqa: BLE001  # an unexpected reply must not stop a query that could read
                _log.debug("= it is not known whether queue %s is non-destructive: %s", name, error)
        condition.poll(lambda: all(link.waiting()[0] for link in links.values()), _ARRIVAL_SECONDS)
        for name in [name for name, link in links.items() if link.waiting()[0]]:
            about = f"whether queue {name} is non-destructive"
            kept[name] = ask(protocol.open_management, settings, partial(keeps_delivered, queue=name), about)
    return [replace(facts, non_destructive=kept.get(facts.name, facts.non_destructive)) for facts in found]


def _can_be_tried(facts: QueueFacts) -> bool:
    """A queue that a consumer more or less would change, or that would not deliver, cannot."""
    is_open = facts.max_consumers is None or facts.max_consumers > (facts.consumers or 0)
    is_kept = facts.purge_on_no_consumers is False  # unknown on a broker that does not list messages either
    return bool(facts.undelivered and not facts.paused and is_kept and is_open)


def _of_one_message(queue: str, selector: str | None) -> Subscription:
    destination = Destination(DestinationKind.QUEUE, queue)
    return Subscription(destination=destination, window_bytes=1, window_messages=1, selector=selector)
