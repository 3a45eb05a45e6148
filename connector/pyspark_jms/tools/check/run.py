"""The trials of a check in their order, and what each needs. An error that ends them is a finding, too."""

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from pyspark_jms.amqp.link.read_register import DEFAULT_PREFIX, RegisterName
from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.management.link import ManagementLink
from pyspark_jms.management.queue_facts import facts_with_settings, queue_facts
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.sentences import counted
from pyspark_jms.source.links import SourceProtocol
from pyspark_jms.source.queues import tried_out
from pyspark_jms.stomp.link.connection import connect
from pyspark_jms.stomp.source import StompSource
from pyspark_jms.tools.check.amqp import amqp_findings, described_queue
from pyspark_jms.tools.check.broker import broker_findings, clock_finding, guarantee_findings, open_management
from pyspark_jms.tools.check.conformance.queue import ConformanceQueue
from pyspark_jms.tools.check.exactly_once import ExactlyOnce
from pyspark_jms.tools.check.findings import Finding, Trial, Verdict
from pyspark_jms.tools.check.queue import (
    counts_finding,
    fact_findings,
    inspected_queue,
    name_finding,
    paging_findings,
    queue_findings,
)
from pyspark_jms.tools.check.receive import receive_findings
from pyspark_jms.tools.check.scratch import SCRATCH_QUEUE, Clock, scratch_findings
from pyspark_jms.tools.registers import queue_in, registers_in, staged_in

__all__ = ["Check", "run_checks"]

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


@dataclass(kw_only=True)
class Check:
    """What is asked for, and what the trials find out for those that follow."""

    settings: ConnectionSettings
    queue: str = ""
    """Without a name, only the broker is checked."""
    limit: int = 10_000
    """Maximum messages in delivery to list, and maximum messages to receive."""
    receive: bool = False
    """Receive the messages of the queue and give them back."""
    scratch_queue: str = SCRATCH_QUEUE
    staging_queue: str | None = None
    """Over AMQP, the queue of a read with option ``stagingQueue``."""

    management: Any = None
    """A ``ManagementLink``, if the user has the permission."""
    inspected: Any = None
    """The ``Queue``, if the broker's management lists its messages."""
    dialect: Any = None
    clock: Clock | None = None
    """What messages have shown of the broker's clock."""

    def __post_init__(self) -> None:
        self.amqp = self.settings.protocol == "amqp"
        self.stomp = not self.amqp
        self.protocol: SourceProtocol = AmqpSource() if self.amqp else StompSource()
        self.exactly_once = ExactlyOnce(self.settings)


def run_checks(check: Check) -> list[Finding]:
    """Run the trials and return their findings. An error of the broker is a finding and not raised."""
    findings: list[Finding] = []
    try:
        for trial in _TRIALS:
            for finding in trial.findings(check):
                findings.append(finding)  # noqa: PERF402 - those before an error are kept
    except JMSError as error:
        findings.append(Finding.of_end("check" if findings else "connection", error))
    finally:
        if check.management is not None:
            check.management.close()
    return findings


# --- the broker --------------------------------------------------------------------------------------


def _broker(check: Check) -> Iterator[Finding]:
    with closing(connect(check.settings)) as connection:
        check.dialect = connection.dialect
        yield from broker_findings(connection, check.settings.user)


def _management(check: Check) -> Iterator[Finding]:
    check.management, finding = open_management(check.protocol.open_management, check.settings)
    yield finding


def _scratch_queue(check: Check) -> Iterator[Finding]:
    queue = ConformanceQueue(check.settings, check.scratch_queue)
    queue.uses_transactions = check.dialect.has_transactions
    clock = yield from scratch_findings(queue)
    if "JMSTimestamp" not in check.dialect.send_headers:  # else the sink states the time of this machine
        check.clock = clock


def _read_clock(management: ManagementLink | None) -> tuple[float, float, float] | None:
    if management is None:
        return None
    before = time.time() * 1000
    try:
        there = float(management.attribute(management.words.broker_resource, management.words.clock))
    except JMSError:
        return None
    return before, there, time.time() * 1000


# --- a queue -----------------------------------------------------------------------------------------


def _name(check: Check) -> Iterator[Finding]:
    """Refuse the name of a topic; what follows then asks nothing about it."""
    if refused := name_finding(check.management, check.queue):
        check.queue = ""
        yield refused


def _queue(check: Check) -> Iterator[Finding]:
    management = check.management
    check.inspected = management and inspected_queue(management, check.queue)
    if check.inspected:
        yield from queue_findings(check.inspected, check.limit)
    elif check.stomp:
        yield replace(_NOT_INSPECTED, advice=_LOSES_BODIES)
    elif management is None:
        yield described_queue(check.settings, check.queue) or _NOT_INSPECTED
    else:
        yield counts_finding(queue_facts(management, [check.queue])[check.queue])


def _facts(check: Check, features: Iterable[Feature]) -> Iterator[Finding]:
    found = facts_with_settings(check.management, [check.queue])
    for facts in tried_out(list(found.values()), check.protocol, check.settings):
        yield from fact_findings(facts, features)


def _staged(check: Check) -> Iterator[Finding]:
    """The messages of the queue that exactly-once reads have moved to their staging queues."""
    for name in _registers(check.management, check.staging_queue):
        if (finding := _finding_of_reader(check.settings, name, check.queue)) is not None:
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


def _finding_of_reader(settings: ConnectionSettings, name: RegisterName, queue: str) -> Finding | None:
    try:
        counts, batch = staged_in(settings, name)
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


def _staged_over_stomp(check: Check) -> Iterator[Finding]:
    """Over STOMP nobody can see whose messages a staging queue has."""
    used = len(_registers(check.management, None))
    depth = queue_facts(check.management, [check.queue])[check.queue].messages
    if used and not depth:
        yield Finding(
            name="staged",
            value=f"the queue is empty; {counted(used, 'staging queue')} of exactly-once reads with messages",
            verdict=Verdict.NOTE,
            advice="They may be messages of this queue. Check it over AMQP, which shows them:"
            " --broker-url amqp://HOST:5672.",
        )


def _received(check: Check) -> Iterator[Finding]:
    listed = None if check.amqp else check.inspected  # over AMQP every message arrives, with its body
    yield from receive_findings(
        check.protocol, check.settings, check.queue, check.limit, listed, loses_bodies=check.stomp
    )


# --- the trials --------------------------------------------------------------------------------------

_TRIALS = (
    Trial("connection", ("amqp",), lambda it: amqp_findings(it.settings, it.scratch_queue)),
    Trial("connection", ("stomp",), _broker),
    Trial("staging queue of the check", ("amqp",), lambda it: [it.exactly_once.reading()]),
    Trial("staging queue", ("amqp", "staging_queue"), lambda it: [it.exactly_once.staging_queue(it.staging_queue)]),
    Trial("commit ledger", ("amqp",), lambda it: [it.exactly_once.writing()]),
    Trial("management", (), _management),
    Trial("settings of addresses", ("amqp",), lambda it: it.exactly_once.settings(it.management)),
    Trial("scratch queue", ("stomp",), _scratch_queue),
    Trial("clock", (), lambda it: [clock_finding(it.clock or _read_clock(it.management))]),
    Trial("guarantees", ("stomp",), lambda it: guarantee_findings(it.dialect)),
    Trial("name of the queue", ("queue", "management"), _name),
    Trial("queue", ("queue",), _queue),
    Trial("facts of the queue", ("amqp", "queue", "inspected"), lambda it: _facts(it, _OVER_AMQP)),
    Trial("facts of the queue", ("stomp", "queue", "management"), lambda it: _facts(it, _OVER_STOMP)),
    Trial("paging", ("amqp", "queue", "inspected"), lambda it: paging_findings(it.inspected)),
    Trial("staged messages", ("amqp", "queue", "management"), _staged),
    Trial("staged messages", ("stomp", "queue", "management"), _staged_over_stomp),
    Trial("received messages", ("queue", "receive"), _received),
)
