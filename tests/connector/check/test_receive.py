"""Messages taken and given back: what came, what did not, and that nothing is different afterwards."""

import pytest
from rawstomp import RawStomp

from pyspark_jms.check.findings import Verdict
from pyspark_jms.check.queue import Queue
from pyspark_jms.check.receive import _Came, receive_findings
from pyspark_jms.stomp.dialects.management import ARTEMIS_MANAGEMENT as WORDS
from pyspark_jms.testing import JmsClient


@pytest.mark.broker
def test_what_came_and_what_did_not(broker, queue, settings_for, asks, named):
    with JmsClient(broker) as java:
        for body in ([1], "first", b"bytes", {"a": 1}, [2], [1, "x"], "last", [3]):
            java.send(queue, body)
    found = named(receive_findings(settings_for(broker), queue, 10_000, Queue(asks(broker), queue)))
    assert found["received"].figures["received"] == 5
    assert found["bodies delivered"].figures["bodyTypes"] == {"stream": 4, "text": 2, "bytes": 1, "map": 1}
    assert found["not received"].figures == {"bodyTypes": {"stream": 3}}
    assert found["not received"].verdict is Verdict.PROBLEM
    assert broker.delivery_counts(queue) == [0] * 8


@pytest.mark.broker
def test_only_messages_that_never_come(broker, queue, settings_for, asks, named):
    with JmsClient(broker) as java:
        java.send(queue, [1])
    found = named(receive_findings(settings_for(broker), queue, 10_000, Queue(asks(broker), queue)))
    assert found["received"].value == "0 messages, given back: nothing"
    assert found["not received"].figures == {"bodyTypes": {"stream": 1}}


@pytest.mark.broker
def test_many_and_no_more_than_asked_for(broker, queue, settings_for, asks, named):
    with RawStomp(broker) as client:
        client.send(queue, [([("n", n)], "x" * 100) for n in range(3_000)])
    found = named(receive_findings(settings_for(broker), queue, 10_000, Queue(asks(broker), queue)))
    assert found["received"].figures["bodyTypes"] == {"text": 3_000}
    assert found["bodies delivered"].value == "text 3,000 (all 3,000)"
    assert found["not received"].verdict is Verdict.FINE
    some = named(receive_findings(settings_for(broker), queue, 10, None))
    assert some["received"].figures["received"] >= 10
    assert [*some] == ["received"]
    assert broker.message_count(queue) == 3_000
    assert set(broker.delivery_counts(queue)) == {0}


@pytest.mark.broker
def test_without_the_permission_to_ask(broker, queue, settings_for, named):
    with JmsClient(broker) as java:
        for body in ("text", {"a": 1}, None):
            java.send(queue, body)
    (found,) = receive_findings(settings_for(broker), queue, 10_000, None)
    assert found.value == "3 messages, given back: text 3; 2 texts are empty"
    assert found.verdict is Verdict.NOTE


def held(*types):
    return [{"messageID": number, "type": kind} for number, kind in enumerate(types)]


def test_a_text_that_is_late_is_not_missing_and_one_passed_over_is():
    messages = held(3, 6, 3, 3, 6)
    missing = _Came(["7,0", "7,2"], ",").missing(messages, WORDS)
    assert [message["messageID"] for message in missing] == [1, 4]
    missing = _Came(["7,2"], ",").missing(messages, WORDS)
    assert [message["messageID"] for message in missing] == [0, 1, 4]


def test_our_own_deliveries_are_told_from_those_of_others():
    delivering = {"ServerConsumer [id=a:b:7, f": held(3), "ServerConsumer [id=a:c:77, f": held(6, 6)}
    assert _Came(["7,0"], ",").ours(delivering) == held(3)
    assert _Came([], ",").ours(delivering) == held(3) + held(6, 6)
