"""The scratch queue of a check, on Artemis. tests/brokers/test_conformance.py tries all brokers."""

import pytest
from rawstomp import RawStomp
from waiting import await_count, await_value

from pyspark_jms.tools.check import scratch_queue
from pyspark_jms.tools.check.scratch_queue import RUN_PROPERTY, EndedEarly, ScratchQueue


@pytest.fixture(params=["stomp", "amqp"])
def scratch(request, broker, queue, settings_for):
    return ScratchQueue(settings_for(broker, request.param), queue)


def test_rows_come_back_and_what_is_left_of_them_is_removed(scratch, broker):
    scratch.send([{"text": "a"}, {"text": "b", "properties": [("kind", "x")]}])
    with scratch.reader() as reader:
        assert [row["text"] for row in reader.receive(2)] == ["a", "b"]
        reader.acknowledge(1)
    await_count(broker, scratch.name, 1)
    scratch.remove_own()
    await_count(broker, scratch.name, 0)


def test_a_queue_with_a_message_of_somebody_else_is_refused_and_keeps_it(scratch, broker):
    scratch.send([{"text": "ours"}])
    with RawStomp(broker) as client:
        client.send(scratch.name, [([(RUN_PROPERTY, "another run")], "theirs")])
    with pytest.raises(EndedEarly, match="has a message without the mark of these tests"):
        scratch.require_alone()
    await_count(broker, scratch.name, 2)
    scratch.remove_own()
    await_value(lambda: broker.delivery_counts(scratch.name), [0])


def test_a_queue_with_a_consumer_is_refused(scratch, broker):
    broker.create_queue(scratch.name)
    scratch.require_no_consumers()
    with RawStomp(broker) as client:
        client.request("SUBSCRIBE", [("id", "1"), ("destination", scratch.name), ("destination-type", "ANYCAST")])
        with pytest.raises(EndedEarly, match=r"has consumers \(1\)"):
            scratch.require_no_consumers()


def test_the_tests_have_a_time_limit(scratch, broker, monkeypatch):
    broker.create_queue(scratch.name)
    monkeypatch.setattr(scratch_queue, "_LIMIT_SECONDS", 0.0)
    late = ScratchQueue(scratch._settings, scratch.name)
    with pytest.raises(EndedEarly, match="have not ended within"), late.reader() as reader:
        reader.receive(1)


def test_deletes_only_what_is_empty(broker, queue, settings_for):
    broker.create_queue(queue)
    scratch = ScratchQueue(settings_for(broker, "amqp"), queue)
    scratch.send([{"text": "one"}])
    scratch.delete(queue, f"{queue}.no")
    await_count(broker, queue, 1)
    broker.purge(queue)
    scratch.delete(queue)
    assert queue not in broker.server.getActiveMQServerControl().getQueueNames()
