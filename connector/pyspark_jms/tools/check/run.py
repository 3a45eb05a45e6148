"""Runs the checks in order, each on its own connections. An error that ends them is a finding, too."""

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyspark_jms.amqp.link.management import open_amqp_management
from pyspark_jms.amqp.link.read_register import DEFAULT_PREFIX, RegisterName
from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.errors import InvalidDestinationError, JMSError
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.management.link import ManagementLink
from pyspark_jms.management.queue_facts import facts_with_settings, queue_facts
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.sentences import counted
from pyspark_jms.source.links import SourceProtocol
from pyspark_jms.source.queues import tried_out
from pyspark_jms.stomp.link.management import StompManagementLink
from pyspark_jms.stomp.source import StompSource
from pyspark_jms.tools.check.amqp import amqp_findings, described_queue
from pyspark_jms.tools.check.broker import (
    broker_findings,
    clock_finding,
    guarantee_findings,
    identify_broker,
    open_management,
)
from pyspark_jms.tools.check.conformance.queue import ConformanceQueue
from pyspark_jms.tools.check.exactly_once import ExactlyOnce
from pyspark_jms.tools.check.findings import Finding, Verdict
from pyspark_jms.tools.check.queue import (
    counts_finding,
    fact_findings,
    inspected_queue,
    name_finding,
    paging_finding,
    queue_findings,
)
from pyspark_jms.tools.check.receive import receive_findings
from pyspark_jms.tools.check.scratch import SCRATCH_QUEUE, scratch_findings
from pyspark_jms.tools.registers import queue_in, registers_in, staged_in

__all__ = ["CheckRequest", "run_checks"]

_NOT_INSPECTED = Finding(
    name="queue",
    value="not inspected: the broker did not answer this user's management requests, or has no management here",
    verdict=Verdict.NOTE,
)
_OWN = {Feature.STAGING_QUEUE, Feature.COMMIT_LEDGER}
_OVER_AMQP = [each for each in Feature if each not in _OWN | {Feature.JOURNAL}]
_OVER_STOMP = [each for each in Feature if each not in _OWN | {Feature.REGISTER, Feature.EXACTLY_ONCE_WRITE}]
_LOSES_BODIES = (
    "--receive receives the messages and gives them back. It counts Map and Object messages as empty texts and misses"
    " some Stream messages."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    settings: ConnectionSettings
    queue: str | None = None
    """The queue, or None to check only the broker."""
    limit: int = 10_000
    """Maximum messages in delivery to list, and maximum messages to receive."""
    receive: bool = False
    """Receive the messages of the queue and give them back."""
    scratch_queue: str = SCRATCH_QUEUE
    staging_queue: str | None = None
    """Over AMQP, the queue of a read with option ``stagingQueue``."""


def run_checks(request: CheckRequest) -> list[Finding]:
    """Run the checks and return their findings. An error of the broker is a finding and not raised."""
    findings: list[Finding] = []
    try:
        for finding in _checks(request):
            findings.append(finding)  # noqa: PERF402 - those before an error are kept
    except JMSError as error:
        findings.append(Finding.of_end("check" if findings else "connection", error))
    return findings


def _checks(request: CheckRequest) -> Iterator[Finding]:
    if request.settings.protocol == "amqp":
        yield from _amqp_checks(request)
    else:
        yield from _stomp_checks(request)


def _amqp_checks(request: CheckRequest) -> Iterator[Finding]:
    yield from amqp_findings(request.settings, request.scratch_queue)
    exactly_once = ExactlyOnce(request.settings)
    yield exactly_once.reading()
    if request.staging_queue is not None:
        yield exactly_once.staging_queue(request.staging_queue)
    yield exactly_once.writing()
    with ExitStack() as stack:
        management, finding = open_management(open_amqp_management, request.settings)
        if management is not None:
            stack.enter_context(management)
        yield finding
        yield from exactly_once.settings(management)
        yield clock_finding(_read_clock(management))
        if (refused := _refused_name(management, request)) is not None:
            yield refused
        elif request.queue is not None:
            yield from _amqp_queue_findings(management, request, request.queue)
            if management is not None:
                yield from _staged_findings(management, request, request.queue)
            if request.receive:
                yield from receive_findings(
                    AmqpSource(), request.settings, request.queue, request.limit, None, loses_bodies=False
                )


def _refused_name(management: ManagementLink | None, request: CheckRequest) -> Finding | None:
    return None if management is None or request.queue is None else name_finding(management, request.queue)


def _amqp_queue_findings(management: ManagementLink | None, request: CheckRequest, queue: str) -> Iterator[Finding]:
    if management is None:
        yield described_queue(request.settings, queue) or _NOT_INSPECTED
    elif (inspected := inspected_queue(management, queue)) is not None:
        yield from queue_findings(inspected, request.limit)
        yield from _fact_findings(management, AmqpSource(), request.settings, queue, _OVER_AMQP)
        if (paging := paging_finding(inspected)) is not None:
            yield paging
    else:
        yield counts_finding(queue_facts(management, [queue])[queue])


def _fact_findings(
    management: ManagementLink,
    protocol: SourceProtocol,
    settings: ConnectionSettings,
    queue: str,
    features: Iterable[Feature],
) -> Iterator[Finding]:
    for facts in tried_out(list(facts_with_settings(management, [queue]).values()), protocol, settings):
        yield from fact_findings(facts, features)


def _staged_findings(management: ManagementLink, request: CheckRequest, queue: str) -> Iterator[Finding]:
    """The messages of the queue that exactly-once reads have moved to their staging queues."""
    for name in _registers(management, request.staging_queue):
        if (finding := _finding_of_reader(request, name, queue)) is not None:
            yield finding


def _registers(management: ManagementLink, also: str | None) -> list[RegisterName]:
    """Staging queues that have more than their token, those of option ``stagingQueue`` too."""
    words = management.words
    if words.queue_names is None:
        return []
    queues = management.attribute(words.broker_resource, words.queue_names)
    names = {*registers_in(queues, DEFAULT_PREFIX)}
    names |= {each for each in registers_in(queues, also or DEFAULT_PREFIX) if each.base == also}
    found = {each: queue_in(management, each) for each in names}
    counts = {
        each: management.queue_attribute(management.queue_name(queue), words.queue.messages)
        for each, queue in found.items()
        if queue
    }
    return sorted((each for each, count in counts.items() if count > 1), key=str)


def _finding_of_reader(request: CheckRequest, name: RegisterName, queue: str) -> Finding | None:
    try:
        counts, batch = staged_in(request.settings, name)
    except JMSError as error:
        return Finding.of_error("staged", error)
    staged = counts[str(Destination(DestinationKind.QUEUE, queue))]
    if not staged:
        return None
    return Finding(
        name="staged",
        value=f"{counted(staged, 'more message')} of this queue in the staging queue {name.address}, of batch {batch}",
        advice="An exactly-once read has taken them. If this batch is in the commit log of its"
        " checkpoint, they are done, and the next batch deletes them. If no query uses the staging queue (pyspark-jms"
        " staging list), start the query again with its checkpoint.",
        details={"stagingQueue": name.address, "staged": staged, "batch": batch, "reader": name.reader},
    )


def _stomp_staged_finding(management: ManagementLink, queue: str) -> Finding | None:
    """Over STOMP nobody can see whose messages a staging queue has."""
    used = len(_registers(management, None))
    try:
        depth = int(management.queue_attribute(management.queue_name(queue), management.words.queue.messages))
    except InvalidDestinationError:
        depth = 0
    if not used or depth:
        return None
    return Finding(
        name="staged",
        value=f"the queue is empty; {counted(used, 'staging queue')} of exactly-once reads with messages",
        verdict=Verdict.NOTE,
        advice="They may be messages of this queue. Check it over AMQP, which shows them: --broker-url amqp://HOST:5672.",
    )


def _stomp_checks(request: CheckRequest) -> Iterator[Finding]:
    found = identify_broker(request.settings)
    yield from broker_findings(found, request.settings.user)
    with ExitStack() as stack:
        management, finding = open_management(StompManagementLink, request.settings)
        if management is not None:
            stack.enter_context(management)
        yield finding
        scratch = ConformanceQueue(request.settings, request.scratch_queue)
        scratch.uses_transactions = found.dialect.has_transactions
        clock = yield from scratch_findings(scratch)
        if "JMSTimestamp" in found.dialect.send_headers:  # the sink states the time of this machine
            clock = None
        yield clock_finding(clock or _read_clock(management))
        yield from guarantee_findings(found.dialect)
        if (refused := _refused_name(management, request)) is not None:
            yield refused
        elif request.queue is not None:
            inspected = None if management is None else inspected_queue(management, request.queue)
            uninspected = [replace(_NOT_INSPECTED, advice=_LOSES_BODIES)]
            yield from uninspected if inspected is None else queue_findings(inspected, request.limit)
            if management is not None:
                yield from _fact_findings(management, StompSource(), request.settings, request.queue, _OVER_STOMP)
            if management is not None and (staged := _stomp_staged_finding(management, request.queue)) is not None:
                yield staged
            if request.receive:
                yield from receive_findings(
                    StompSource(), request.settings, request.queue, request.limit, inspected, loses_bodies=True
                )


def _read_clock(management: ManagementLink | None) -> tuple[float, float, float] | None:
    if management is None:
        return None
    before = time.time() * 1000
    try:
        there = float(management.attribute(management.words.broker_resource, management.words.clock))
    except JMSError:
        return None
    return before, there, time.time() * 1000
