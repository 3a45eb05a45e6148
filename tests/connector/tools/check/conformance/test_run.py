"""The report, and what a broker that repeats everything and does nothing is told."""

import contextlib
import threading
from datetime import UTC, datetime

import pytest
from proton_broker import ProtonBroker
from rawstomp import RawStomp
from waiting import await_count, await_value, wait_until

from pyspark_jms.amqp.dialects import AMQP
from pyspark_jms.errors import BrokerError, InvalidDestinationError
from pyspark_jms.network.address import parse_broker_url
from pyspark_jms.tools.check.conformance.delivery import selector, transactions
from pyspark_jms.tools.check.conformance.queue import ConformanceQueue
from pyspark_jms.tools.check.conformance.run import ConformanceReport, _findings_of, _without, run_conformance
from pyspark_jms.tools.check.findings import Finding, Trial, Verdict, failed


def test_the_report_is_markdown():
    findings = (
        Finding(name="order", value="kept"),
        Finding(name="selector", value="a|b\nc", verdict=Verdict.NOTE, advice="Report it."),
        Finding(name="bodies", value="lost", verdict=Verdict.PROBLEM),
    )
    report = ConformanceReport(
        protocol="AMQP 1.0", server="X/1", dialect="amqp", capabilities=("A",), seconds=12.3, findings=findings
    )
    text = report.as_markdown("0.1.0", datetime(2026, 11, 26, tzinfo=UTC))
    assert text.startswith(
        "# Conformance of X/1 over AMQP 1.0\n\n|  |  |\n| --- | --- |\n| connector | pyspark-jms 0.1.0 |"
    )
    assert (
        "| order | as assumed | kept |\n| selector | note | a\\|b c Report it. |\n| bodies | **problem** | lost |"
        in text
    )
    assert "| date | 2026-11-26 |\n| duration | 12 s |" in text


def test_the_address_of_the_broker_is_left_out():
    found = _without(
        "amqp://secret:1", Finding(name="x", value="amqp://secret:1 refused", advice="See amqp://secret:1.")
    )
    assert (found.value, found.advice) == ("the broker refused", "See the broker.")


def test_an_error_of_a_test_is_a_finding():
    def some_test(_queue):
        yield Finding(name="first", value="fine")
        raise BrokerError("It broke.", "Mend it.")

    with ProtonBroker() as broker:
        first, error = _findings_of(Trial("some test", (), some_test), ConformanceQueue(broker.settings, "q"))
    assert first.verdict is Verdict.FINE
    assert (error.name, error.verdict, error.advice) == ("some test", Verdict.PROBLEM, "Mend it.")
    assert error.value == "[JMS_BROKER_ERROR] It broke."


def test_an_echo_of_the_selector_is_no_proof_and_a_refused_coordinator_is_a_note():
    with ProtonBroker() as broker:
        queue = ConformanceQueue(broker.settings, "q")
        queue.dialect = AMQP
        (found,) = transactions(queue)
        assert (found.verdict, queue.uses_transactions) == (Verdict.NOTE, False)
        (found,) = selector(queue)
        assert found.value == "of 2 messages that match and 2 that do not, 2 and 2 came; the dialect does not use it"


@contextlib.contextmanager
def producing(broker, queue, pause_seconds):
    """A producer that sends to the queue from the first test message on. Yields what it has sent."""
    sent, ended = [], threading.Event()

    def produce():
        wait_until(lambda: ended.is_set() or (broker.has_queue(queue) and broker.message_count(queue)))
        with RawStomp(broker) as client:
            while not ended.wait(pause_seconds):
                client.send(queue, [([], f"order {len(sent)}")])
                sent.append(None)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield sent
    finally:
        ended.set()
        thread.join()


@pytest.mark.broker
@pytest.mark.deep
@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_a_run_leaves_nothing_of_its_own_and_the_queue_of_the_user(fresh_broker, settings_for, protocol):
    broker = fresh_broker()
    broker.create_queue("users")
    settings = settings_for(broker, addresses=parse_broker_url(broker.url if protocol == "stomp" else broker.amqp_url))
    control = broker.server.getActiveMQServerControl()
    before = {*control.getQueueNames()}, {*control.getAddressNames()}
    for report in (run_conformance(settings, "made", is_new=True), run_conformance(settings, "users")):
        assert "missing queue" in " ".join(each.name for each in report.findings)
        assert not failed(report.findings)
    left = {*control.getQueueNames()}, {*control.getAddressNames()}
    assert all(not name.startswith("made") and ".missing." not in name for names in left for name in names)
    assert before[0] <= left[0]


@pytest.mark.broker
def test_deletes_only_what_is_empty(broker, queue, settings_for):
    broker.create_queue(queue)
    settings = settings_for(broker, addresses=parse_broker_url(broker.amqp_url))
    scratch = ConformanceQueue(settings, queue)
    scratch.send([{"text": "one"}])
    scratch.delete(queue, f"{queue}.no")
    await_count(broker, queue, 1)
    broker.purge(queue)
    scratch.delete(queue)
    assert queue not in broker.server.getActiveMQServerControl().getQueueNames()


@pytest.mark.broker
@pytest.mark.parametrize(
    ("protocol", "pause_seconds"),
    [
        ("amqp", 0.05),
        pytest.param("amqp", 1.0, marks=pytest.mark.deep),
        pytest.param("stomp", 0.05, marks=pytest.mark.deep),
        pytest.param("stomp", 1.0, marks=pytest.mark.deep),
    ],
)
def test_what_a_producer_sends_meanwhile_stays_and_ends_the_tests(broker, queue, settings_for, protocol, pause_seconds):
    url = broker.url if protocol == "stomp" else broker.amqp_url
    settings = settings_for(broker, addresses=parse_broker_url(url))
    with producing(broker, queue, pause_seconds) as sent:
        *_, ended = run_conformance(settings, queue).findings
        wait_until(lambda: sent)
    assert (ended.name, ended.verdict) == ("ended", Verdict.ENDED)
    assert "acknowledgements, missing queue" in ended.value
    await_value(lambda: broker.delivery_counts(queue), [0] * len(sent))
    with pytest.raises(InvalidDestinationError, match=r"No test has run: queue .* without the mark"):
        run_conformance(settings, queue)
    await_value(lambda: broker.delivery_counts(queue), [0] * len(sent))
    await_count(broker, queue, len(sent))
    broker.purge(queue)
