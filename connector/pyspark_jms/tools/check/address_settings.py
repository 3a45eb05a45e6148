"""The settings of the addresses in which exactly-once queries keep their state over AMQP -> a finding. Does no I/O.

A broker with a harmful setting confirms every request, and deletes or withholds messages later.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark_jms.jms.features import Feature
from pyspark_jms.management.queue_facts import QueueFacts, with_settings
from pyspark_jms.management.queue_rules import Effect, judge, patience_for
from pyspark_jms.tools.check.findings import Finding, Verdict, note, problem

__all__ = ["UNDETECTING_ACCEPTORS", "AddressNeeds", "settings_finding"]

UNDETECTING_ACCEPTORS = "undetectingAcceptors"
"""A key beside those of Artemis: the acceptors that ignore duplicate ids."""


@dataclass(frozen=True, slots=True)
class AddressNeeds:
    """What is kept in addresses of one prefix, and what it needs of their settings."""

    name: str
    """The name of the finding."""

    feature: Feature
    """What they are to the table of queue facts."""

    match: str
    """The addresses, as in the broker's configuration."""

    patience: float | None = None
    """Seconds that a query waits for its token; None: those of ``queue_rules.PATIENCE``."""

    has_first_token: bool = False
    """True: the broker must drop a second first token, by its duplicate id."""


def settings_finding(
    needs: AddressNeeds, shown: Iterable[Mapping[str, Any]], found: Iterable[QueueFacts] = ()
) -> Finding:
    """``shown``: the settings of each address, as the broker's management shows them, and those of the broker's cache
    of duplicate ids. ``found``: the queues that are there.
    """
    every = list(shown)
    would_be = [with_settings(QueueFacts(name=needs.match, exists=False), each) for each in every]
    of_queues = [fault for facts in [*would_be, *found] for fault in _faults_of_queue(needs, facts)]
    others = [fault for facts, each in zip(would_be, every, strict=True) for fault in _others(needs, facts, each)]
    faults = list(dict.fromkeys([*of_queues, *others]))
    details = {"addresses": needs.match, "settings": every}
    if not faults:
        return Finding(needs.name, f"the broker keeps what queries store in {needs.match}", details=details)
    value = f"{needs.match}: {'; '.join(fault.value for fault in faults)}"
    advice = f"In the address-setting of {needs.match}: {'; '.join(fault.advice for fault in faults)}."
    is_problem = any(fault.verdict is Verdict.PROBLEM for fault in faults)
    return (problem if is_problem else note)(needs.name, value, advice, details)


def _faults_of_queue(needs: AddressNeeds, facts: QueueFacts) -> Iterator[Finding]:
    for each in judge(facts, needs.feature, patience=needs.patience):
        fault = problem if each.effect is Effect.REFUSE else note
        yield fault(needs.name, f"a queue there {each.sentence}", each.remedy)


def _others(needs: AddressNeeds, facts: QueueFacts, settings: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what no query refuses."""
    if facts.max_delivery_attempts and not facts.dead_letter_address:
        yield note(
            needs.name,
            f"there is no dead-letter-address, so a token is deleted after {facts.max_delivery_attempts} deliveries",
            "set a dead-letter-address, from which the token can be moved back",
        )
    if 0 < (facts.redelivery_delay or 0) < patience_for(needs.feature, needs.patience):
        yield note(
            needs.name,
            f"redelivery-delay is up to {facts.redelivery_delay:g} s, for which a restart after a crash may wait",
            "set redelivery-delay to 0",
        )
    if needs.has_first_token:
        yield from _id_cache(needs, settings)


def _id_cache(needs: AddressNeeds, settings: Mapping[str, Any]) -> Iterator[Finding]:
    """One id is enough: only first tokens have one. A negative size is no limit."""
    harm = "so a batch whose token is lost is written again"
    if acceptors := ", ".join(settings.get(UNDETECTING_ACCEPTORS, ())):
        yield note(
            needs.name,  # whether the query uses such an acceptor, the trial of the ledger finds out
            f"amqpDuplicateDetection is false at acceptor {acceptors}, {harm} by clients of this acceptor",
            "remove amqpDuplicateDetection from the acceptor in broker.xml",
        )
    if int(settings.get("idCacheSize", 1)) == 0:
        yield problem(needs.name, f"id-cache-size is 0, {harm}", "set id-cache-size to 20000, the broker's default")
    elif not settings.get("persistIDCache", True):
        yield problem(
            needs.name,
            f"persist-id-cache is false, {harm} after a restart of the broker",
            "remove persist-id-cache from the core element of broker.xml",
        )
