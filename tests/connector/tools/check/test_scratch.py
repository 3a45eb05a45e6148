"""The tests on a scratch queue of a real broker, and the findings of their failures."""

import pytest
from broker_stage import require_rabbitmq
from installed_rabbit import InstalledRabbit
from waiting import await_count

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.tools.check import scratch
from pyspark_jms.tools.check.conformance.queue import ConformanceQueue, Reader
from pyspark_jms.tools.check.conformance.run import run_conformance
from pyspark_jms.tools.check.findings import Verdict
from pyspark_jms.tools.check.run import Check, run_checks
from pyspark_jms.tools.check.scratch import scratch_findings

pytestmark = pytest.mark.broker


@pytest.fixture
def scratch_queue(broker, queue, settings_for):
    yield ConformanceQueue(settings_for(broker), queue)
    await_count(broker, queue, 0)


def test_what_artemis_can_do(scratch_queue, named):
    clocks = []

    def findings():
        clocks.append((yield from scratch_findings(scratch_queue)))

    found = named(findings())
    assert [*found] == ["body rule", "window"]
    assert {finding.verdict for finding in found.values()} == {Verdict.FINE}
    before, there, after = clocks[0]
    assert before - 1_000 < there < after + 1_000


def test_concurrent_runs_do_not_receive_each_others_messages(broker, queue, scratch_queue, settings_for):
    other = ConformanceQueue(settings_for(broker), queue)
    together = zip(scratch_findings(scratch_queue), scratch_findings(other), strict=True)
    assert {finding.verdict for pair in together for finding in pair} == {Verdict.FINE}


def test_a_body_that_is_read_as_another_type(scratch_queue, monkeypatch, named):
    monkeypatch.setattr(scratch, "_BODIES", (("text", "text"), ("bytes", b"x" * 1_001)))
    monkeypatch.setattr(Reader, "receive", read_as_texts)
    found = named(scratch_findings(scratch_queue))["body rule"]
    assert (found.verdict, found.value) == (Verdict.PROBLEM, "sent text, bytes; read as text, text")


def read_as_texts(self, *given, receive=Reader.receive):
    return [{**row, "body_type": "text"} for row in receive(self, *given)]


def test_a_window_without_effect(scratch_queue, monkeypatch, named):
    monkeypatch.setattr(scratch, "_WINDOW_BYTES", 1 << 20)
    assert named(scratch_findings(scratch_queue))["window"].verdict is Verdict.PROBLEM


def test_a_queue_that_the_user_cannot_create(guarded, queue, settings_for):
    (found,) = scratch_findings(ConformanceQueue(settings_for(guarded, user="worker"), queue))
    assert (found.name, found.verdict) == ("scratch queue", Verdict.NOTE)
    assert "permission='CREATE_ADDRESS'" in found.value
    assert "--scratch-queue" in found.advice


def test_a_given_scratch_queue(guarded, queue, settings_for):
    guarded.create_queue(queue)
    assert len(list(scratch_findings(ConformanceQueue(settings_for(guarded, user="worker"), queue)))) == 2


def test_messages_that_are_not_received(broker, queue, settings_for):
    broker.create_queue(queue)
    broker.server.locateQueue(queue).pause()
    found = next(scratch_findings(ConformanceQueue(settings_for(broker, receipt_timeout=1), queue)))
    assert (found.verdict, found.value) == (Verdict.PROBLEM, "0 of 4 messages were received within 1 s")
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
        checked = ConformanceQueue(settings, queue)
        checked.uses_transactions = False
        (found,) = scratch_findings(checked)
        assert (found.verdict, found.name) == (Verdict.NOTE, "scratch queue")
        assert "has a message without the mark" in found.value
        await_count(broker, queue, 1)
        with pytest.raises(InvalidDestinationError, match="No test has run"):
            run_conformance(settings, queue)
        await_count(broker, queue, 1)


@pytest.mark.deep
def test_the_time_that_the_sink_states_is_not_the_broker_s_clock(queue, settings_for, named):
    require_rabbitmq()
    with InstalledRabbit() as broker:
        found = named(run_checks(Check(settings=settings_for(broker), scratch_queue=queue)))
    assert (found["body rule"].verdict, found["clock"].verdict) == (Verdict.FINE, Verdict.NOTE)
