"""Durable subscriptions as they stand on the broker: whether one is what a query asks for, and its end."""

import logging

from pyspark_jms.errors import (
    InvalidDestinationError,
    JMSSecurityError,
    SubscriptionInUseError,
    UnsupportedError,
)
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import Subscription, selector_changed
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.dialects.refusals import require_durable
from pyspark_jms.stomp.link.connection import connect
from pyspark_jms.stomp.link.consumer import subscribe_headers
from pyspark_jms.stomp.link.management import ManagementLink

__all__ = ["end_subscription", "require_as_asked"]

_log = logging.getLogger("pyspark_jms.link")


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
    """The broker forgets it, and what it holds.

    ``SubscriptionInUseError`` while somebody reads it; ``InvalidDestinationError`` if there is none, or one to another
    topic. Where only management could tell and the user may not ask it, a warning says so.
    """
    connection = connect(settings)
    try:
        words = connection.dialect.durable
        require_durable(connection.dialect, durable, selected=False)
        if words.is_unnamed(durable):
            _destroy(settings, topic, durable)
            return
        _require_known(settings, connection.dialect, topic, durable)
        asked = Subscription(destination=topic, window_bytes=1, durable=durable)
        read = subscribe_headers(asked, connection.dialect)
        if words.ended_by_reader:
            connection.request("SUBSCRIBE", read)
        try:
            connection.request("UNSUBSCRIBE", {"id": read["id"], **words.ending(durable)})
        except InvalidDestinationError:
            raise _no_subscription(durable) from None
    finally:
        connection.close()


def _destroy(settings: ConnectionSettings, topic: Destination, durable: DurableSubscription) -> None:
    """One that is known by its queue alone."""
    with ManagementLink(settings) as link:
        _require_there(link, topic, durable)
        if link.attribute(f"queue.{durable}", "consumerCount"):
            raise SubscriptionInUseError(
                f"The durable subscription {durable} is being read.", "Stop the queries that read it first."
            )
        link.operation("broker", "destroyQueue", str(durable))


def _require_known(
    settings: ConnectionSettings, dialect: Dialect, topic: Destination, durable: DurableSubscription
) -> None:
    """Of a broker that confirms the end of what never was."""
    if (queue := dialect.durable.existing(durable)) is not None:
        _require_readable(settings, queue, durable)
    elif dialect.management is not None:
        try:
            with ManagementLink(settings) as link:
                _require_there(link, topic, durable)
        except JMSSecurityError as error:
            _log.warning("! whether there is a durable subscription %s is not known: %s", durable, error.fact)


def _require_there(link: ManagementLink, topic: Destination, durable: DurableSubscription) -> None:
    try:
        address = link.attribute(f"queue.{durable}", "address")
    except InvalidDestinationError:
        raise _no_subscription(durable) from None
    if address != topic.name:
        raise InvalidDestinationError(
            f"The durable subscription {durable} is one to topic {address}.",
            f"Nothing was ended. Give topic {address}.",
        )


def _require_readable(settings: ConnectionSettings, queue: str, durable: DurableSubscription) -> None:
    """On a connection of its own, which a refusal ends."""
    connection = connect(settings)
    try:
        window = {connection.dialect.window_header: "1"}
        connection.request("SUBSCRIBE", {"id": "1", "destination": queue, "ack": "client-individual", **window})
        connection.request("UNSUBSCRIBE", {"id": "1"})
    except InvalidDestinationError:
        raise _no_subscription(durable) from None
    finally:
        connection.close()


def _no_subscription(durable: DurableSubscription) -> InvalidDestinationError:
    return InvalidDestinationError(
        f"There is no durable subscription {durable}. Nothing was ended.",
        "Its name is clientId.subscriptionName of the query that made it, or subscriptionName alone if there was no"
        " clientId.",
    )
