"""Messages that are received and given back, and messages that cannot be received."""

import pytest
from amqp_messages import application_properties, section, string, timestamp
from amqp_sending import put_encoded
from numbered import sending_on_and_on
from rawstomp import RawStomp
from waiting import await_count, await_value, wait_until

from pyspark_jms.errors import UnconvertibleMessageError
from pyspark_jms.management.attributes import ARTEMIS_MANAGEMENT
from pyspark_jms.stomp.source import StompSource
from pyspark_jms.testing import JmsClient
from pyspark_jms.tools.check import receive
from pyspark_jms.tools.check.findings import Verdict
from pyspark_jms.tools.check.queue import Queue
from pyspark_jms.tools.check.receive import _ReceivedIds, receive_findings
from pyspark_jms.tools.check.run import Check, run_checks

LOSSES = ARTEMIS_MANAGEMENT.losses


def over_stomp(*arguments):
    return receive_findings(StompSource(), *arguments, loses_bodies=True)


def test_received_and_missing_messages_are_counted(broker, queue, settings_for, open_link, named):
    with JmsClient(broker) as java:
        for body in ([1], "first", b"bytes", {"a": 1}, [2], [1, "x"], "last", [3]):
            java.send(queue, body)
    found = named(over_stomp(settings_for(broker), queue, 10_000, Queue(open_link(broker), queue)))
    assert found["received"].details["received"] == 5
    assert found["bodies delivered"].details["bodyTypes"] == {"stream": 4, "text": 2, "bytes": 1, "map": 1}
    assert found["not received"].details == {"bodyTypes": {"stream": 3}}
    assert found["not received"].verdict is Verdict.PROBLEM
    await_value(lambda: broker.delivery_counts(queue), [0] * 8)


def test_the_limit_ends_receiving(broker, queue, settings_for, open_link, named):
    with RawStomp(broker) as client:
        client.send(queue, [([("n", n)], "x" * 100) for n in range(1_200)])
    found = named(over_stomp(settings_for(broker), queue, 10_000, Queue(open_link(broker), queue)))
    assert found["received"].details["bodyTypes"] == {"text": 1_200}
    assert found["bodies delivered"].value == "text 1,200 (all 1,200)"
    assert found["not received"].verdict is Verdict.FINE
    some = named(over_stomp(settings_for(broker), queue, 10, None))
    assert some["received"].details["received"] >= 10
    assert [*some] == ["received"]
    await_count(broker, queue, 1_200)
    await_value(lambda: set(broker.delivery_counts(queue)), {0})


def test_a_producer_that_is_never_quiet_does_not_hold_the_check(broker, queue, settings_for, monkeypatch):
    monkeypatch.setattr(receive, "_LONGEST_SECONDS", 1.0)
    monkeypatch.setattr(receive, "_LATE_SECONDS", 0.1)
    with sending_on_and_on(broker, queue, pause_seconds=0.05) as sent:
        wait_until(lambda: sent)
        (found,) = over_stomp(settings_for(broker), queue, 10_000, None)
    assert found.name == "received"
    await_value(lambda: broker.delivery_counts(queue), [0] * len(sent))
    broker.purge(queue)


def test_a_queue_that_does_not_exist_is_not_created(broker, queue, settings_for):
    (found,) = over_stomp(settings_for(broker), queue, 10_000, None)
    assert (found.name, found.value) == ("received", "nothing: a subscription would create the queue")
    assert not broker.has_queue(queue)


def test_without_management(broker, queue, settings_for, named):
    with JmsClient(broker) as java:
        for body in ("text", {"a": 1}, None):
            java.send(queue, body)
    (found,) = over_stomp(settings_for(broker), queue, 10_000, None)
    assert found.details == {"received": 3, "bodyTypes": {"text": 3}, "emptyTexts": 2}
    assert found.verdict is Verdict.NOTE


def listed(*types):
    return [{"messageID": number, "type": kind} for number, kind in enumerate(types)]


def test_a_late_text_is_not_missing_but_one_before_a_received_message_is():
    messages = listed(3, 6, 3, 3, 6)
    not_received = _ReceivedIds(["7,0", "7,2"]).not_received(messages, LOSSES)
    assert [message["messageID"] for message in not_received] == [1, 4]
    not_received = _ReceivedIds(["7,2"]).not_received(messages, LOSSES)
    assert [message["messageID"] for message in not_received] == [0, 1, 4]


def test_own_deliveries_are_distinguished_from_others():
    delivering = {"ServerConsumer [id=a:b:7, f": listed(3), "ServerConsumer [id=a:c:77, f": listed(6, 6)}
    assert _ReceivedIds(["7,0"]).delivered_to_us(delivering) == listed(3)
    assert _ReceivedIds([]).delivered_to_us(delivering) == listed(3) + listed(6, 6)


def test_a_message_that_cannot_be_sent_over_stomp_is_the_error(broker, queue, settings_for):
    """Its neighbours are given back, with one attempt less."""
    put_encoded(broker, queue, [section(0x77, string("before"))])
    put_encoded(broker, queue, [application_properties(t=timestamp(1)) + section(0x77, string("only over AMQP"))])
    with pytest.raises(UnconvertibleMessageError, match=r"\[JMS_UNCONVERTIBLE_MESSAGE\].*windowBytes=1"):
        list(over_stomp(settings_for(broker), queue, 10_000, None))
    await_value(lambda: broker.delivery_counts(queue), [1, 1])
    request = Check(settings=settings_for(broker), queue=queue, receive=True)
    last = run_checks(request)[-1]
    assert (last.name, last.verdict) == ("received messages", Verdict.PROBLEM)
    assert last.value.startswith("[JMS_UNCONVERTIBLE_MESSAGE] ")
    broker.purge(queue)
