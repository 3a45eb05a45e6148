"""Who answers, what its clock says, and whether it may be asked about itself."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from pyspark_jms.check.findings import Finding, Verdict
from pyspark_jms.errors import JMSError
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.link.connection import connect
from pyspark_jms.stomp.link.management import ManagementLink

__all__ = ["Answerer", "answerer", "broker_findings", "clock_finding", "management_of"]

_CLOCKS_MAY_DIFFER_MS = 1_000
"""AvailableNow allows for so much between the broker's clock and the driver's."""


@dataclass(frozen=True, slots=True)
class Answerer:
    address: str
    server: str
    dialect: Dialect


def answerer(settings: ConnectionSettings) -> Answerer:
    """Connect once; raises what a query would."""
    with closing(connect(settings)) as connection:
        return Answerer(str(connection.address), connection.server or "", connection.dialect)


def broker_findings(found: Answerer, user: str | None) -> Iterator[Finding]:
    yield Finding(name="connection", value=f"{found.address}, {f'as {user}' if user else 'without a user'}")
    yield Finding(name="broker", value=f"{found.server or 'it does not say'}; dialect {found.dialect.name}")


def management_of(settings: ConnectionSettings) -> tuple[ManagementLink | None, Finding]:
    """A link that has had its first answer, or why there is none."""
    link = None
    try:
        link = ManagementLink(settings)
        link.attribute(link.words.broker_resource, link.words.version)
    except JMSError as error:
        if link is not None:
            link.close()
        remedy = f"{error.remedy} Nothing but figures depends on it: depth, body types, messages in delivery."
        return None, Finding.of_error("management", error, remedy=remedy)
    return link, Finding(name="management", value="this user may ask the broker about itself")


def clock_finding(clock: tuple[float, float, float] | None) -> Finding:
    """``clock``: before the broker looked at its clock, what it read there, after it; milliseconds since the epoch."""
    if clock is None:
        return Finding(name="clock", value="the broker's clock is not known", verdict=Verdict.NOTE)
    before, there, after = clock
    ahead = there - after if there > after else min(there - before, 0.0)
    if abs(ahead) <= _CLOCKS_MAY_DIFFER_MS:
        value = f"the broker's and this machine's differ by less than {_CLOCKS_MAY_DIFFER_MS / 1000:g} s"
        return Finding(name="clock", value=value, figures={"aheadMilliseconds": round(ahead)})
    return Finding(
        name="clock",
        value=f"the broker's is {abs(ahead) / 1000:.1f} s {'ahead of' if ahead > 0 else 'behind'} this machine's",
        verdict=Verdict.PROBLEM,
        advice="Set one by the other: a time to live counts from this machine's clock and ends by the broker's, and"
        " AvailableNow tells old messages from new ones by both.",
        figures={"aheadMilliseconds": round(ahead)},
    )
