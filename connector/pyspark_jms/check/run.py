"""The checks, in order, each on connections of its own. What ends them all is a finding, too."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark_jms.check.broker import answerer, broker_findings, clock_finding, management_of
from pyspark_jms.check.findings import Finding, Verdict
from pyspark_jms.check.guarantees import guarantee_findings
from pyspark_jms.check.queue import Queue, queue_findings
from pyspark_jms.check.receive import receive_findings
from pyspark_jms.check.scratch import SCRATCH_QUEUE, Scratch, scratch_findings
from pyspark_jms.errors import JMSError
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.link.management import ManagementLink

__all__ = ["CheckRequest", "run_checks"]

_NOT_ASKED = (
    Finding(
        name="queue",
        value="what is on it is not known: this user may not ask",
        verdict=Verdict.NOTE,
        advice="--receive takes messages and gives them back; a Map or Object message then looks like an empty text,"
        " and some Stream messages do not come at all.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    settings: ConnectionSettings
    queue: str | None = None
    """None: only the broker is looked at."""
    most: int = 10_000
    """Messages in delivery that are looked at, and messages that ``receive`` takes."""
    receive: bool = False
    """Receive what is on the queue and give it back."""
    scratch_queue: str = SCRATCH_QUEUE


def run_checks(request: CheckRequest) -> list[Finding]:
    """All that could be found out, a problem or not; raises nothing that the broker did."""
    findings: list[Finding] = []
    try:
        for finding in _checks(request, findings):
            findings.append(finding)  # noqa: PERF402 - the later ones look at the earlier
    except JMSError as error:
        findings.append(Finding.of_error("check" if findings else "connection", error, Verdict.PROBLEM))
    return findings


def _checks(request: CheckRequest, so_far: list[Finding]) -> Iterator[Finding]:
    found = answerer(request.settings)
    yield from broker_findings(found, request.settings.user)
    with ExitStack() as stack:
        management, finding = management_of(request.settings)
        if management is not None:
            stack.enter_context(management)
        yield finding
        scratch = Scratch(request.settings, request.scratch_queue, found.dialect)
        yield from scratch_findings(scratch)
        yield clock_finding(scratch.clock or _asked_clock(management))
        yield from guarantee_findings(found.dialect, so_far)
        if request.queue is not None:
            asked = None if management is None else Queue(management, request.queue)
            yield from _NOT_ASKED if asked is None else queue_findings(asked, request.most)
            if request.receive:
                yield from receive_findings(request.settings, request.queue, request.most, asked)


def _asked_clock(management: ManagementLink | None) -> tuple[float, float, float] | None:
    if management is None:
        return None
    before = time.time() * 1000
    try:
        there = float(management.attribute(management.words.broker_resource, management.words.clock))
    except JMSError:
        return None
    return before, there, time.time() * 1000
