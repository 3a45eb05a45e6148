"""What the modes of source and sink promise on this broker. Follows from dialect and findings; asks nobody."""

from collections.abc import Iterable, Iterator

from pyspark_jms.check.findings import Finding, Verdict
from pyspark_jms.stomp.dialects import Dialect

__all__ = ["guarantee_findings"]


def guarantee_findings(dialect: Dialect, findings: Iterable[Finding]) -> Iterator[Finding]:
    """``findings``: what was tried so far; what could not be tried is promised by what is known of the broker."""
    refused = {finding.name for finding in findings if finding.verdict is not Verdict.FINE}
    yield Finding(name="reading", value="at least once")
    if dialect.stable_id_separator is not None:
        yield Finding(name="reading, journal", value="exactly once into Spark, with journalLocation")
    else:
        yield Finding(
            name="reading, journal",
            value="no more than at least once: a message cannot be recognised when it comes again",
            verdict=Verdict.NOTE,
        )
    if dialect.transactions:
        yield Finding(name="writing", value="at least once; a task's rows in one transaction, all or none")
    else:
        yield Finding(
            name="writing",
            value="at least once, row by row, with transaction=none",
            verdict=Verdict.NOTE,
            advice="A task that fails leaves behind what was confirmed, and its next attempt sends that again.",
        )
    if dialect.duplicate_id_header is not None and "duplicate detection" not in refused:
        tried = "" if "scratch queue" not in refused else " (duplicate detection was not tried)"
        yield Finding(
            name="writing, ledger",
            value=f"a repeated task does not send again, with deliveryGuarantee=exactly-once{tried}",
        )
    else:
        yield Finding(
            name="writing, ledger",
            value="no more than at least once: this broker does not tell what it had before",
            verdict=Verdict.NOTE,
        )
    yield Finding(name="topics", value=f"a durable subscription has a queue's guarantees; {_shared(dialect)}")


def _shared(dialect: Dialect) -> str:
    return "several queries may share one" if dialect.durable.shared else "one query reads it at a time"
