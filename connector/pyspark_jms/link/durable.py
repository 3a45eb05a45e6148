"""Durable subscriptions as they stand on the broker: whether one is what a query asks for, and its end."""

import logging

from pyspark_jms.dialect.refusals import require_durable
from pyspark_jms.errors import (
    InvalidDestinationError,
    JMSSecurityError,
    SelectorChangedError,
    UnsupportedError,
)
from pyspark_jms.link.connection import connect
from pyspark_jms.link.consumer import Subscription
from pyspark_jms.link.management import ManagementLink
from pyspark_jms.link.settings import ConnectionSettings
from pyspark_jms.model import Destination, DurableSubscription

__all__ = ["end_subscription", "require_as_asked", "selector_changed"]

_log = logging.getLogger("pyspark_jms.link")


def selector_changed(durable: DurableSubscription) -> SelectorChangedError:
    return SelectorChangedError(
        f"The durable subscription {durable} was made with another selector than this query has. Nothing was read.",
        "Give the old selector, or another subscriptionName; or end the subscription and what it holds with"
        " pyspark-jms unsubscribe.",
    )


def require_as_asked(
    settings: ConnectionSettings, durable: DurableSubscription, topic: Destination, selector: str | None
) -> None:
    """Ask a broker that finds a subscription by its name alone, and silently keeps it as it was made.

    ``SelectorChangedError``, ``InvalidDestinationError``. Who may not ask is told that nobody looked.
    """
    queue = f"queue.{durable}"
    try:
        with ManagementLink(settings) as link:
            address, made_with = link.attribute(queue, "address"), link.attribute(queue, "filter")
    except (JMSSecurityError, UnsupportedError) as error:
        _log.warning("! whether subscription %s has this topic and selector is not known: %s", durable, error.fact)
        return
    if address != topic.name:
        raise InvalidDestinationError(
            f"The durable subscription {durable} is one to topic {address}.",
            "Give another subscriptionName, or end that one with pyspark-jms unsubscribe.",
        )
    if (made_with or None) != selector:
        raise selector_changed(durable)


def end_subscription(settings: ConnectionSettings, topic: Destination, durable: DurableSubscription) -> None:
    """The broker forgets it, and what it holds. ``SubscriptionInUseError`` while somebody reads it."""
    connection = connect(settings)
    try:
        words = connection.dialect.durable
        require_durable(connection.dialect, durable, selected=False)
        if words.is_unnamed(durable):
            with ManagementLink(settings) as link:
                link.operation("broker", "destroyQueue", str(durable))
            return
        read = Subscription(destination=topic, window_bytes=1, durable=durable).headers(connection.dialect)
        if words.ended_by_reader:
            connection.request("SUBSCRIBE", read)
        connection.request("UNSUBSCRIBE", {"id": read["id"], **words.ending(durable)})
    finally:
        connection.close()
