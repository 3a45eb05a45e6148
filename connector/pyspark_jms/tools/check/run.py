"""The trials of a check in their order, and what each needs: those that inspect, and those of ``--conformance``.

A conformance trial sends messages, and looks at what arrives: an answer of the broker is no proof. Its finding is fine
if the broker does what the dialect says, a note where the broker or the dialect lacks something, and a problem where a
query would lose or change messages. An error that ends a trial is a finding, too.
"""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pyspark_jms import __version__
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
from pyspark_jms.stomp.link.connection import connect
from pyspark_jms.stomp.source import StompSource
from pyspark_jms.tools.check import trials
from pyspark_jms.tools.check.broker import (
    amqp_findings,
    clock_finding,
    described_queue,
    guarantee_findings,
    open_management,
    read_clock,
    stomp_findings,
)
from pyspark_jms.tools.check.exactly_once import ExactlyOnce
from pyspark_jms.tools.check.findings import Finding, Verdict, note
from pyspark_jms.tools.check.queue import (
    Queue,
    counts_finding,
    fact_findings,
    name_finding,
    paging_findings,
    queue_findings,
)
from pyspark_jms.tools.check.receive import receive_findings
from pyspark_jms.tools.check.scratch_queue import EndedEarly, ScratchQueue
from pyspark_jms.tools.registers import queue_in, registers_in, staged_in

__all__ = ["SCRATCH_QUEUE", "Check", "run_checks"]

SCRATCH_QUEUE = "pyspark-jms.check"
"""All runs use one name, because the broker may keep an auto-created queue for ever."""

_NOT_INSPECTED = note(
    "queue", "not inspected: the broker did not answer this user's management requests, or has no management here"
)
_OWN = {Feature.STAGING_QUEUE, Feature.COMMIT_LEDGER}
_OVER_AMQP = [each for each in Feature if each not in _OWN | {Feature.JOURNAL}]
_OVER_STOMP = [each for each in Feature if each not in _OWN | {Feature.REGISTER, Feature.EXACTLY_ONCE_WRITE}]
_LOSES_BODIES = (
    "--receive receives the messages and gives them back. It counts Map and Object messages as empty texts and misses"
    " some Stream messages."
)
_STAGED = (
    "An exactly-once read has taken them. If this batch is in the commit log of its checkpoint, they are done, and the"
    " next batch deletes them. If no query uses the staging queue (pyspark-jms staging list), start the query again"
    " with its checkpoint."
)
_CANNOT_CREATE = (
    "Permit this user to create queues, or name a queue that the user can read and write with --scratch-queue."
)
_NOT_ALONE = "Name a queue that nothing else uses, or leave out --queue."


@dataclass(kw_only=True)
class Check:
    """What is asked for, and what the trials find out for those that follow."""

    settings: ConnectionSettings
    queue: str = ""
    """The queue to inspect. Without a name, only the broker is checked."""
    limit: int = 10_000
    """Maximum messages in delivery to list, and maximum messages to receive."""
    receive: bool = False
    """Receive the messages of the queue and give them back."""
    scratch_queue: str = SCRATCH_QUEUE
    """The queue of test messages, which is empty afterwards."""
    staging_queue: str = ""
    """Over AMQP, the queue of a read with option ``stagingQueue``."""
    conformance: bool = False
    """Inspect nothing, and find out with messages what the broker does."""
    is_new: bool = False
    """The name of the scratch queue was made for this run, so its queue is deleted at the end."""

    management: Any = None
    """A ``ManagementLink``, if the user has the permission."""
    inspected: Any = None
    """The ``Queue``, if the broker's management lists its messages, and not only the metrics of a queue."""
    title: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    """With ``title``: what the report of ``conformance`` begins with."""

    def __post_init__(self) -> None:
        self.amqp = self.settings.protocol == "amqp"
        self.stomp = not self.amqp
        self.protocol: SourceProtocol = AmqpSource() if self.amqp else StompSource()
        self.exactly_once = ExactlyOnce(self.settings)
        self.scratch = ScratchQueue(self.settings, self.scratch_queue)


class Trial(NamedTuple):
    feature: str
    needs: tuple[str, ...]
    """Fields of the check: the trial is left out if one of them is empty."""
    run: Callable[[Check], Iterable[Finding]]


def run_checks(check: Check) -> list[Finding]:
    """Run the trials and return their findings. An error of the broker is a finding and not raised.

    With ``conformance``, an error of the first connection is raised, and that the queue has other messages.
    """
    return _conformance(check) if check.conformance else _run_trials(check)


def _run_trials(check: Check) -> list[Finding]:
    findings: list[Finding] = []
    left = deque(trial for trial in _TRIALS if ("conformance" in trial.needs) == check.conformance)
    try:
        while left and _goes_on(left[0], check, findings):
            left.popleft()
    except EndedEarly as end:
        untried = ", ".join(trial.feature for trial in left)
        findings.append(Finding("ended", f"{end}. Without a result: {untried}", Verdict.ENDED, _NOT_ALONE))
        with contextlib.suppress(JMSError, EndedEarly):
            check.scratch.remove_own()
    finally:
        if check.management is not None:
            check.management.close()
    return findings


def _goes_on(trial: Trial, check: Check, findings: list[Finding]) -> bool:
    """Run one trial if it has what it needs, and add its findings. Return False if its error ends the check: trials
    that inspect build on each other. ``EndedEarly``: another program uses the scratch queue, so nothing is added.
    """
    if not all(getattr(check, each) for each in trial.needs):
        return True
    found: list[Finding] = []
    goes_on = True
    try:
        for finding in trial.run(check):
            found.append(finding)  # noqa: PERF402 - those before an error are kept
    except JMSError as error:
        found.append(Finding.of_end(trial.feature, error))
        goes_on = check.conformance
    if check.conformance:
        with contextlib.suppress(JMSError):
            check.scratch.remove_own()
            check.scratch.require_alone()
    findings += found
    return goes_on


# --- the broker --------------------------------------------------------------------------------------


def _broker(check: Check) -> Iterator[Finding]:
    with closing(connect(check.settings)) as connection:
        check.scratch.dialect = connection.dialect
        yield from stomp_findings(connection, check.settings.user)


def _management(check: Check) -> Iterator[Finding]:
    check.management, finding = open_management(check.protocol.open_management, check.settings)
    yield finding


def _scratch_queue(check: Check) -> Iterator[Finding]:
    """Send messages over STOMP. The first error ends it; usually the user cannot create the queue."""
    queue = check.scratch
    queue.uses_transactions = queue.dialect.has_transactions
    try:
        queue.look_up()
    except InvalidDestinationError as error:
        yield Finding.of_error("scratch queue", error, Verdict.PROBLEM)
        return
    try:
        yield from trials.body_rule(queue)
        yield from trials.window(queue)
    except EndedEarly as end:
        advice = "Let no other program use this queue, and remove what an interrupted check has left there."
        with contextlib.suppress(JMSError, EndedEarly):
            queue.remove_own()
        yield note("scratch queue", str(end), advice)
    except JMSError as error:
        yield Finding.of_error("scratch queue", error, remedy=f"{error.remedy} {_CANNOT_CREATE}")


def _clock(check: Check) -> Iterator[Finding]:
    seen = check.scratch.clock
    if seen is not None and "JMSTimestamp" in check.scratch.dialect.send_headers:
        seen = None  # the sink has stated the time of this machine
    yield clock_finding(seen or read_clock(check.management))


# --- a queue -----------------------------------------------------------------------------------------


def _name(check: Check) -> Iterator[Finding]:
    """Refuse the name of a topic; what follows then asks nothing about it."""
    if refused := name_finding(check.management, check.queue):
        check.queue = ""
        yield refused


def _queue(check: Check) -> Iterator[Finding]:
    management = check.management
    check.inspected = Queue(management, check.queue) if management and management.words.inspects else None
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
    """Yield the messages of the queue that exactly-once reads have moved to their staging queues."""
    for name in _registers(check.management, check.staging_queue):
        try:
            counts, batch = staged_in(check.settings, name)
        except JMSError as error:
            yield Finding.of_error("staged", error)
            continue
        if staged := counts[str(Destination(DestinationKind.QUEUE, check.queue))]:
            more = f"{counted(staged, 'more message')} of this queue"
            details = {"stagingQueue": name.address, "staged": staged, "batch": batch, "reader": name.reader}
            value = f"{more} in the staging queue {name.address}, of batch {batch}"
            yield Finding("staged", value, advice=_STAGED, details=details)


def _registers(management: ManagementLink, also: str) -> list[RegisterName]:
    """Return staging queues that have more than their token, those of option ``stagingQueue`` too."""
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


def _staged_over_stomp(check: Check) -> Iterator[Finding]:
    """Over STOMP nobody can see whose messages a staging queue has."""
    used = len(_registers(check.management, ""))
    depth = queue_facts(check.management, [check.queue])[check.queue].messages
    if used and not depth:
        yield note(
            "staged",
            f"the queue is empty; {counted(used, 'staging queue')} of exactly-once reads with messages",
            "They may be messages of this queue. Check it over AMQP, which shows them: --broker-url amqp://HOST:5672.",
        )


def _received(check: Check) -> Iterator[Finding]:
    listed = None if check.amqp else check.inspected  # over AMQP every message arrives, with its body
    yield from receive_findings(
        check.protocol, check.settings, check.queue, check.limit, listed, loses_bodies=check.stomp
    )


# --- what a broker does ------------------------------------------------------------------------------


def _conformance(check: Check) -> list[Finding]:
    """Find out which broker it is, and run the trials. No finding has the broker's address."""
    began, queue = time.monotonic(), check.scratch
    with closing(queue.connect_reader()) as link:
        server, queue.dialect, address = link.server or "", link.dialect, str(link.address)
        capabilities = ", ".join(sorted(link.connection.capabilities)) if check.amqp else ""
    try:
        queue.require_no_consumers()
        queue.require_alone()
    except EndedEarly as end:
        raise InvalidDestinationError(f"No test has run: {end}.", _NOT_ALONE) from None
    findings = _run_trials(check)
    queue.delete(queue.missing, *([queue.name] if check.is_new else []))
    protocol = "AMQP 1.0" if check.amqp else "STOMP 1.2"
    check.title = f"Conformance of {server or 'a broker'} over {protocol}"
    check.facts = {
        "connector": f"pyspark-jms {__version__}",
        "broker": server or "names no product",
        "protocol": protocol,
        "dialect": f"`{queue.dialect.name}`",
        "capabilities": capabilities or "none",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "duration": f"{time.monotonic() - began:.0f} s",
    }
    return [_without(address, each) for each in findings]


def _without(address: str, finding: Finding) -> Finding:
    value, advice = (text.replace(address, "the broker") for text in (finding.value, finding.advice))
    return replace(finding, value=value, advice=advice)


def _tried(feature: str, run: Callable[[ScratchQueue], Iterable[Finding]], *needs: str) -> Trial:
    return Trial(feature, ("conformance", *needs), lambda check: run(check.scratch))


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
    Trial("clock", (), _clock),
    Trial("guarantees", ("stomp",), lambda it: guarantee_findings(it.scratch.dialect)),
    Trial("name of the queue", ("queue", "management"), _name),
    Trial("queue", ("queue",), _queue),
    Trial("facts of the queue", ("amqp", "queue", "inspected"), lambda it: _facts(it, _OVER_AMQP)),
    Trial("facts of the queue", ("stomp", "queue", "management"), lambda it: _facts(it, _OVER_STOMP)),
    Trial("paging", ("amqp", "queue", "inspected"), lambda it: paging_findings(it.inspected)),
    Trial("staged messages", ("amqp", "queue", "management"), _staged),
    Trial("staged messages", ("stomp", "queue", "management"), _staged_over_stomp),
    Trial("received messages", ("queue", "receive"), _received),
    _tried("transactions", trials.transactions),
    _tried("bodies", trials.bodies),
    _tried("headers and properties", trials.headers_and_properties),
    _tried("large message", trials.large_message),
    _tried("selector", trials.selector),
    _tried("browse", trials.browse),
    _tried("end of queue", trials.end_of_queue, "amqp"),
    _tried("acknowledgements", trials.acknowledgements),
    _tried("missing queue", trials.missing_queue),
)
