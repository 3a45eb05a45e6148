"""The findings about a queue, with messages of a Java client and with STOMP consumers."""

from collections import Counter

import pytest
from rawstomp import RawStomp, frame
from waiting import await_value, wait_until

from pyspark_jms.jms.model import BODY_MARKER
from pyspark_jms.management.attributes import ARTEMIS_MANAGEMENT
from pyspark_jms.testing import JmsClient
from pyspark_jms.tools.check.findings import Verdict
from pyspark_jms.tools.check.queue import (
    BodyKind,
    Queue,
    body_types_finding,
    count_kinds,
    describe_counts,
    describe_losses,
    name_finding,
    queue_findings,
)

LOSSES = ARTEMIS_MANAGEMENT.losses
SUBSCRIBE = [("id", "1"), ("subscription-type", "ANYCAST"), ("ack", "client-individual")]


@pytest.fixture
def find(open_link, named):
    def find(broker, queue, limit=10_000):
        return named(queue_findings(Queue(open_link(broker), queue), limit))

    return find


def send_every_body(broker, queue):
    """Six kinds of body, two streams."""
    with JmsClient(broker) as java:
        for body in ("text", b"bytes", {"a": 1}, [1], [1, "x"], None, broker.jvm.java.util.HashMap()):
            java.send(queue, body)


def test_every_body_type_is_counted_and_every_message_stays(broker, queue, find):
    send_every_body(broker, queue)
    found = find(broker, queue)
    assert found["queue"].value == f"{queue}: 7 messages, 0 of them in delivery to 0 consumers"
    assert found["body types"].details["bodyTypes"] == {
        "text": 1, "bytes": 1, "map": 1, "stream": 2, "message": 1, "object": 1
    }  # fmt: skip
    assert found["body types"].verdict is Verdict.PROBLEM
    assert "in delivery" not in found
    await_value(lambda: broker.delivery_counts(queue), [0] * 7)


def test_text_and_bytes_are_fine(broker, queue, find):
    with JmsClient(broker) as java:
        java.send(queue, "text")
        java.send(queue, b"bytes")
        java.send(queue, '{"map": []}', properties={"spark_jms_body": "map"})
        java.send(queue, "later", delivery_delay=600_000)
    found = find(broker, queue)
    assert found["body types"].details["bodyTypes"] == {"text": 1, "bytes": 1, "map (envelope)": 1}
    assert "1 scheduled for later" in found["queue"].value
    assert found["queue"].details == {"messages": 4, "delivering": 0, "consumers": 0, "scheduled": 1}
    assert found["dead letters"].details["deadLetterAddress"] == "DLQ"


def test_a_broker_lists_the_first_messages(broker, queue, find):
    with RawStomp(broker) as client:
        client.send(queue, [([], "text")] * 300)
    # the broker lists committed messages with a delay
    wait_until(lambda: find(broker, queue)["body types"].value == "text 200 (the first 200 of 300)")
    assert find(broker, queue)["body types"].verdict is Verdict.NOTE


def test_streams_in_delivery_to_a_stomp_consumer_are_a_problem(broker, queue, find):
    send_every_body(broker, queue)
    with RawStomp(broker) as client:
        client.write(frame("SUBSCRIBE", [*SUBSCRIBE, ("destination", queue)]))
        wait_until(lambda: broker.delivering_count(queue) == 7)
        found = find(broker, queue)
        assert "7 of them in delivery to 1 consumer" in found["queue"].value
        assert found["body types"].details["seen"] == 7
        assert found["in delivery"].details == {"streamsAtStompReaders": 2}
        assert found["in delivery"].verdict is Verdict.PROBLEM
        few = find(broker, queue, limit=6)
        assert "more than --max" in few["in delivery"].value
        assert few["body types"].verdict is Verdict.NOTE
        while client.receive().headers.get("destination") != queue:
            pass
        client.write(frame("UNSUBSCRIBE", [("id", "1"), ("receipt", "given back")]))
        while client.receive().command != "RECEIPT":
            pass


def test_streams_in_delivery_to_a_java_consumer_are_fine(broker, queue, find):
    with JmsClient(broker) as java:
        for body in ([1], [2]):
            java.send(queue, body)
        consumer = java._session.createConsumer(java._destination(queue))
        wait_until(lambda: broker.delivering_count(queue) == 2)
        assert find(broker, queue)["in delivery"].verdict is Verdict.FINE
        consumer.close()


def test_a_missing_and_an_empty_queue(broker, queue, find):
    found = find(broker, queue)
    assert [*found] == ["queue"]
    assert found["queue"].verdict is Verdict.NOTE
    assert queue in found["queue"].value
    broker.create_queue(queue)
    assert "empty" in find(broker, queue)["body types"].value


def test_a_topic_is_a_problem(broker, queue, open_link):
    with JmsClient(broker) as java:
        java.send(f"topic://{queue}", "nobody subscribes")
    found = name_finding(open_link(broker), queue)
    assert (found.verdict, found.value) == (Verdict.PROBLEM, f"{queue} is a topic on the broker, and no queue.")


def test_a_fully_qualified_name(broker, queue, find):
    broker.create_queue(queue)
    assert find(broker, f"{queue}::{queue}")["queue"].value.startswith(f"{queue}: 0 messages")


def test_a_paused_queue(broker, queue, find):
    broker.create_queue(queue)
    broker.server.locateQueue(queue).pause()
    found = find(broker, queue)["queue"]
    assert found.value.endswith("the queue is paused")
    assert found.verdict is Verdict.NOTE


def test_dead_letter_addresses(guarded, queue, find):
    guarded.create_queue(queue)
    guarded.create_queue(f"brittle.{queue}")
    guarded.create_queue(f"patient.{queue}")
    usual, brittle, patient = (find(guarded, prefix + queue)["dead letters"] for prefix in ("", "brittle.", "patient."))
    assert usual.details == {"maxDeliveryAttempts": 10, "deadLetterAddress": "DLQ", "deadLetters": 0}
    assert (brittle.verdict, brittle.details) == (Verdict.NOTE, {"maxDeliveryAttempts": 3})
    assert (patient.verdict, patient.details) == (Verdict.FINE, {})


# --- the types of bodies -----------------------------------------------------------------------------


def listed(*codes):
    return [{"type": code} for code in codes]


def test_codes_become_body_types():
    assert count_kinds(listed(0, 2, 3, 3, 4, 5, 6)) == Counter(
        {
            BodyKind("message"): 1,
            BodyKind("object"): 1,
            BodyKind("text"): 2,
            BodyKind("bytes"): 1,
            BodyKind("map"): 1,
            BodyKind("stream"): 1,
        }
    )
    assert count_kinds([*listed(1, 7, -1, "3", None), {}]) == Counter({BodyKind("other"): 6})


def test_messages_of_amqp_clients_have_an_annotation():
    messages = [{"x-opt-jms-msg-type": code} for code in (0, 1, 2, 3, 4, 5, 5, 6)]
    assert describe_counts(count_kinds(messages)) == ("bytes 1, map 1, message 1, object 1, other 1, stream 1, text 2")


def test_the_marker_is_the_body_type_of_an_envelope():
    messages = [{"type": 3, BODY_MARKER: "map"}, {"type": 4, BODY_MARKER: "object"}, {"type": 3, BODY_MARKER: "secret"}]
    assert count_kinds(messages) == Counter(
        {BodyKind("map", True): 1, BodyKind("object", True): 1, BodyKind("text"): 1}
    )
    assert describe_counts(count_kinds(messages)) == "map (envelope) 1, object (envelope) 1, text 1"


@pytest.mark.parametrize("kind", ["map", "object", "stream"])
def test_bodies_that_are_lost_unless_in_an_envelope(kind):
    (sentence,) = describe_losses([BodyKind(kind), BodyKind("text")], LOSSES)
    assert sentence.startswith(f"{kind.capitalize()} bodies ")
    assert (
        describe_losses(
            [BodyKind(kind, True), BodyKind("text"), BodyKind("bytes"), BodyKind("message"), BodyKind("other")], LOSSES
        )
        == []
    )


def test_the_finding_of_body_types():
    fine = body_types_finding(Counter({BodyKind("text"): 1_500}), 1_500, LOSSES)
    assert (fine.verdict, fine.value, fine.advice) == (Verdict.FINE, "text 1,500 (all 1,500)", "")
    part = body_types_finding(Counter({BodyKind("text"): 200}), 5_000, LOSSES)
    assert (part.verdict, part.value) == (Verdict.NOTE, "text 200 (the first 200 of 5,000)")
    assert "--receive" in part.advice
    bad = body_types_finding(Counter({BodyKind("text"): 2, BodyKind("map"): 1}), 5_000, LOSSES)
    assert bad.verdict is Verdict.PROBLEM
    assert bad.advice.startswith("Map bodies ")
    assert bad.details == {"seen": 3, "bodyTypes": {"text": 2, "map": 1}}


def test_no_listed_message():
    assert "empty" in body_types_finding(Counter(), 0, LOSSES).value
    assert body_types_finding(Counter(), 0, LOSSES).verdict is Verdict.FINE
    assert body_types_finding(Counter(), 3, LOSSES).verdict is Verdict.NOTE
