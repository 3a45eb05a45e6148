"""The tests on a scratch queue of a real broker, and the findings of their failures."""

import pytest
from broker_stage import require_rabbitmq
from installed_rabbit import InstalledRabbit
from waiting import await_count

from pyspark_jms.errors import InvalidDestinationError, ReceiptTimeoutError
from pyspark_jms.stomp.dialects import ARTEMIS, dialect_named
from pyspark_jms.tools.check import scratch
from pyspark_jms.tools.check.conformance.queue import ConformanceQueue
from pyspark_jms.tools.check.conformance.run import run_conformance
from pyspark_jms.tools.check.findings import Verdict
from pyspark_jms.tools.check.scratch import Scratch, scratch_findings

pytestmark = pytest.mark.broker


def test_what_artemis_can_do(broker, queue, settings_for, named):
    tried = Scratch(settings_for(broker), queue, ARTEMIS)
    found = named(scratch_findings(tried))
    assert [*found] == ["body rule", "window"]
    assert {finding.verdict for finding in found.values()} == {Verdict.FINE}
    before, there, after = tried.clock
    assert before - 1_000 < there < after + 1_000
    await_count(broker, queue, 0)


def test_concurrent_runs_do_not_receive_each_others_messages(broker, queue, settings_for, named):
    first, second = (Scratch(settings_for(broker), queue, ARTEMIS) for _ in range(2))
    together = zip(scratch_findings(first), scratch_findings(second), strict=True)
    assert {finding.verdict for pair in together for finding in pair} == {Verdict.FINE}
    await_count(broker, queue, 0)


def test_a_body_that_is_read_as_another_type(broker, queue, settings_for, monkeypatch):
    monkeypatch.setattr(scratch, "_BODIES", (("text", b"text"), ("map", b"none of our frames")))
    found = Scratch(settings_for(broker), queue, ARTEMIS).bodies()
    assert (found.verdict, found.value) == (Verdict.PROBLEM, "sent text, map; read as text, text")
    await_count(broker, queue, 0)


def test_a_window_without_effect(broker, queue, settings_for, monkeypatch):
    monkeypatch.setattr(scratch, "_WINDOW_BYTES", 1 << 20)
    found = Scratch(settings_for(broker), queue, ARTEMIS).window()
    assert (found.name, found.verdict) == ("window", Verdict.PROBLEM)
    await_count(broker, queue, 0)


def test_a_queue_that_the_user_cannot_create(guarded, queue, settings_for):
    settings = settings_for(guarded, user="worker")
    (found,) = scratch_findings(Scratch(settings, queue, ARTEMIS))
    assert (found.name, found.verdict) == ("scratch queue", Verdict.NOTE)
    assert "permission='CREATE_ADDRESS'" in found.value
    assert "--scratch-queue" in found.advice


def test_a_given_scratch_queue(guarded, queue, settings_for):
    guarded.create_queue(queue)
    settings = settings_for(guarded, user="worker")
    assert len(list(scratch_findings(Scratch(settings, queue, ARTEMIS)))) == 2


def test_messages_that_are_not_received(broker, queue, settings_for):
    broker.create_queue(queue)
    broker.server.locateQueue(queue).pause()
    tried = Scratch(settings_for(broker, receipt_timeout=1), queue, ARTEMIS)
    with pytest.raises(ReceiptTimeoutError, match=rf"\[JMS_RECEIPT_TIMEOUT\].*{queue} .* 1 s"):
        tried.bodies()
    broker.purge(queue)


@pytest.mark.deep
def test_a_message_of_another_program_is_not_acknowledged(queue, settings_for):
    """RabbitMQ has no selectors, so it delivers the message to the check."""
    require_rabbitmq()
    with InstalledRabbit() as broker:
        settings = settings_for(broker)
        other = ConformanceQueue(settings, queue)
        other.uses_transactions = False
        other.send([{"text": "theirs"}])
        (found,) = scratch_findings(Scratch(settings, queue, dialect_named("rabbitmq")))
        assert (found.verdict, found.name) == (Verdict.NOTE, "scratch queue")
        assert "has a message that this check did not send" in found.value
        await_count(broker, queue, 1)
        with pytest.raises(InvalidDestinationError, match="No test has run"):
            run_conformance(settings, queue)
        await_count(broker, queue, 1)
