"""What a dialect cannot do and was asked for → ``UnsupportedError`` with the reason and what to do instead.

Asked twice: by the options where the broker is named, so that ``load()`` says it, and when a broker has answered.
"""

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import DurableSubscription
from pyspark_jms.stomp.dialects.base import Dialect

__all__ = [
    "require_duplicate_detection",
    "require_durable",
    "require_enough_unacknowledged",
    "require_stable_ids",
    "require_transactions",
]


def require_stable_ids(dialect: Dialect) -> str:
    """For a journal. Returns what stands before the stable part of a ``message-id``."""
    if dialect.stable_id_separator is None:
        raise UnsupportedError(
            f"{dialect.name} has no message ids that stay the same, so a journal could not recognise a message that"
            " comes again.",
            "Leave journalLocation out: at least once is what this broker allows.",
        )
    return dialect.stable_id_separator


def require_durable(dialect: Dialect, subscription: DurableSubscription, *, selected: bool) -> None:
    """``selected``: the broker is to evaluate a selector for it."""
    if subscription.shared and not dialect.durable.shared:
        raise UnsupportedError(
            f"{dialect.name} lets one connection read a durable subscription, so it cannot be shared.",
            "Use a virtual topic: a producer sends to topic VirtualTopic.X, and each group of readers has its option"
            " queue=Consumer.GROUP.VirtualTopic.X.",
        )
    if selected and dialect.durable.is_unnamed(subscription):
        raise UnsupportedError(
            f"{dialect.name} ignores the selector of a shared subscription that has no client id.",
            "Give clientId as well, the same in every query that shares it; or filter the DataFrame.",
        )


def require_enough_unacknowledged(dialect: Dialect, least: int | None) -> None:
    """For minMessagesPerTrigger."""
    most = dialect.unacknowledged
    if least is not None and most is not None and least > most:
        raise UnsupportedError(
            f"minMessagesPerTrigger is {least}, and {dialect.name} may send only {most} messages until one is"
            " acknowledged: every batch would wait for maxTriggerDelay.",
            f"Give {most} or less, or leave it out.",
        )


def require_transactions(dialect: Dialect) -> None:
    """For a sink whose rows go together or not at all."""
    if not dialect.transactions:
        raise UnsupportedError(
            f"{dialect.name} confirms a transaction over STOMP that it has carried out in part, or not stored.",
            "Give transaction=none: each row is then confirmed by itself. A task that fails leaves behind what was"
            " confirmed, and its next attempt sends that again.",
        )


def require_duplicate_detection(dialect: Dialect) -> str:
    """For deliveryGuarantee=exactly-once. Returns the header of the duplicate id."""
    if dialect.duplicate_id_header is None:
        raise UnsupportedError(
            f"Broker {dialect.name} does not refuse a transaction that it had before, so"
            " deliveryGuarantee=exactly-once cannot be kept.",
            "Leave it out (at-least-once), or send through Artemis.",
        )
    return dialect.duplicate_id_header
