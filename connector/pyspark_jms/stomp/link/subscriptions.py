"""Durable subscriptions on the broker: check that one has the topic and selector of a query, and delete one."""

import contextlib
import logging

from pyspark_jms.errors import InvalidDestinationError, JMSSecurityError, SubscriptionInUseError, UnsupportedError
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import Subscription, another_topic, no_subscription, selector_changed
from pyspark_jms.management.link import ManagementLink
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.link.connection import connect
from pyspark_jms.stomp.link.consumer import subscribe_headers
from pyspark_jms.stomp.link.management import StompManagementLink

__all__ = ["end_subscription", "require_same_subscription"]

_log = logging.getLogger("pyspark_jms.link")


def require_same_subscription(
    settings: ConnectionSettings, durable: DurableSubscription, topic: Destination, selector: str | None
) -> None:
    """Compare with a broker that finds a subscription by its name, and keeps its old topic and selector without an
    error.

    ``SelectorChangedError``, ``InvalidDestinationError``. Without the permission ``manage``, the check is skipped and a
    log line states it.
    """
    try:
        with StompManagementLink(settings) as link:
            address, created_with = (
                link.queue_attribute(str(durable), name) for name in (link.words.queue.address, link.words.queue.filter)
            )
    except (JMSSecurityError, UnsupportedError) as error:
        _log.warning("! it is not known whether subscription %s has this topic and selector: %s", durable, error.fact)
        return
    if address != topic.name:
        raise another_topic(durable, f"topic {address}")
    if (created_with or None) != selector:
        raise selector_changed(durable)


def end_subscription(settings: ConnectionSettings, topic: Destination, durable: DurableSubscription) -> None:
    """Delete the subscription and its messages on the broker.

    ``SubscriptionInUseError`` while it has a reader; ``InvalidDestinationError`` if it does not exist, or belongs to
    another topic. If only management could check that and the permission is missing, a log line states it.
    """
    with contextlib.closing(connect(settings)) as connection:
        words = connection.dialect.durable_subscriptions
        wanted = Subscription(destination=topic, window_bytes=1, durable=durable)
        connection.dialect.require_subscription(wanted)
        if words.is_named_by_destination(durable):
            _delete_queue(settings, topic, durable)
            return
        _require_existing(settings, connection.dialect, topic, durable)
        read = subscribe_headers(wanted, connection.dialect)
        if words.ended_by_subscriber:
            connection.request("SUBSCRIBE", read)
        try:
            connection.request("UNSUBSCRIBE", {"id": read["id"], **words.for_unsubscribe(durable)})
        except InvalidDestinationError:
            raise no_subscription(durable) from None


def _delete_queue(settings: ConnectionSettings, topic: Destination, durable: DurableSubscription) -> None:
    """Delete a subscription that the broker knows by its queue only."""
    with StompManagementLink(settings) as link:
        _require_there(link, topic, durable)
        if link.queue_attribute(str(durable), link.words.queue.consumers):
            raise SubscriptionInUseError(
                f"The durable subscription {durable} is being read.", "Stop the queries that read it first."
            )
        link.operation(link.words.broker_resource, link.words.delete_queue, str(durable))


def _require_existing(
    settings: ConnectionSettings, dialect: Dialect, topic: Destination, durable: DurableSubscription
) -> None:
    """Ask a broker that confirms the deletion of a subscription that does not exist."""
    if (queue := dialect.durable_subscriptions.destination_of_existing(durable)) is not None:
        _require_readable(settings, queue, durable)
    elif dialect.management is not None:
        try:
            with StompManagementLink(settings) as link:
                _require_there(link, topic, durable)
        except JMSSecurityError as error:
            _log.warning("! it is not known whether durable subscription %s exists: %s", durable, error.fact)


def _require_there(link: ManagementLink, topic: Destination, durable: DurableSubscription) -> None:
    try:
        address = link.queue_attribute(str(durable), link.words.queue.address)
    except InvalidDestinationError:
        raise no_subscription(durable) from None
    if address != topic.name:
        raise another_topic(durable, f"topic {address}")
    words = link.words.queue
    if words.routing_type and link.queue_attribute(str(durable), words.routing_type) != words.multicast:
        raise InvalidDestinationError(
            f"{durable} is a queue of address {address}, and no subscription. Nothing was deleted.",
            "Check the name. The subscription of a query with clientId is CLIENTID.SUBSCRIPTIONNAME: give --client-id.",
        )


def _require_readable(settings: ConnectionSettings, queue: str, durable: DurableSubscription) -> None:
    """Read the queue on a separate connection, which a refusal closes."""
    with contextlib.closing(connect(settings)) as connection:
        window = {connection.dialect.window_header: "1"}
        try:
            connection.request("SUBSCRIBE", {"id": "1", "destination": queue, "ack": "client-individual", **window})
            connection.request("UNSUBSCRIBE", {"id": "1"})
        except InvalidDestinationError:
            raise no_subscription(durable) from None
