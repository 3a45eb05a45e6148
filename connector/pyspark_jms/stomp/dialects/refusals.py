"""A feature that a dialect lacks → ``UnsupportedError`` with the reason and the alternative.

Called twice: by the options when option ``broker`` is set, so that ``load()`` fails, and once the broker is detected.
"""

from collections.abc import Collection
from typing import NoReturn

from pyspark_jms.delivery.subscription_ledger import unrecognisable
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import DurableSubscription
from pyspark_jms.stomp.dialects.base import Dialect

__all__ = [
    "refuse_exactly_once_writes",
    "require_durable",
    "require_journal",
    "require_stable_ids",
    "require_transactions",
]


def require_stable_ids(dialect: Dialect) -> None:
    """For a journal."""
    if dialect.stable_id_separator is None:
        raise unrecognisable(dialect.name)


def require_journal(given: Collection[str]) -> None:
    """For an exactly-once read with these options.

    STOMP cannot acknowledge a message and send another one in one transaction that the broker confirms.
    """
    for name in given:
        if name != "journalLocation":
            raise UnsupportedError(
                f"Option {name} is given for a read over STOMP, which cannot move messages to a staging queue.",
                "Remove it and use journalLocation, a folder that outlives the driver, or read over AMQP:"
                " amqp://HOST:5672.",
            )
    if not given:
        raise UnsupportedError(
            "deliveryGuarantee=exactly-once is given for a read over STOMP without journalLocation, and STOMP has no"
            " other place for the messages of a batch.",
            "Give journalLocation, a folder that outlives the driver, or read over AMQP, which needs no folder:"
            " amqp://HOST:5672.",
        )


def require_durable(dialect: Dialect, topic: str, subscription: DurableSubscription, *, selected: bool) -> None:
    """For option ``subscriptionName``; ``selected``: a selector is pushed down to the broker."""
    dialect.durable_subscriptions.refused.check(topic, subscription)
    if subscription.shared and not dialect.durable_subscriptions.shared:
        raise UnsupportedError(
            f"{dialect.name} lets only one connection read a durable subscription, so it cannot be shared.",
            "Use a virtual topic: producers send to topic VirtualTopic.X, and each group of readers sets option"
            " queue=Consumer.GROUP.VirtualTopic.X.",
        )
    if selected and dialect.durable_subscriptions.is_named_by_destination(subscription):
        raise UnsupportedError(
            f"{dialect.name} ignores the selector of a shared subscription that has no client id.",
            "Set clientId, the same in every query that shares the subscription, or filter the DataFrame.",
        )


def require_transactions(dialect: Dialect) -> None:
    """For a sink that sends the rows of a task in one transaction."""
    if not dialect.has_transactions:
        raise UnsupportedError(
            f"{dialect.name} can confirm a STOMP transaction of which only a part took effect, or none was stored.",
            "Set transaction=none: the broker then confirms each row. The confirmed rows of a failed task stay, and its"
            " next attempt sends them again.",
        )


def refuse_exactly_once_writes() -> NoReturn:
    """A COMMIT that is in the network when its task is repeated can be carried out after the repetition has looked."""
    raise UnsupportedError(
        "deliveryGuarantee=exactly-once is given for a write over STOMP, which cannot fence a COMMIT that is still in"
        " the network: a repeated task could send its rows a second time.",
        "Write over AMQP to Artemis, which speaks it on the same broker: amqp://HOST:5672. Or remove the option, for"
        " at-least-once writes.",
    )
