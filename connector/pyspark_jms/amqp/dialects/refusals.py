"""What this release or a broker cannot do over AMQP → ``UnsupportedError`` with the reason and the alternative."""

from typing import NoReturn

from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import DestinationKind

__all__ = [
    "no_transactions",
    "refuse_connections",
    "refuse_journal",
    "require_connections",
    "require_one_entity",
    "require_readable",
    "require_register",
    "require_staging",
    "require_streams",
    "require_transactions",
]


def refuse_journal() -> NoReturn:
    raise UnsupportedError(
        "Option journalLocation is given for a read over AMQP, and a journal keeps STOMP messages only.",
        "Remove it: over AMQP deliveryGuarantee=exactly-once needs no folder. Or read over STOMP: stomp://HOST:61613.",
    )


def require_connections(dialect: Dialect, connections: int) -> None:
    """For option connections: what each connection may receive depends on whether the others live."""
    if connections > 1 and not dialect.has_transactions:
        raise refuse_connections(dialect.name)


def refuse_connections(broker: object) -> UnsupportedError:
    return UnsupportedError(
        f"{broker} has no transactions over AMQP, whose answers show that each of several connections is alive.",
        "Use connections=1.",
    )


def require_readable(dialect: Dialect, kind: DestinationKind) -> None:
    """For a query or a subscription that reads a destination of this kind."""
    if kind is DestinationKind.TOPIC and dialect.refuses_topics:
        raise UnsupportedError(
            f"{dialect.refuses_topics} So it has no topics to read, and no durable subscriptions.",
            dialect.topics_remedy,
        )


def require_streams(dialect: Dialect) -> None:
    """For option streamOffset."""
    if not dialect.describes_queues:
        raise UnsupportedError(
            f"Option streamOffset is given, and {dialect.name} has no streams.", "Remove option streamOffset."
        )


def require_one_entity(dialect: Dialect) -> None:
    """For a transaction with rows that name their destinations, or that acknowledges and sends."""
    if dialect.one_entity_a_transaction:
        raise UnsupportedError(
            f"A transaction of {dialect.name} has messages of one queue or topic only.",
            "Write to one destination: give option queue or topic, and no column destination. Or set transaction=none.",
        )


def require_staging(dialect: Dialect) -> None:
    """For a read that keeps its messages in a staging queue."""
    if dialect.refuses_staging:
        raise UnsupportedError(
            f"deliveryGuarantee=exactly-once is given for a read from {dialect.name} over AMQP:"
            f" {dialect.refuses_staging}.",
            "Leave it out, for at-least-once reads, or read over STOMP with journalLocation, if the broker allows it.",
        )


def require_register(dialect: Dialect) -> None:
    """For exactly-once writes, whose ledger is a value that one connection at a time may hold and replace."""
    if dialect.no_register:
        raise UnsupportedError(
            f"deliveryGuarantee=exactly-once is given for a write over AMQP, and {dialect.name} {dialect.no_register}.",
            "Remove the option, for at-least-once writes, or use Artemis.",
        )


def require_transactions(dialect: Dialect) -> None:
    """For a sink that sends the rows of a task in one transaction."""
    if not dialect.has_transactions:
        raise no_transactions(dialect.name)


def no_transactions(broker: object, reason: str = "") -> UnsupportedError:
    """``reason``: a sentence, why the broker refused the attach to the transaction coordinator."""
    return UnsupportedError(
        f"{broker} has no transactions over AMQP{f': {reason}' if reason else '.'}",
        "Set transaction=none: the broker then confirms each row. The confirmed rows of a failed task stay, and its"
        " next attempt sends them again.",
    )
