import pytest
from proton_broker import ProtonBroker
from registers import left_registers
from streaming import access
from waiting import await_count

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.testing import JmsClient
from pyspark_jms.tools.check.amqp import amqp_findings
from pyspark_jms.tools.check.findings import Verdict
from pyspark_jms.tools.check.run import Check, run_checks
from pyspark_jms.tools.registers import drop_registers, names_of_registers


@pytest.fixture
def settings_of():
    def settings(broker, **more):
        given = access(broker) | {"brokerUrl": broker.amqp_url, "queue": "q"} | more
        return SourceOptions.parse(given).connection

    return settings


def test_what_artemis_offers(broker, queue, settings_of):
    found = {finding.name: finding for finding in amqp_findings(settings_of(broker), queue)}
    assert "apache-activemq-artemis/2." in found["connection"].value
    assert found["dialect"].value == "artemis"
    assert found["column destination"].verdict is found["transactions"].verdict is Verdict.FINE


def test_an_address_of_amqp_is_checked_over_amqp(broker, queue, settings_of):
    found = run_checks(Check(settings=settings_of(broker), scratch_queue=queue))
    assert [finding.name for finding in found] == [
        "connection", "dialect", "column destination", "transactions", "batch reads", "selectors",
        "reading, staging", "writing, ledger", "management", "staging settings", "ledger settings", "clock",
    ]  # fmt: skip
    assert {finding.verdict for finding in found} == {Verdict.FINE}


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


def test_a_wrong_password_is_a_finding(broker, settings_of):
    [finding] = run_checks(Check(settings=settings_of(broker, password="wrong")))
    assert (finding.name, finding.verdict) == ("connection", Verdict.PROBLEM)


def test_a_queue_is_inspected_received_and_given_back(broker, queue, settings_of, named):
    with JmsClient(broker) as java:
        for body in ("text", "", {"a": 1}, [1]):
            java.send(queue, body)
    found = named(run_checks(Check(settings=settings_of(broker), queue=queue, receive=True)))
    assert found["queue"].details["messages"] == 4
    assert found["body types"].details["bodyTypes"] == {"text": 2, "map": 1, "stream": 1}
    assert found["received"].details == {
        "received": 4, "bodyTypes": {"text": 2, "map": 1, "stream": 1}, "emptyTexts": 1
    }  # fmt: skip
    assert {found[name].verdict for name in ("body types", "paging", "received")} == {Verdict.FINE}
    assert "not received" not in found
    await_count(broker, queue, 4)


def test_messages_of_the_queue_in_staging_queues_are_shown(broker, queue, settings_of, named):
    base = left_registers(broker, queue, "one", "two", "three")
    broker.create_queue(f"{queue}.other")
    findings = run_checks(Check(settings=settings_of(broker), queue=queue))
    staged = [each for each in findings if each.name == "staged"]
    assert sum(each.details["staged"] for each in staged) == 3
    assert {each.details["stagingQueue"] for each in staged} <= {f"{base}.0", f"{base}.1"}
    assert all(each.value.endswith(", of batch 1") for each in staged)
    other = named(run_checks(Check(settings=settings_of(broker), queue=f"{queue}.other")))
    assert "staged" not in other
    over_stomp = SourceOptions.parse(access(broker) | {"queue": queue}).connection
    found = named(run_checks(Check(settings=over_stomp, queue=queue)))
    assert found["staged"].verdict is Verdict.NOTE
    assert "amqp://HOST:5672" in found["staged"].advice
    drop_registers(settings_of(broker), names_of_registers(settings_of(broker), base, None))


def test_a_paged_address_is_a_note(broker, queue, settings_of, named):
    broker.create_queue(queue)
    name = broker.jvm.org.apache.activemq.artemis.api.core.SimpleString.of(queue)
    broker.server.getPagingManager().getPageStore(name).startPaging()
    found = named(run_checks(Check(settings=settings_of(broker), queue=queue)))
    assert found["paging"].verdict is Verdict.NOTE
    assert "without option selector" in found["paging"].advice


def test_without_the_permission_the_queue_is_not_inspected(guarded, queue, settings_of, named):
    guarded.create_queue(queue)
    settings = settings_of(guarded, user="worker", password="pw")
    found = named(run_checks(Check(settings=settings, queue=queue, scratch_queue=queue, receive=True)))
    assert {found[name].verdict for name in ("management", "queue")} == {Verdict.NOTE}
    assert found["received"].details["received"] == 0


def test_a_queue_that_does_not_exist(broker, queue, settings_of, named):
    found = named(run_checks(Check(settings=settings_of(broker), queue=queue)))
    assert "there is no queue" in found["queue"].value
    assert "paging" not in found
