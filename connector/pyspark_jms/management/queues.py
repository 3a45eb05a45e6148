"""What the broker has under the names of a query's queues.

Most brokers create a queue for a subscription, without a word, so a misspelled name looks like an empty queue.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.names import has_wildcards
from pyspark_jms.management.link import ManagementLink
from pyspark_jms.management.routing import is_read_topic
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["FoundQueue", "look_up_queues", "warn_of_missing_queues"]

_log = logging.getLogger("pyspark_jms.link")
_PATIENCE_SECONDS = 5.0
"""Limit for the connection and for each request: a query does not wait longer for a warning."""


@dataclass(frozen=True, slots=True)
class FoundQueue:
    exists: bool
    messages: int = 0
    """All messages of the queue, also those in delivery and those that are scheduled for later."""
    right_name: str | None = None
    """The name that the queue is read by, if the given name is not."""
    is_topic: bool = False
    """Whether the broker has a topic with subscriptions under the name, and no queue."""


def warn_of_missing_queues(
    open_link: Callable[[ConnectionSettings], ManagementLink], settings: ConnectionSettings, queues: Sequence[str]
) -> tuple[str, ...]:
    """Log a warning for each queue that the broker does not have, and return their names. Raises as
    ``look_up_queues``.
    """
    found = look_up_queues(open_link, settings, queues)
    missing = tuple(queue for queue in queues if queue in found and not found[queue].exists)
    for queue in missing:
        _log.warning(
            "! queue %s does not exist on the broker. This query creates it if the user may. Compare the name with the"
            " name that its producers send to.",
            queue,
        )
    return missing


def look_up_queues(
    open_link: Callable[[ConnectionSettings], ManagementLink], settings: ConnectionSettings, queues: Sequence[str]
) -> dict[str, FoundQueue]:
    """What the broker has under each name. Nothing is known of a pattern, and of no queue without the permission
    ``manage`` or on a broker without management.

    Raises only ``InvalidDestinationError``: the broker has such a queue, and reads it by another name, or it has such a
    topic.
    """
    names = [queue for queue in queues if not has_wildcards(queue)]
    if not names:
        return {}
    try:
        with open_link(settings.impatient(_PATIENCE_SECONDS)) as link:
            found = {queue: _look_up(link, queue) for queue in names}
    except Exception as error:  # noqa: BLE001  # an unexpected reply must not stop a query that could read
        _log.debug("= it is not known whether the queues exist: %s", error)
        return {}
    for queue, each in found.items():
        if each.is_topic:
            raise InvalidDestinationError(
                f"{queue} is a topic with subscriptions on the broker, and no queue.",
                "A query that reads it as a queue would change the topic for good. Use option topic, or read one of its"
                f" durable subscriptions: option queue={queue}::CLIENTID.SUBSCRIPTIONNAME.",
            )
        if each.right_name is not None:
            raise InvalidDestinationError(
                f"Under the name {queue} the broker has no queue that can be read.", f"Did you mean {each.right_name}?"
            )
    return found


def _look_up(link: ManagementLink, queue: str) -> FoundQueue:
    name, words = link.queue_name(queue), link.words.queue
    try:
        address = str(link.queue_attribute(name, words.address))
        messages = int(link.queue_attribute(name, words.messages))
    except InvalidDestinationError:
        return FoundQueue(exists=False, is_topic=name == queue and is_read_topic(link, queue))
    separator = link.words.queue_separator
    given = queue.removesuffix(name).removesuffix(separator)
    if address == (given or name) or (not given and not _is_of_subscription(link, name)):
        return FoundQueue(exists=True, messages=messages)
    return FoundQueue(exists=True, messages=messages, right_name=f"{address}{separator}{name}")


def _is_of_subscription(link: ManagementLink, name: str) -> bool:
    """A queue of a topic subscription is found by its address only; another queue also by its own name (AMQP)."""
    words = link.words.queue
    return words.routing_type is not None and link.queue_attribute(name, words.routing_type) == words.multicast
