"""What is found out about a broker: connection, clock, management, and the guarantees that its dialect allows."""

from collections.abc import Callable, Iterator

from pyspark_jms.errors import JMSError
from pyspark_jms.jms.features import Feature
from pyspark_jms.management.link import ManagementLink
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.link.connection import Connection
from pyspark_jms.tools.check.findings import Finding, Verdict

__all__ = [
    "broker_findings",
    "clock_finding",
    "guarantee_findings",
    "open_management",
]

_CLOCKS_MAY_DIFFER_MS = 1_000
"""The difference of the broker's and the driver's clocks that AvailableNow tolerates."""


def broker_findings(link: Connection, user: str | None) -> Iterator[Finding]:
    yield Finding(name="connection", value=f"{link.address}, {f'as {user}' if user else 'without a user'}")
    yield Finding(name="broker", value=f"{link.server or 'no server header'}; dialect {link.dialect.name}")


def open_management(
    open_link: Callable[[ConnectionSettings], ManagementLink], settings: ConnectionSettings
) -> tuple[ManagementLink | None, Finding]:
    """A link on which the first management request succeeded, or None and the reason."""
    link = None
    try:
        link = open_link(settings)
        link.attribute(link.words.broker_resource, link.words.version)
    except JMSError as error:
        if link is not None:
            link.close()
        remedy = f"{error.remedy} Queries do not need it; without it the check cannot inspect a queue."
        return None, Finding.of_error("management", error, remedy=remedy)
    return link, Finding(name="management", value="this user has the permission for management")


def clock_finding(clock: tuple[float, float, float] | None) -> Finding:
    """``clock``: this machine's time before, the broker's time, this machine's time after; epoch milliseconds."""
    if clock is None:
        return Finding(name="clock", value="the broker's clock could not be read", verdict=Verdict.NOTE)
    before, there, after = clock
    ahead = there - after if there > after else min(there - before, 0.0)
    if abs(ahead) <= _CLOCKS_MAY_DIFFER_MS:
        value = f"the clocks of the broker and this machine differ by less than {_CLOCKS_MAY_DIFFER_MS / 1000:g} s"
        return Finding(name="clock", value=value, details={"aheadMilliseconds": round(ahead)})
    return Finding(
        name="clock",
        value=f"the broker's clock is {abs(ahead) / 1000:.1f} s {'ahead of' if ahead > 0 else 'behind'} this machine's",
        verdict=Verdict.PROBLEM,
        advice="Synchronise the clocks: a time to live starts at this machine's clock and ends at the broker's, and"
        " AvailableNow compares both clocks to find the messages that are older than its start.",
        details={"aheadMilliseconds": round(ahead)},
    )


# --- what is guaranteed there -----------------------------------------------------------------------


def guarantee_findings(dialect: Dialect) -> Iterator[Finding]:
    yield Finding(name="reading", value="at-least-once")
    yield _offered(
        "reading, journal",
        dialect,
        Feature.JOURNAL,
        "exactly-once, with deliveryGuarantee=exactly-once and journalLocation",
    )
    yield _offered("writing", dialect, Feature.TRANSACTIONS, "at-least-once; the rows of a task are one transaction")
    yield _offered("writing, ledger", dialect, Feature.EXACTLY_ONCE_WRITE, "exactly-once")
    yield Finding(name="topics", value=f"a durable subscription has the guarantees of a queue; {_shared(dialect)}")


def _offered(name: str, dialect: Dialect, feature: Feature, value: str) -> Finding:
    refusal = dialect.cannot.get(feature)
    if refusal is None:
        return Finding(name=name, value=value)
    error = refusal.error(dialect.name)
    return Finding(name=name, value=f"at-least-once only: {error.fact}", verdict=Verdict.NOTE, advice=error.remedy)


def _shared(dialect: Dialect) -> str:
    return (
        "several queries can share a subscription"
        if dialect.can(Feature.SHARED)
        else "one query at a time can read a subscription"
    )
