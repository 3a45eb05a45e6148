"""All trials in a row, over both protocols, by users of every kind, on queues that others use meanwhile."""

import contextlib
import json
import threading

import pytest
from addresses import types_of
from amqp_sending import put
from broker_stage import require_rabbitmq
from installed_rabbit import InstalledRabbit
from proton_broker import ProtonBroker
from rawstomp import RawStomp
from registers import left_registers
from waiting import await_count, await_value, wait_until

from pyspark_jms.errors import BrokerError, InvalidDestinationError
from pyspark_jms.network.address import Address
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import DIALECTS
from pyspark_jms.testing import JmsClient
from pyspark_jms.tools.check import trials
from pyspark_jms.tools.check.findings import Finding, Verdict, failed
from pyspark_jms.tools.check.run import _TRIALS, Check, Trial, _goes_on, _scratch_queue, _without, run_checks
from pyspark_jms.tools.check.scratch_queue import Reader, ScratchQueue
from pyspark_jms.tools.registers import drop_registers, names_of_registers

BROKER_ROWS = ["connection", "broker", "management"]
TESTS = ["body rule", "window"]
GUARANTEES = ["clock", "reading", "reading, journal", "writing", "writing, ledger", "topics"]


def test_the_broker_alone(broker, settings_for):
    found = run_checks(Check(settings=settings_for(broker)))
    assert [finding.name for finding in found] == BROKER_ROWS + TESTS + GUARANTEES
    noted = {finding.name: finding.verdict for finding in found if finding.verdict is not Verdict.FINE}
    assert noted == {"writing, ledger": Verdict.NOTE}, "over STOMP it is at-least-once"


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


def test_what_a_trial_needs_is_a_field_of_the_check():
    check = Check(settings=ConnectionSettings(addresses=(Address("127.0.0.1", 1),)))
    assert [need for trial in _TRIALS for need in trial.needs if not hasattr(check, need)] == []


def test_a_queue_that_cannot_be_read_is_a_problem(guarded, queue, settings_for):
    settings = settings_for(guarded, user="worker")
    found = run_checks(Check(settings=settings, queue=queue, receive=True))
    assert (found[-1].name, found[-1].verdict) == ("received messages", Verdict.PROBLEM)


@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_what_a_queue_is(broker, queue, protocol, settings_for, named):
    """Nothing is taken from it, and no delivery is counted."""
    control = broker.server.getActiveMQServerControl()
    kinds = {"non-destructive": True, "ring-size": 1_000}
    control.createQueue(json.dumps({"name": queue, "address": queue, "routing-type": "ANYCAST"} | kinds))
    put(broker, queue, "one")
    settings = settings_for(broker, protocol)
    found = named(run_checks(Check(settings=settings, queue=queue)))
    assert found["non-destructive"].verdict is Verdict.PROBLEM
    refused = {"amqp": "exactly-once read without a journal", "stomp": "read with a journal"}
    assert f"{refused[protocol]}: refused, each" in found["non-destructive"].value
    assert "at-least-once read: a warning, each start of a query reads" in found["non-destructive"].value
    assert found["ring-size"].verdict is Verdict.NOTE
    assert f"{queue} keeps the newest 1,000 messages only (ring-size)" in found["ring-size"].value
    assert broker.delivery_counts(queue) == [0]


@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_a_topic_with_a_queue_of_its_name_is_a_problem_and_stays_a_topic(broker, queue, protocol, settings_for, named):
    control = broker.server.getActiveMQServerControl()
    for name in (queue, f"{queue}.other"):
        control.createQueue(json.dumps({"name": name, "address": queue, "routing-type": "MULTICAST"}))
    with JmsClient(broker) as java:
        java.send(f"topic://{queue}", "to the subscriptions")
    settings = settings_for(broker, protocol)
    for name in (queue, f"{queue}.other"):
        found = named(run_checks(Check(settings=settings, queue=name, receive=True)))
        assert found["queue"].verdict is Verdict.PROBLEM
        assert f"{queue}::{name}" in found["queue"].advice
        assert "received" not in found
    assert types_of(broker, queue) == "[MULTICAST]"
    found = named(run_checks(Check(settings=settings, queue=f"{queue}::{queue}")))
    assert found["queue"].verdict is Verdict.FINE


# --- over AMQP ---------------------------------------------------------------------------------------


def test_an_address_of_amqp_is_checked_over_amqp(broker, queue, settings_for):
    found = run_checks(Check(settings=settings_for(broker, "amqp"), scratch_queue=queue))
    assert [finding.name for finding in found] == [
        "connection", "dialect", "column destination", "transactions", "batch reads", "selectors",
        "reading, staging", "writing, ledger", "management", "staging settings", "ledger settings", "clock",
    ]  # fmt: skip
    assert {finding.verdict for finding in found} == {Verdict.FINE}
    connection, dialect = (finding.value for finding in found[:2])
    assert ("apache-activemq-artemis/2." in connection, dialect) == (True, "artemis")


@pytest.mark.deep
@pytest.mark.parametrize("ends", ["link", "session", "nothing"])
def test_a_broker_without_transactions(ends):
    with ProtonBroker(coordinator=ends) as peer:
        peer.queues["q"] = ["one"]
        found = run_checks(Check(settings=peer.settings, queue="q", receive=True))
        [transactions] = [finding for finding in found if finding.name == "transactions"]
        assert transactions.verdict is Verdict.NOTE
        assert "transaction=none" in transactions.advice
        assert "1 message, given back" in found[-1].value
        assert peer.queues["q"] == ["one"]


def test_what_rabbitmq_is_trusted_with(named):
    with ProtonBroker(product="RabbitMQ") as peer:
        peer.queues["/queues/q"] = ["one"]
        found = named(run_checks(Check(settings=peer.settings, queue="q", receive=True)))
        assert found["dialect"].value == "rabbitmq"
        notes = ("transactions", "batch reads", "selectors", "redelivery limit", "reading, staging", "writing, ledger")
        assert {found[name].verdict for name in notes} == {Verdict.NOTE}
        assert "at-least-once" in found["transactions"].value
        assert "quorum queue: 20" in found["redelivery limit"].value
        assert "1 message, given back" in found["received"].value
        assert not peer.queues.keys() - {"/queues/q"}, "it needs no scratch queue"


def test_a_wrong_password_is_a_finding(broker, settings_for):
    [finding] = run_checks(Check(settings=settings_for(broker, "amqp", password="wrong")))
    assert (finding.name, finding.verdict) == ("connection", Verdict.PROBLEM)


def test_a_queue_is_inspected_received_and_given_back(broker, queue, settings_for, named):
    with JmsClient(broker) as java:
        for body in ("text", "", {"a": 1}, [1]):
            java.send(queue, body)
    found = named(run_checks(Check(settings=settings_for(broker, "amqp"), queue=queue, receive=True)))
    assert found["queue"].details["messages"] == 4
    assert found["body types"].details["bodyTypes"] == {"text": 2, "map": 1, "stream": 1}
    assert found["received"].details == {
        "received": 4, "bodyTypes": {"text": 2, "map": 1, "stream": 1}, "emptyTexts": 1
    }  # fmt: skip
    assert {found[name].verdict for name in ("body types", "paging", "received")} == {Verdict.FINE}
    assert "not received" not in found
    await_count(broker, queue, 4)


def test_messages_of_the_queue_in_staging_queues_are_shown(broker, queue, settings_for, named):
    base = left_registers(broker, queue, "one", "two", "three")
    broker.create_queue(f"{queue}.other")
    findings = run_checks(Check(settings=settings_for(broker, "amqp"), queue=queue))
    staged = [each for each in findings if each.name == "staged"]
    assert sum(each.details["staged"] for each in staged) == 3
    assert {each.details["stagingQueue"] for each in staged} <= {f"{base}.0", f"{base}.1"}
    assert all(each.value.endswith(", of batch 1") for each in staged)
    other = named(run_checks(Check(settings=settings_for(broker, "amqp"), queue=f"{queue}.other")))
    assert "staged" not in other
    found = named(run_checks(Check(settings=settings_for(broker), queue=queue)))
    assert found["staged"].verdict is Verdict.NOTE
    assert "amqp://HOST:5672" in found["staged"].advice
    settings = settings_for(broker, "amqp")
    drop_registers(settings, names_of_registers(settings, base, None))


def test_a_paged_address_is_a_note(broker, queue, settings_for, named):
    broker.create_queue(queue)
    name = broker.jvm.org.apache.activemq.artemis.api.core.SimpleString.of(queue)
    broker.server.getPagingManager().getPageStore(name).startPaging()
    found = named(run_checks(Check(settings=settings_for(broker, "amqp"), queue=queue)))
    assert found["paging"].verdict is Verdict.NOTE
    assert "without option selector" in found["paging"].advice


def test_without_the_permission_the_queue_is_not_inspected(guarded, queue, settings_for, named):
    guarded.create_queue(queue)
    settings = settings_for(guarded, "amqp", user="worker")
    found = named(run_checks(Check(settings=settings, queue=queue, scratch_queue=queue, receive=True)))
    assert {found[name].verdict for name in ("management", "queue")} == {Verdict.NOTE}
    assert found["received"].details["received"] == 0


# --- with messages -----------------------------------------------------------------------------------


def scratch_findings(settings, queue):
    check = Check(settings=settings, scratch_queue=queue)
    check.scratch.dialect = DIALECTS["artemis"]
    return _scratch_queue(check)


@pytest.fixture
def scratch_queue(broker, queue, settings_for):
    """The findings of a scratch queue, which is empty afterwards."""
    yield scratch_findings(settings_for(broker), queue)
    await_count(broker, queue, 0)


def test_concurrent_runs_do_not_receive_each_others_messages(broker, queue, scratch_queue, settings_for):
    together = zip(scratch_queue, scratch_findings(settings_for(broker), queue), strict=True)
    assert {finding.verdict for pair in together for finding in pair} == {Verdict.FINE}


def test_a_body_that_is_read_as_another_type(scratch_queue, monkeypatch, named):
    monkeypatch.setattr(trials, "_RULE", (("text", "text"), ("bytes", b"x" * 1_001)))
    monkeypatch.setattr(Reader, "receive", read_as_texts)
    found = named(scratch_queue)["body rule"]
    assert (found.verdict, found.value) == (Verdict.PROBLEM, "sent text, bytes; read as text, text")


def read_as_texts(self, *given, receive=Reader.receive):
    return [{**row, "body_type": "text"} for row in receive(self, *given)]


def test_a_window_without_effect(scratch_queue, monkeypatch, named):
    monkeypatch.setattr(trials, "_WINDOW_BYTES", 1 << 20)
    assert named(scratch_queue)["window"].verdict is Verdict.PROBLEM


def test_a_queue_that_the_user_cannot_create(guarded, queue, settings_for):
    (found,) = scratch_findings(settings_for(guarded, user="worker"), queue)
    assert (found.name, found.verdict) == ("scratch queue", Verdict.NOTE)
    assert "permission='CREATE_ADDRESS'" in found.value
    assert "--scratch-queue" in found.advice


def test_a_given_scratch_queue(guarded, queue, settings_for):
    guarded.create_queue(queue)
    assert len(list(scratch_findings(settings_for(guarded, user="worker"), queue))) == 2


def test_messages_that_are_not_received(broker, queue, settings_for):
    broker.create_queue(queue)
    broker.server.locateQueue(queue).pause()
    found = next(scratch_findings(settings_for(broker, receipt_timeout=1), queue))
    assert (found.verdict, found.value) == (Verdict.PROBLEM, "0 of 4 messages were received within 1 s")
    broker.purge(queue)


@pytest.mark.deep
def test_a_message_of_another_program_is_not_acknowledged(queue, settings_for, named):
    """RabbitMQ has no selectors, so it delivers the message to the check."""
    require_rabbitmq()
    with InstalledRabbit() as broker:
        settings = settings_for(broker)
        other = ScratchQueue(settings, queue)
        other.uses_transactions = False
        other.send([{"text": "theirs"}])
        found = named(run_checks(Check(settings=settings, scratch_queue=queue)))["scratch queue"]
        assert found.verdict is Verdict.NOTE
        assert "has a message without the mark" in found.value
        await_count(broker, queue, 1)
        with pytest.raises(InvalidDestinationError, match="No test has run"):
            run_checks(Check(settings=settings, scratch_queue=queue, conformance=True))
        await_count(broker, queue, 1)


@pytest.mark.deep
def test_the_time_that_the_sink_states_is_not_the_broker_s_clock(queue, settings_for, named):
    require_rabbitmq()
    with InstalledRabbit() as broker:
        found = named(run_checks(Check(settings=settings_for(broker), scratch_queue=queue)))
    assert (found["body rule"].verdict, found["clock"].verdict) == (Verdict.FINE, Verdict.NOTE)


# --- conformance -------------------------------------------------------------------------------------


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
        check, found = Check(settings=broker.settings, conformance=True), []
        assert _goes_on(Trial("some test", (), some_test), check, found)
    first, error = found
    assert first.verdict is Verdict.FINE
    assert (error.name, error.verdict, error.advice) == ("some test", Verdict.PROBLEM, "Mend it.")
    assert error.value == "[JMS_BROKER_ERROR] It broke."


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


@pytest.mark.deep
@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_a_run_leaves_nothing_of_its_own_and_the_queue_of_the_user(fresh_broker, settings_for, protocol):
    broker = fresh_broker()
    broker.create_queue("users")
    settings = settings_for(broker, protocol)
    control = broker.server.getActiveMQServerControl()
    before = {*control.getQueueNames()}, {*control.getAddressNames()}
    for name in ("made", "users"):
        check = Check(settings=settings, scratch_queue=name, conformance=True, is_new=name == "made")
        findings = run_checks(check)
        assert "missing queue" in " ".join(each.name for each in findings)
        assert not failed(findings)
        assert check.title.startswith("Conformance of ")
        assert [*check.facts] == ["connector", "broker", "protocol", "dialect", "capabilities", "date", "duration"]
    left = {*control.getQueueNames()}, {*control.getAddressNames()}
    assert all(not name.startswith("made") and ".missing." not in name for names in left for name in names)
    assert before[0] <= left[0]


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
    settings = settings_for(broker, protocol)
    with producing(broker, queue, pause_seconds) as sent:
        *_, ended = run_checks(Check(settings=settings, scratch_queue=queue, conformance=True))
        wait_until(lambda: sent)
    assert (ended.name, ended.verdict) == ("ended", Verdict.ENDED)
    assert "acknowledgements, missing queue" in ended.value
    await_value(lambda: broker.delivery_counts(queue), [0] * len(sent))
    with pytest.raises(InvalidDestinationError, match=r"No test has run: queue .* without the mark"):
        run_checks(Check(settings=settings, scratch_queue=queue, conformance=True))
    await_value(lambda: broker.delivery_counts(queue), [0] * len(sent))
    await_count(broker, queue, len(sent))
    broker.purge(queue)
