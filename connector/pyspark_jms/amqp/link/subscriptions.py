"""Durable subscriptions at the broker: found by an attach without a source, compared, and ended.

An attach with another selector or topic is accepted silently, and the broker deletes the messages that wait (Artemis).
So a subscription is looked up before it is attached.
"""

import logging

from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.dialects.refusals import require_readable
from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.management import AmqpManagementLink
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.states import EndpointState
from pyspark_jms.amqp.wire.types import Source
from pyspark_jms.amqp.wire.values import Described
from pyspark_jms.errors import InvalidDestinationError, JMSError, JMSSecurityError, UnsupportedError
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import Subscription, another_topic, no_subscription, selector_changed
from pyspark_jms.management.routing import is_fully_qualified, routing_of
from pyspark_jms.network.settings import ConnectionSettings

__all__ = [
    "end_subscription",
    "require_harmless",
    "require_same_topic",
    "require_unchanged",
    "selector_of",
    "subscription_queue",
]

_log = logging.getLogger("pyspark_jms.link")
_NOT_FOUND = "amqp:not-found"


def require_harmless(settings: ConnectionSettings, subscription: Subscription, dialect: Dialect) -> None:
    """``InvalidDestinationError`` if an attach would take a subscription from its topic, or create the queue of a fully
    qualified name and change its address. Where the broker cannot be asked, a log line states it.
    """
    name = subscription.destination.name
    if subscription.durable is not None:
        require_same_topic(settings, subscription.destination, subscription.durable, dialect)
        return
    if not is_fully_qualified(name, dialect.management):
        return
    try:
        with AmqpManagementLink(settings) as link:
            routing_of(link, subscription.destination)
    except (JMSSecurityError, UnsupportedError) as error:
        _log.warning("! it is not known whether queue %s exists: %s", name, error.fact)


def require_same_topic(
    settings: ConnectionSettings, topic: Destination, durable: DurableSubscription, dialect: Dialect
) -> None:
    """``InvalidDestinationError`` if the subscription belongs to another topic: an attach would move it to this one and
    delete its messages. No answer of a broker to an attach tells the topic, so its management is asked; where that
    cannot be, a log line states it.
    """
    if dialect.management is None or dialect.management.inspection is None:
        return
    try:
        with AmqpManagementLink(settings) as link:
            address = link.queue_attribute(subscription_queue(durable), link.words.queue.address)
    except InvalidDestinationError:
        return  # a new one
    except JMSError as error:
        _log.warning(
            "! it is not known whether subscription %s is one of topic %s: %s", durable, topic.name, error.fact
        )
        return
    if address != topic.name:
        raise another_topic(durable, address)


def require_unchanged(connection: Connection, subscription: Subscription) -> None:
    """``SelectorChangedError``. A new subscription is fine."""
    durable = subscription.durable
    assert durable is not None
    found = _look_up(connection, durable)
    source = None if found is None else found.remote_source
    if found is None or source is None:
        return
    _detach(connection, found, closed=False)
    if selector_of(source) != subscription.selector:
        raise selector_changed(durable)


def end_subscription(settings: ConnectionSettings, topic: Destination, durable: DurableSubscription) -> None:
    """Delete the subscription and its messages on the broker. ``InvalidDestinationError`` if it does not exist."""
    connection = connect(settings)
    try:
        require_readable(connection.dialect, topic.kind)
        connection.dialect.refused_subscriptions.check(topic.name, durable)
        require_same_topic(settings, topic, durable, connection.dialect)
        found = _look_up(connection, durable)
        if found is None:
            raise no_subscription(durable)
        _detach(connection, found, closed=True)
    finally:
        connection.close()


def _look_up(connection: Connection, durable: DurableSubscription) -> Receiver | None:
    """An attached link to the subscription; None if there is none of that name."""
    with connection.core() as session:
        receiver = session.link(Receiver, subscription_name(durable))
        receiver.attach_to(None, desired=capabilities_of(durable))
    connection.await_(lambda: receiver.is_ready or receiver.state is EndpointState.ENDED, "its attach")
    if receiver.state is EndpointState.ENDED and receiver.error is not None and receiver.error.condition == _NOT_FOUND:
        return None
    connection.check_link(receiver)
    return receiver


def _detach(connection: Connection, receiver: Receiver, *, closed: bool) -> None:
    with connection.core():
        receiver.detach(closed=closed)
    connection.await_(lambda: receiver.state is EndpointState.ENDED, "its detach")
    if receiver.error is not None:
        connection.check_link(receiver)


def subscription_name(durable: DurableSubscription) -> str:
    return durable.name


def subscription_queue(durable: DurableSubscription) -> str:
    """The broker's queue of a subscription (Artemis)."""
    return str(durable) if durable.client_id else f"{durable}:global"


def capabilities_of(durable: DurableSubscription) -> tuple[str, ...] | None:
    """Of a shared subscription; ``global`` without a client id, so that every connection finds it."""
    if not durable.shared:
        return None
    return ("shared",) if durable.client_id else ("shared", "global")


def selector_of(source: Source) -> str | None:
    """The selector in a source's filters, whatever their keys are."""
    values = (source.filter or {}).values()
    return next((each.value for each in values if isinstance(each, Described) and isinstance(each.value, str)), None)
