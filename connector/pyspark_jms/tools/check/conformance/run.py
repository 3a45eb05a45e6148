"""``pyspark-jms check --conformance``: what a broker does, on a scratch queue, and whether it is what its dialect says.

A finding is fine if the broker does what the dialect says, a note where the broker or the dialect lacks something, and
a problem where a query would lose or change messages. An answer of the broker is no proof: each test looks at what
arrives. The findings become a report in Markdown, which an owner of the broker can attach to an issue.
"""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark_jms.errors import InvalidDestinationError, JMSError
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.tools.check.conformance.delivery import (
    acknowledgements,
    browse,
    end_of_queue,
    missing_queue,
    selector,
    transactions,
)
from pyspark_jms.tools.check.conformance.messages import bodies, headers_and_properties, large_message
from pyspark_jms.tools.check.conformance.queue import ConformanceQueue, EndedEarly
from pyspark_jms.tools.check.findings import Finding, Trial, Verdict

__all__ = ["ConformanceReport", "run_conformance"]

_LEGEND = (
    "*as assumed*: the broker does what the dialect of this connector says. *note*: the broker lacks something, or the"
    " connector does not use something that works. *problem*: a query would lose or change messages, or fail. *ended*:"
    " the broker was not the reason why the tests ended."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceReport:
    protocol: str
    server: str
    dialect: str
    capabilities: tuple[str, ...]
    seconds: float
    findings: tuple[Finding, ...]

    def as_markdown(self, version: str, now: datetime) -> str:
        """The report, without the broker's address."""
        facts = (
            ("connector", f"pyspark-jms {version}"),
            ("broker", self.server or "names no product"),
            ("protocol", self.protocol),
            ("dialect", f"`{self.dialect}`"),
            ("capabilities", ", ".join(self.capabilities) or "none"),
            ("date", now.astimezone(UTC).strftime("%Y-%m-%d")),
            ("duration", f"{self.seconds:.0f} s"),
        )
        lines = [
            f"# Conformance of {self.server or 'a broker'} over {self.protocol}",
            "",
            *_table(("", ""), facts),
            "",
            *_table(("test", "result", "seen"), [_shown(each) for each in self.findings]),
            "",
            _LEGEND,
        ]
        return "\n".join(lines) + "\n"


_RESULTS = {
    Verdict.FINE: "as assumed",
    Verdict.NOTE: "note",
    Verdict.PROBLEM: "**problem**",
    Verdict.ENDED: "**ended**",
}
_ADVICE = "Name a queue that nothing else uses, or leave out --queue."


def _shown(finding: Finding) -> tuple[str, str, str]:
    return finding.name, _RESULTS[finding.verdict], " ".join(filter(None, (finding.value, finding.advice)))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |" for row in cells]


def run_conformance(settings: ConnectionSettings, name: str, *, is_new: bool = False) -> ConformanceReport:
    """Run every test on the queue. Raises if the broker cannot be reached, or if the queue has other messages.

    ``is_new``: the name was made for this run, so its queue is deleted at the end.
    """
    began = time.monotonic()
    queue = ConformanceQueue(settings, name)
    with contextlib.closing(queue.connect_reader()) as link:
        server, queue.dialect, address = link.server or "", link.dialect, str(link.address)
        capabilities = tuple(sorted(link.connection.capabilities)) if queue.is_amqp else ()
    _require_unused(queue)
    findings = tuple(_run_tests(queue))
    queue.delete(queue.missing, *([name] if is_new else []))
    return ConformanceReport(
        protocol="AMQP 1.0" if queue.is_amqp else "STOMP 1.2",
        server=server,
        dialect=queue.dialect.name,
        capabilities=capabilities,
        seconds=time.monotonic() - began,
        findings=tuple(_without(address, each) for each in findings),
    )


def _require_unused(queue: ConformanceQueue) -> None:
    try:
        queue.require_no_consumers()
        queue.require_alone()
    except EndedEarly as end:
        raise InvalidDestinationError(f"No test has run: {end}.", _ADVICE) from None


def _without(address: str, finding: Finding) -> Finding:
    value, advice = (text.replace(address, "the broker") for text in (finding.value, finding.advice))
    return replace(finding, value=value, advice=advice)


def _run_tests(queue: ConformanceQueue) -> Iterator[Finding]:
    """The findings of all tests, or of those before the one that could not go on."""
    for number, trial in enumerate(_TRIALS):
        try:
            yield from _findings_of(trial, queue)
        except EndedEarly as end:
            untried = ", ".join(each.feature for each in _TRIALS[number:])
            yield Finding(
                name="ended",
                value=f"{end}. Without a result: {untried}",
                verdict=Verdict.ENDED,
                advice=_ADVICE,
            )
            with contextlib.suppress(JMSError, EndedEarly):
                queue.remove_own()
            break


def _findings_of(trial: Trial, queue: ConformanceQueue) -> list[Finding]:
    """The findings of one test. Its error is a finding too, unless another program uses the queue."""
    found: list[Finding] = []
    try:
        for finding in trial.findings(queue):
            found.append(finding)  # noqa: PERF402 - those before an error are kept
    except JMSError as error:
        found.append(Finding.of_end(trial.feature, error))
    with contextlib.suppress(JMSError):
        queue.remove_own()
        queue.require_alone()
    return found


_TRIALS = (
    Trial("transactions", (), transactions),
    Trial("bodies", (), bodies),
    Trial("headers and properties", (), headers_and_properties),
    Trial("large message", (), large_message),
    Trial("selector", (), selector),
    Trial("browse", (), browse),
    Trial("end of queue", ("is_amqp",), end_of_queue),
    Trial("acknowledgements", (), acknowledgements),
    Trial("missing queue", (), missing_queue),
)
