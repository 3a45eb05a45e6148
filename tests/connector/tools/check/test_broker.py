from contextlib import closing

import pytest

from pyspark_jms.stomp.dialects import ARTEMIS, CLASSIC, RABBITMQ
from pyspark_jms.stomp.link.connection import connect
from pyspark_jms.stomp.link.management import StompManagementLink
from pyspark_jms.tools.check.broker import (
    clock_finding,
    guarantee_findings,
    open_management,
    read_clock,
    stomp_findings,
)
from pyspark_jms.tools.check.findings import Verdict


def test_the_broker_is_identified(broker, settings_for, named):
    with closing(connect(settings_for(broker))) as link:
        assert link.dialect is ARTEMIS
    findings = named(stomp_findings(link, broker.user))
    assert findings["connection"].value == f"{broker.url}, as {broker.user}"
    assert findings["broker"].value.startswith("ActiveMQ-Artemis/2.")
    assert "without a user" in named(stomp_findings(link, None))["connection"].value


def test_management_permitted_and_not(guarded, settings_for):
    link, finding = open_management(StompManagementLink, settings_for(guarded))
    assert finding.verdict is Verdict.FINE
    assert link.attribute("queue.DLQ", "messageCount") == 0
    link.close()
    link, finding = open_management(StompManagementLink, settings_for(guarded, user="worker"))
    assert link is None
    assert finding.verdict is Verdict.NOTE
    assert "worker" in finding.value
    assert "manage" in finding.advice


def test_the_clock_of_the_broker_is_read_with_management(broker, open_link):
    before, there, after = read_clock(open_link(broker))
    assert before - 1_000 < there < after + 1_000


@pytest.mark.parametrize(
    ("clock", "verdict", "ahead"),
    [
        ((1_000, 1_500, 2_000), Verdict.FINE, 0),  # between the two times: no difference
        ((1_000, 2_900, 2_000), Verdict.FINE, 900),
        ((1_000, 100, 2_000), Verdict.FINE, -900),
        ((1_000, 3_001, 2_000), Verdict.PROBLEM, 1_001),
        ((5_000, 1_000, 6_000), Verdict.PROBLEM, -4_000),
    ],
)
def test_clocks(clock, verdict, ahead):
    finding = clock_finding(clock)
    assert (finding.verdict, finding.details) == (verdict, {"aheadMilliseconds": ahead})
    if verdict is Verdict.PROBLEM:
        assert f"{abs(ahead) / 1000:.1f} s {'ahead of' if ahead > 0 else 'behind'}" in finding.value


def test_no_clock():
    assert clock_finding(None).verdict is Verdict.NOTE


@pytest.mark.parametrize(("dialect", "journal"), [(ARTEMIS, "exactly-once"), (RABBITMQ, "at-least-once")])
def test_guarantees_of_each_mode(named, dialect, journal):
    found = named(guarantee_findings(dialect))
    assert found["reading"].value == "at-least-once"
    assert found["writing"].value.startswith("at-least-once")
    assert "amqp://" in found["writing, ledger"].advice
    for name, guarantee in (("reading, journal", journal), ("writing, ledger", "at-least-once")):
        assert found[name].value.startswith(guarantee)
        assert (found[name].verdict is Verdict.NOTE) == (guarantee == "at-least-once")


def test_a_broker_without_transactions(named):
    found = named(guarantee_findings(RABBITMQ))["writing"]
    assert found.verdict is Verdict.NOTE
    assert "transaction=none" in found.advice


@pytest.mark.parametrize(("dialect", "fact"), [(ARTEMIS, "several queries"), (CLASSIC, "one query")])
def test_how_many_queries_can_read_a_durable_subscription(named, dialect, fact):
    assert fact in named(guarantee_findings(dialect))["topics"].value
