"""Metrics beside a real reader, and what becomes of them when the broker or the permission is gone."""

import datetime as dt
import json
import logging
import re

import pytest
from proxy import Proxy
from waiting import wait_until

from pyspark_jms.jms.features import Feature
from pyspark_jms.management.queue_watch import QueueWatch
from pyspark_jms.testing import JmsClient

SOON = 0.1
stomp_only = pytest.mark.parametrize("protocol", ["stomp"], indirect=True)


@pytest.fixture
def watch(open_link):
    """``watch(settings, queues, in_flight)``: closed at the end."""
    watches = []

    def watch(settings, queues, in_flight=lambda: 0, received=None, every=SOON, **more):
        watches.append(QueueWatch(open_link, settings, queues, in_flight, received, every=every, **more))
        return watches[-1]

    yield watch
    for started in watches:
        started.close()


def depths(watched):
    return {name: value for name, value in watched.metrics().items() if name not in {"consumers", "depthTime"}}


def test_the_consumers_and_when_the_broker_was_first(broker, queue, settings_for, consume, watch):
    broker.create_queue(queue)
    watched = watch(settings_for(broker), [queue])
    wait_until(lambda: watched.metrics().get("consumers") == 0)
    first = dt.datetime.fromisoformat(watched.metrics()["depthTime"])
    assert abs((dt.datetime.now(dt.UTC) - first).total_seconds()) < 60
    consume(settings_for(broker), queue)
    wait_until(lambda: watched.metrics().get("consumers") == 1)
    assert dt.datetime.fromisoformat(watched.metrics()["depthTime"]) > first


@stomp_only
def test_each_request_notes_what_is_delivered_to_nobody(broker, queue, settings_for, consume, watch):
    with JmsClient(broker) as java:
        java.send(queue, "text")
    noted = []
    watch(settings_for(broker), [queue], note_undelivered=noted.append)
    wait_until(lambda: noted[-2:] == [1, 1])
    consume(settings_for(broker), queue)
    wait_until(lambda: noted[-1] == 0)


@pytest.mark.parametrize("kept", [True, False])
def test_a_queue_that_keeps_what_is_in_flight_is_told_once(
    broker, queue, settings_for, consume, watch, open_link, kept, caplog
):
    configuration = {"name": queue, "address": queue, "routing-type": "ANYCAST", "non-destructive": kept}
    with open_link(settings_for(broker)) as link:
        link.operation("broker", "createQueue", json.dumps(configuration))
    with JmsClient(broker) as java:
        java.send(queue, "text")
    noted = []
    with caplog.at_level(logging.WARNING):
        reader = consume(settings_for(broker), queue)
        wait_until(lambda: reader.waiting()[0] == 1)
        watch(settings_for(broker), [queue], note_undelivered=noted.append, features=[(Feature.AT_LEAST_ONCE_READ, 1)])
        wait_until(lambda: len(noted) > 4)
    told = [record.getMessage() for record in caplog.records if queue in record.getMessage()]
    assert len(told) == kept
    assert all("is non-destructive" in line and "reads all its messages again" in line for line in told)


@stomp_only
def test_what_is_held_and_what_is_stuck(broker, queue, settings_for, consume, watch):
    with JmsClient(broker) as java:
        for body in ("text", ["never put on the wire"], b"bytes", [True]):
            java.send(queue, body)
    reader = consume(settings_for(broker), queue)
    watched = watch(settings_for(broker), [queue], in_flight=lambda: reader.waiting()[0])
    wait_until(lambda: depths(watched) == {"depth": 4, "delivering": 4, "stuckInDelivery": 2})
    reader.close()
    wait_until(lambda: depths(watched) == {"depth": 4, "delivering": 0})  # nobody reads: none can be stuck


def test_several_queues_add_up_and_another_reader_makes_it_unknown(broker, queue, settings_for, consume, watch):
    names = [f"{queue}.a", f"{queue}.b"]
    with JmsClient(broker) as java:
        for name in names:
            java.send(name, "text")
    readers = [consume(settings_for(broker), name) for name in names]
    watched = watch(settings_for(broker), names, in_flight=lambda: sum(reader.waiting()[0] for reader in readers))
    wait_until(lambda: depths(watched) == {"depth": 2, "delivering": 2, "stuckInDelivery": 0})
    consume(settings_for(broker), names[0])
    wait_until(lambda: depths(watched) == {"depth": 2, "delivering": 2})


def test_a_missing_one_of_several_queues_does_not_hide_the_others(broker, queue, settings_for, watch):
    """As where the broker has deleted an empty queue, and the query reads the others."""
    with JmsClient(broker) as java:
        java.send(queue, "text")
    watched = watch(settings_for(broker), [queue, f"{queue}.gone"])
    wait_until(lambda: depths(watched).get("depth") == 1)


def test_undelivered_messages_are_due_and_in_flight_to_nobody(broker, queue, settings_for, watch):
    with JmsClient(broker) as java:
        java.send(queue, "due")
        java.send(queue, "later", delivery_delay=86_400_000)
    received = [7]
    watched = watch(settings_for(broker), [queue], received=lambda: received[0], every=600)
    wait_until(lambda: depths(watched) == {"depth": 2, "delivering": 0, "undelivered": 1})
    received = [8]  # what was received since the request was undelivered then
    assert watched.metrics()["undelivered"] == 0


def test_without_the_permission_one_log_line_says_so(restricted, settings_for, watch, caplog):
    caplog.set_level(logging.INFO, "pyspark_jms.link")
    watched = watch(settings_for(restricted, user="reader"), ["DLQ"])
    wait_until(lambda: not watched._thread.is_alive())
    assert watched.metrics() == {}
    reported = [record.getMessage() for record in caplog.records if "no metrics" in record.getMessage()]
    assert len(reported) == 1
    assert "permission manage" in reported[0]


def test_metrics_go_with_the_connection_and_come_back(broker, queue, settings_for, watch, proxied, port_of):
    broker.create_queue(queue)
    with Proxy(broker.host, port_of(broker)) as proxy:
        watched = watch(settings_for(broker, url=proxied(proxy)), [queue])
        wait_until(lambda: depths(watched) == {"depth": 0, "delivering": 0})
        proxy.refuse()
        proxy.cut()
        wait_until(lambda: watched.metrics() == {})
        proxy.accept()
        wait_until(lambda: depths(watched) == {"depth": 0, "delivering": 0})
        watched.close()


def test_a_queue_that_is_not_there_yet(broker, queue, settings_for, watch):
    watched = watch(settings_for(broker), [queue])
    assert watched.metrics() == {}
    broker.create_queue(queue)
    wait_until(lambda: depths(watched) == {"depth": 0, "delivering": 0})


def _answered(body):
    """The answer of a real broker that lists a queue, with another body."""

    def alter(data):
        answer = b"content-length:%d\n\n%b\0" % (len(body), body)
        return re.sub(rb'content-length:\d+\n\n\["\{\\"data.*?\0', lambda _: answer, data, flags=re.DOTALL)

    return alter


ODD = [b'["many"]', b"[null]", b'"5"', b"[1, 2]", b"[", b"{}", b"[true]", b"[" * 20_000, b"\xff\xfe", b"[1e999]"]


@stomp_only
@pytest.mark.parametrize("body", ODD, ids=lambda body: repr(body[:9]))
def test_an_odd_answer_is_logged_once_and_first_for_again(broker, queue, settings_for, watch, caplog, body):
    broker.create_queue(queue)
    with Proxy(broker.host, broker.port) as proxy:
        proxy.to_client.alter = _answered(body)
        watched = watch(settings_for(broker, url=proxy.url), [queue])
        wait_until(lambda: proxy.accepted > 3)
        assert watched.metrics() == {}
        proxy.to_client.alter = lambda data: data
        wait_until(lambda: depths(watched) == {"depth": 0, "delivering": 0})
        watched.close()
    reported = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(reported) == 1
    assert reported[0].startswith("! the progress has no metrics of the broker for now: The broker")


def test_what_nobody_expected_is_one_line_too(broker, queue, settings_for, watch, caplog):
    broker.create_queue(queue)
    fails = [ZeroDivisionError, RecursionError, KeyError]

    def in_flight():
        if fails:
            raise fails.pop()
        return 0

    watched = watch(settings_for(broker), [queue], in_flight)
    wait_until(lambda: depths(watched) == {"depth": 0, "delivering": 0})
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "! the progress has no metrics of the broker for now: KeyError while the reply was read."
    ]
