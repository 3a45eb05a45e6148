"""What this release or a broker cannot do over AMQP → ``UnsupportedError`` with the reason and the alternative."""

from typing import NoReturn

from pyspark_jms.amqp.dialects.base import Dialect
from pyspark_jms.errors import UnsupportedError

__all__ = [
    "refuse_exactly_once_writes",
    "refuse_journal",
    "require_transactions",
]


def refuse_journal() -> NoReturn:
    raise UnsupportedError(
        "Option journalLocation is given for a read over AMQP, and a journal keeps STOMP messages only.",
        "Remove the option, for at-least-once reads, or read over STOMP: stomp://HOST:61613.",
    )


def refuse_exactly_once_writes() -> NoReturn:
    raise UnsupportedError(
        "deliveryGuarantee=exactly-once is given for a write over AMQP, and the commit ledger needs STOMP.",
        "Remove the option, for at-least-once writes, or write over STOMP: stomp://HOST:61613.",
    )


def require_transactions(dialect: Dialect) -> None:
    """For a sink that sends the rows of a task in one transaction."""
    if not dialect.has_transactions:
        raise UnsupportedError(
            f"{dialect.name} has no transactions over AMQP.",
            "Set transaction=none: the broker then confirms each row. The confirmed rows of a failed task stay, and its"
            " next attempt sends them again.",
        )
