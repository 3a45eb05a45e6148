"""Findings about the guarantees of source and sink over STOMP, which follow from the dialect."""

from collections.abc import Iterator

from pyspark_jms.check.findings import Finding, Verdict
from pyspark_jms.stomp.dialects import Dialect

__all__ = ["guarantee_findings"]


def guarantee_findings(dialect: Dialect) -> Iterator[Finding]:
    yield Finding(name="reading", value="at-least-once")
    if dialect.stable_id_separator is not None:
        yield Finding(
            name="reading, journal", value="exactly-once, with deliveryGuarantee=exactly-once and journalLocation"
        )
    else:
        yield Finding(
            name="reading, journal",
            value="at-least-once only: a redelivery cannot be recognised",
            verdict=Verdict.NOTE,
        )
    if dialect.transactions:
        yield Finding(name="writing", value="at-least-once; the rows of a task are one transaction")
    else:
        yield Finding(
            name="writing",
            value="at-least-once, without transactions, with transaction=none",
            verdict=Verdict.NOTE,
            advice="The rows that a failed task sent stay on the broker, and the next attempt sends them again.",
        )
    yield Finding(
        name="writing, ledger",
        value="at-least-once only over STOMP",
        verdict=Verdict.NOTE,
        advice="Exactly-once writes need Artemis over AMQP: check it with --broker-url amqp://HOST:5672.",
    )
    yield Finding(name="topics", value=f"a durable subscription has the guarantees of a queue; {_shared(dialect)}")


def _shared(dialect: Dialect) -> str:
    return (
        "several queries can share a subscription"
        if dialect.durable_subscriptions.shared
        else "one query at a time can read a subscription"
    )
