"""All checks in a row, by users of every kind."""

import json

import pytest
from amqp_sending import put
from rawstomp import RawStomp
from waiting import await_count

from pyspark_jms.network.address import Address, parse_broker_url
from pyspark_jms.testing import JmsClient
from pyspark_jms.tools.check import run
from pyspark_jms.tools.check.conformance import run as conformance
from pyspark_jms.tools.check.conformance.queue import ConformanceQueue
from pyspark_jms.tools.check.findings import Verdict, failed
from pyspark_jms.tools.check.run import Check, _read_clock, run_checks

BROKER_ROWS = ["connection", "broker", "management"]
TESTS = ["body rule", "window"]
GUARANTEES = ["clock", "reading", "reading, journal", "writing", "writing, ledger", "topics"]


@pytest.mark.broker
def test_the_broker_alone(broker, settings_for):
    found = run_checks(Check(settings=settings_for(broker)))
    assert [finding.name for finding in found] == BROKER_ROWS + TESTS + GUARANTEES
    noted = {finding.name: finding.verdict for finding in found if finding.verdict is not Verdict.FINE}
    assert noted == {"writing, ledger": Verdict.NOTE}, "over STOMP it is at-least-once"


@pytest.mark.broker
def test_a_queue_that_is_received_and_given_back(broker, queue, settings_for):
    with JmsClient(broker) as java:
        java.send(queue, "text")
        java.send(queue, [1])
    found = run_checks(Check(settings=settings_for(broker), queue=queue, receive=True))
    assert [finding.name for finding in found][len(BROKER_ROWS + TESTS + GUARANTEES) :] == [
        "queue", "body types", "dead letters", "received", "bodies delivered", "not received"
    ]  # fmt: skip
    assert failed(found)
    await_count(broker, queue, 2)


@pytest.mark.broker
def test_a_user_with_the_permissions_for_one_queue(guarded, queue, settings_for, named):
    guarded.create_queue(queue)
    with RawStomp(guarded) as client:
        client.send(queue, [([], "text")])
    settings = settings_for(guarded, user="worker")
    found = run_checks(Check(settings=settings, queue=queue, receive=True, scratch_queue=f"{queue}.scratch"))
    rows = named(found)
    assert [*rows] == [*BROKER_ROWS, "scratch queue", *GUARANTEES, "queue", "received"]
    assert not failed(found)
    assert rows["clock"].verdict is Verdict.NOTE
    assert rows["queue"].verdict is Verdict.NOTE
    assert rows["received"].details["received"] == 1


@pytest.mark.broker
def test_the_clock_of_the_broker_is_read_with_management(broker, queue, settings_for, open_link):
    before, there, after = _read_clock(open_link(broker))
    assert before - 1_000 < there < after + 1_000


def test_an_unreachable_broker(settings_for):
    settings = settings_for(_NoBroker(), addresses=(Address("127.0.0.1", 1),))
    (found,) = run_checks(Check(settings=settings))
    assert (found.name, found.verdict) == ("connection", Verdict.PROBLEM)
    assert "127.0.0.1:1" in found.value


def test_what_a_trial_needs_is_a_field_of_its_subject(settings_for):
    settings = settings_for(_NoBroker())
    for subject, trials in (
        (Check(settings=settings), run._TRIALS),
        (ConformanceQueue(settings, "q"), conformance._TRIALS),
    ):
        assert [need for trial in trials for need in trial.needs if not hasattr(subject, need)] == []


class _NoBroker:
    url, user, password = "stomp://127.0.0.1:1", "u", "p"


@pytest.mark.broker
def test_a_queue_that_cannot_be_read_is_a_problem(guarded, queue, settings_for):
    settings = settings_for(guarded, user="worker")
    found = run_checks(Check(settings=settings, queue=queue, receive=True))
    assert (found[-1].name, found[-1].verdict) == ("check", Verdict.PROBLEM)


@pytest.mark.broker
@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_what_a_queue_is(broker, queue, protocol, settings_for, named):
    """Nothing is taken from it, and no delivery is counted."""
    control = broker.server.getActiveMQServerControl()
    kinds = {"non-destructive": True, "ring-size": 1_000}
    control.createQueue(json.dumps({"name": queue, "address": queue, "routing-type": "ANYCAST"} | kinds))
    put(broker, queue, "one")
    url = broker.amqp_url if protocol == "amqp" else broker.url
    settings = settings_for(broker, addresses=parse_broker_url(url))
    found = named(run_checks(Check(settings=settings, queue=queue)))
    assert found["non-destructive"].verdict is Verdict.PROBLEM
    refused = {"amqp": "exactly-once read without a journal", "stomp": "read with a journal"}
    assert f"{refused[protocol]}: refused, each" in found["non-destructive"].value
    assert "at-least-once read: a warning, each start of a query reads" in found["non-destructive"].value
    assert found["ring-size"].verdict is Verdict.NOTE
    assert f"{queue} keeps the newest 1,000 messages only (ring-size)" in found["ring-size"].value
    assert broker.delivery_counts(queue) == [0]


@pytest.mark.broker
@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_a_topic_with_a_queue_of_its_name_is_a_problem_and_stays_a_topic(broker, queue, protocol, settings_for, named):
    control = broker.server.getActiveMQServerControl()
    for name in (queue, f"{queue}.other"):
        control.createQueue(json.dumps({"name": name, "address": queue, "routing-type": "MULTICAST"}))
    with JmsClient(broker) as java:
        java.send(f"topic://{queue}", "to the subscriptions")
    settings = settings_for(broker, addresses=parse_broker_url(broker.amqp_url if protocol == "amqp" else broker.url))
    for name in (queue, f"{queue}.other"):
        found = named(run_checks(Check(settings=settings, queue=name, receive=True)))
        assert found["queue"].verdict is Verdict.PROBLEM
        assert f"{queue}::{name}" in found["queue"].advice
        assert "received" not in found
    address = broker.jvm.org.apache.activemq.artemis.api.core.SimpleString.of(queue)
    assert broker.server.getAddressInfo(address).getRoutingTypes().toString() == "[MULTICAST]"
    found = named(run_checks(Check(settings=settings, queue=f"{queue}::{queue}")))
    assert found["queue"].verdict is Verdict.FINE
