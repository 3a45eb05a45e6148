"""Findings about the guarantees of source and sink, which follow from the dialect and earlier findings."""

from collections.abc import Iterable, Iterator

from pyspark_jms.check.findings import Finding, Verdict
from pyspark_jms.stomp.dialects import Dialect

__all__ = ["guarantee_findings"]


def guarantee_findings(dialect: Dialect, findings: Iterable[Finding]) -> Iterator[Finding]:
    """``findings``: the earlier findings. What they could not test follows from the dialect."""
    refused = {finding.name for finding in findings if finding.verdict is not Verdict.FINE}
    yield Finding(name="reading", value="at-least-once")
    if dialect.stable_id_separator is not None:
        yield Finding(name="reading, journal", value="exactly-once into Spark, with journalLocation")
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
    if dialect.duplicate_id_header is not None and "duplicate detection" not in refused:
        untested = " (duplicate detection was not tested)" if "scratch queue" in refused else ""
        yield Finding(
            name="writing, ledger",
            value=f"exactly-once, with deliveryGuarantee=exactly-once{untested}",
        )
    else:
        yield Finding(
            name="writing, ledger",
            value="at-least-once only: the broker does not detect duplicates",
            verdict=Verdict.NOTE,
        )
    yield Finding(name="topics", value=f"a durable subscription has the guarantees of a queue; {_shared(dialect)}")


def _shared(dialect: Dialect) -> str:
    return (
        "several queries can share a subscription"
        if dialect.durable_subscriptions.shared
        else "one query at a time can read a subscription"
    )
