"""A subscription → the source of an attach (AMQP 1.0 §3.5.3), and whether the broker took it over.

Durable subscriptions are found by an attach without a source, compared, and ended. An attach with another selector or
topic is accepted silently, and the broker deletes the messages that wait (Artemis). So a durable subscription is looked
up before it is attached.
"""

import logging
import re
import uuid
from collections.abc import Collection
from contextlib import closing
from dataclasses import replace
from typing import Any

from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.link.connection import Connection, connect
from pyspark_jms.amqp.link.management import AmqpManagementLink
from pyspark_jms.amqp.wire.receiver import Receiver
from pyspark_jms.amqp.wire.states import EndpointState
from pyspark_jms.amqp.wire.types import Source
from pyspark_jms.amqp.wire.values import Described, Symbol
from pyspark_jms.errors import (
    InvalidDestinationError,
    InvalidSelectorError,
    JMSSecurityError,
    SubscriptionInUseError,
    UnsupportedError,
)
from pyspark_jms.jms.model import Destination, DestinationKind, DurableSubscription
from pyspark_jms.jms.subscription import Subscription, another_topic, no_subscription, selector_changed
from pyspark_jms.management.link import ask
from pyspark_jms.management.queue_facts import queue_facts
from pyspark_jms.management.routing import is_fully_qualified, queue_names, routing_of
from pyspark_jms.network.address import Address
from pyspark_jms.network.settings import ConnectionSettings

__all__ = [
    "DURABLE",
    "NOT_FOUND",
    "OUTCOMES",
    "copy_of",
    "detach",
    "end_subscription",
    "queue_of",
    "require_at",
    "require_echo",
    "require_harmless",
    "require_kind",
    "require_same_topic",
    "require_shared",
    "require_unchanged",
    "source_of",
]

_log = logging.getLogger("pyspark_jms.link")
_SELECTOR = Symbol("apache.org:selector-filter:string")
_SELECTOR_CODE = 0x0000_468C_0000_0004
_KINDS = ("queue", "topic")
_SHARED_SUBSCRIPTIONS = "SHARED-SUBS"
_QUEUE_IN_USE = re.compile(r"AMQ229200: [^(]*\(address=(?P<address>.*?),queue=(?P<queue>.*?)\)")
"""How Artemis refuses the second consumer of a subscription."""
DURABLE = 2  # §3.5.5: unsettled-state
OUTCOMES = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")


def copy_of(queue: str, selector: str | None = None) -> Source:
    """Return the source that browses a queue, named by its address."""
    return Source(
        address=queue,
        distribution_mode="copy",
        filter=_filter_of(selector),
        outcomes=OUTCOMES,
        capabilities=("queue",),
    )


def source_of(subscription: Subscription, dialect: Dialect) -> Source:
    """Return a source. Without the capability queue or topic, Artemis would make a new address a topic and lose what is
    sent there.
    """
    durable, destination = subscription.durable, subscription.destination
    capabilities = [str(destination.kind)]
    if durable is not None:
        capabilities += _capabilities_of(durable) or ()
    return Source(
        address=dialect.send.source_address(destination.kind, destination.name),
        durable=DURABLE if durable else 0,
        expiry_policy="never" if durable else "link-detach",
        distribution_mode="copy" if subscription.browse and dialect.browses else None,
        filter=_filter_of(subscription.selector),
        outcomes=OUTCOMES,
        capabilities=tuple(capabilities),
    )


def _filter_of(selector: str | None) -> Any:
    return None if selector is None else {_SELECTOR: Described(_SELECTOR_CODE, selector)}


def require_echo(address: Address, sent: Source, echoed: Source | None) -> None:
    """A broker ignores an unknown filter or distribution mode without an error: all messages would arrive."""
    given = (echoed.filter if echoed is not None else None) or {}
    echoes = {each.descriptor for each in given.values() if isinstance(each, Described)}
    if sent.filter and not echoes & {_SELECTOR_CODE, str(_SELECTOR)}:
        raise InvalidSelectorError(
            f"{address} ignored the selector and would deliver every message.",
            "Remove option selector, and filter the DataFrame.",
        )
    if sent.distribution_mode and (echoed is None or echoed.distribution_mode != sent.distribution_mode):
        raise UnsupportedError(f"{address} cannot show messages without delivering them.", "Use spark.readStream.")


def require_kind(address: Address, sent: Source, echoed: Source | None) -> None:
    """Broker-J may attach a queue in place of a topic, or a topic in place of a queue; its reply shows that."""
    wanted = next(kind for kind in _KINDS if kind in (sent.capabilities or ()))
    given = set(_KINDS).intersection((echoed.capabilities if echoed is not None else None) or ())
    if given and wanted not in given:
        raise InvalidDestinationError(
            f"{sent.address} is a {given.pop()} on {address}, and this query reads a {wanted}.",
            "Use the option, queue or topic, that the broker's address needs.",
        )


def require_shared(connection_capabilities: Collection[str], address: Address) -> None:
    """``UnsupportedError`` for a broker that would take a shared subscription for one of its own (Classic)."""
    if _SHARED_SUBSCRIPTIONS not in connection_capabilities:
        raise UnsupportedError(
            f"{address} has no shared subscriptions over AMQP.",
            "Remove sharedSubscription and give a clientId. Only one query can then read the subscription.",
        )


# --- durable subscriptions at the broker ------------------------------------------------------------

NOT_FOUND = "amqp:not-found"


def require_harmless(settings: ConnectionSettings, destination: Destination, dialect: Dialect) -> None:
    """``InvalidDestinationError`` if an attach would create the queue of a fully qualified name and change its address.
    Where the broker cannot be asked, a log line states it.
    """
    name = destination.name
    if not is_fully_qualified(name, dialect.management):
        return
    try:
        with AmqpManagementLink(settings) as link:
            routing_of(link, destination)
    except (JMSSecurityError, UnsupportedError) as error:
        _log.warning("! it is not known whether queue %s exists: %s", name, error.fact)


def require_same_topic(
    connection: Connection, settings: ConnectionSettings, topic: str, durable: DurableSubscription
) -> None:
    """``InvalidDestinationError`` if the subscription belongs to another topic: an attach would move it to this one and
    delete its messages. The broker's management is asked, or ``queue_of`` and ``require_at``.
    """
    management = connection.dialect.management
    if management is None or not management.inspects:
        return
    about = f"by management which topic subscription {durable} has"
    found = ask(AmqpManagementLink, settings, lambda link: queue_facts(link, queue_names(durable)), about)
    if found is None:
        if (queue := queue_of(connection, durable)) is not None:
            require_at(connection, topic, queue, durable)
        return
    address = next((facts.address for facts in found.values() if facts.exists), topic)
    if address != topic:
        raise another_topic(durable, f"topic {address}")


def queue_of(connection: Connection, durable: DurableSubscription) -> str | None:
    """Return the name of the subscription's queue, or None if there is none. The attach has no source, so it neither
    creates nor moves a queue; its echo has the name (Artemis). ``connection`` has the client id.
    """
    try:
        found = _look_up(connection, durable)
    except SubscriptionInUseError as error:
        named = _QUEUE_IN_USE.search(error.fact)
        return named["queue"] if named else queue_names(durable)[0]
    except InvalidDestinationError:  # a queue of this name, and no subscription
        return None
    if found is None:
        return None
    detach(connection, found, closed=False)
    return (found.remote_source and found.remote_source.address) or queue_names(durable)[0]


def require_at(connection: Connection, topic: str, queue: str, durable: DurableSubscription) -> None:
    """``InvalidDestinationError`` if the queue, which exists, belongs to another address. Artemis finds a queue by its
    name and then compares the address, before it asks for the permission to browse.
    """
    address = connection.dialect.send.address(DestinationKind.TOPIC, topic)
    source = replace(copy_of(f"{address}::{queue}"), capabilities=("topic",))
    try:
        receiver = connection.attached(Receiver, source, f"looking-{uuid.uuid4().hex}")
    except (InvalidDestinationError, JMSSecurityError) as error:
        if isinstance(error, InvalidDestinationError) or error.missing:
            raise another_topic(durable, f"another topic than {topic}") from None
        return
    detach(connection, receiver, closed=True)


def require_unchanged(connection: Connection, subscription: Subscription) -> None:
    """``SelectorChangedError``. A new subscription is fine."""
    durable = subscription.durable
    assert durable is not None
    found = _look_up(connection, durable)
    source = None if found is None else found.remote_source
    if found is None or source is None:
        return
    detach(connection, found, closed=False)
    if _selector_of(source) != subscription.selector:
        raise selector_changed(durable)


def end_subscription(settings: ConnectionSettings, topic: Destination, durable: DurableSubscription) -> None:
    """Delete the subscription and its messages on the broker. ``InvalidDestinationError`` if it does not exist."""
    with closing(connect(settings)) as connection:
        connection.dialect.require_subscription(Subscription(destination=topic, window_bytes=1, durable=durable))
        require_same_topic(connection, settings, topic.name, durable)
        found = _look_up(connection, durable)
        if found is None:
            raise no_subscription(durable)
        detach(connection, found, closed=True)


def _look_up(connection: Connection, durable: DurableSubscription) -> Receiver | None:
    """An attached link to the subscription; None if there is none of that name."""
    with connection.core() as session:
        receiver = session.link(Receiver, durable.name)
        receiver.attach_to(None, desired=_capabilities_of(durable))
    connection.await_(lambda: receiver.is_ready or receiver.state is EndpointState.ENDED, "its attach")
    if receiver.state is EndpointState.ENDED and receiver.error is not None and receiver.error.condition == NOT_FOUND:
        return None
    connection.check_link(receiver)
    return receiver


def detach(connection: Connection, receiver: Receiver, *, closed: bool) -> None:
    with connection.core():
        receiver.detach(closed=closed)
    connection.await_(lambda: receiver.state is EndpointState.ENDED, "its detach")
    if receiver.error is not None:
        connection.check_link(receiver)


def _capabilities_of(durable: DurableSubscription) -> tuple[str, ...] | None:
    """Return the capabilities of a shared subscription: ``global`` without a client id, so that every connection finds
    it.
    """
    if not durable.shared:
        return None
    return ("shared",) if durable.client_id else ("shared", "global")


def _selector_of(source: Source) -> str | None:
    """The selector in a source's filters, whatever their keys are."""
    values = (source.filter or {}).values()
    return next((each.value for each in values if isinstance(each, Described) and isinstance(each.value, str)), None)
