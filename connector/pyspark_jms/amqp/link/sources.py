"""A subscription → the source of an attach (AMQP 1.0 §3.5.3), and whether the broker took it over."""

from collections.abc import Collection
from typing import Any

from pyspark_jms.amqp.dialects import Dialect
from pyspark_jms.amqp.link.subscriptions import capabilities_of
from pyspark_jms.amqp.wire.types import Source
from pyspark_jms.amqp.wire.values import Described, Symbol
from pyspark_jms.errors import InvalidDestinationError, InvalidSelectorError, UnsupportedError
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.network.address import Address

__all__ = ["DURABLE", "OUTCOMES", "copy_of", "filter_of", "require_echo", "require_kind", "require_shared", "source_of"]

_SELECTOR = Symbol("apache.org:selector-filter:string")
_SELECTOR_CODE = 0x0000_468C_0000_0004
_KINDS = ("queue", "topic")
_SHARED_SUBSCRIPTIONS = "SHARED-SUBS"
DURABLE = 2  # §3.5.5: unsettled-state
OUTCOMES = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")


def copy_of(queue: str, selector: str | None = None) -> Source:
    """To browse a queue, named by its address."""
    return Source(
        address=queue,
        distribution_mode="copy",
        filter=filter_of(selector),
        outcomes=OUTCOMES,
        capabilities=("queue",),
    )


def source_of(subscription: Subscription, dialect: Dialect) -> Source:
    """Without the capability queue or topic, Artemis would make a new address a topic and lose what is sent there."""
    durable, destination = subscription.durable, subscription.destination
    capabilities = [str(destination.kind)]
    if durable is not None:
        capabilities += capabilities_of(durable) or ()
    return Source(
        address=dialect.send.source_address(destination.kind, destination.name),
        durable=DURABLE if durable else 0,
        expiry_policy="never" if durable else "link-detach",
        distribution_mode="copy" if subscription.browse and dialect.browses else None,
        filter=filter_of(subscription.selector),
        outcomes=OUTCOMES,
        capabilities=tuple(capabilities),
    )


def filter_of(selector: str | None) -> Any:
    """The filter of a source; None if there is no selector."""
    return None if selector is None else {_SELECTOR: Described(_SELECTOR_CODE, selector)}


def require_echo(address: Address, sent: Source, echoed: Source | None) -> None:
    """A broker ignores an unknown filter or distribution mode without an error: all messages would arrive."""
    given = (echoed.filter if echoed is not None else None) or {}
    if sent.filter and not any(_is_selector(each) for each in given.values()):
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


def _is_selector(value: Any) -> bool:
    return isinstance(value, Described) and value.descriptor in {_SELECTOR_CODE, str(_SELECTOR)}
