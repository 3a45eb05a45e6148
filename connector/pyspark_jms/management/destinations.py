"""Destinations that are sent to → ``InvalidDestinationError`` for the first at which the broker confirms messages and
drops them, or whose address a send would change for good.

Artemis 2.55 does both over both protocols: a queue may have another name than its address, a send adds its routing type
to the address, and with both types the broker refuses later STOMP subscriptions to the topic.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.management.link import ManagementLink, ask
from pyspark_jms.management.queue_facts import QueueFacts, queue_facts, require_name
from pyspark_jms.management.routing import has_queues, is_fully_qualified, require_topic, routing_of
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["require_destinations"]


def require_destinations(
    open_link: Callable[[ConnectionSettings], ManagementLink],
    settings: ConnectionSettings,
    destinations: Sequence[Destination],
) -> None:
    """Refuse them. Nothing is known without the permission ``manage``."""

    def first_problem(link: ManagementLink) -> InvalidDestinationError | None:
        return next(_problems(link, destinations), None)

    problem = ask(open_link, settings, first_problem, "whether what is sent arrives")
    if problem is not None:
        raise problem


def _problems(link: ManagementLink, destinations: Sequence[Destination]) -> Iterator[InvalidDestinationError]:
    full = [each for each in destinations if is_fully_qualified(each.name, link.words)]
    plain = [each for each in destinations if each not in full]
    queues = queue_facts(link, [each.name for each in plain if each.kind is DestinationKind.QUEUE])
    for require in (
        *(partial(_require_address, link, facts) for facts in queues.values()),
        *(partial(_require_kind, link, each) for each in full),
        *(partial(require_topic, link, each.name) for each in plain if each.kind is DestinationKind.TOPIC),
    ):
        try:
            require()
        except InvalidDestinationError as error:
            yield error


def _require_address(link: ManagementLink, facts: QueueFacts) -> None:
    """Require of a plain name that it is the address of the queue, or of another one."""
    if facts.is_topic:
        require_name(facts, link.words.queue_separator)
    if not facts.exists or facts.address == facts.name or has_queues(link, facts.name):
        return
    kind, full = facts.routing_type, f"{facts.address}{link.words.queue_separator}{facts.name}"
    raise InvalidDestinationError(
        f"Queue {facts.name} belongs to address {facts.address}. The broker would confirm what is sent to the name of"
        " the queue alone, and drop it.",
        f"Send to {kind}={full} (in rows: {kind}://{full}).",
    )


def _require_kind(link: ManagementLink, destination: Destination) -> None:
    """Require of a full name that its queue, or without one its address, is of the kind of the destination."""
    kind = routing_of(link, destination)
    if kind is not destination.kind:
        raise InvalidDestinationError(
            f"{destination.name} is the queue of a {kind}, and no {destination.kind}. The broker would confirm what is"
            " sent to it, drop it, and change the address for good.",
            f"Send to {kind}={destination.name} (in rows: {kind}://{destination.name}).",
        )
