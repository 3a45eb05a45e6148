"""Figures beside a real reader, and what becomes of them when the broker or the permission is gone."""

import datetime as dt
import logging

import pytest
from proxy import Proxy

from pyspark_jms.link.queue_watch import QueueWatch
from pyspark_jms.testing import EmbeddedArtemis, JmsClient, User

SOON = 0.1


@pytest.fixture
def watch():
    """``watch(settings, queues, held)``: closed at the end."""
    watches = []

    def watch(settings, queues, held=lambda: 0):
        watches.append(QueueWatch(settings, queues, held, every=SOON))
        return watches[-1]

    yield watch
    for started in watches:
        started.close()


def depths(watched):
    return {name: value for name, value in watched.figures().items() if name not in {"consumers", "depthTime"}}


def test_the_consumers_and_when_the_broker_was_asked(broker, queue, settings_for, consume, watch, eventually):
    broker.create_queue(queue)
    watched = watch(settings_for(broker), [queue])
    eventually(lambda: watched.figures().get("consumers") == 0)
    asked = dt.datetime.fromisoformat(watched.figures()["depthTime"])
    assert abs((dt.datetime.now(dt.UTC) - asked).total_seconds()) < 60
    consume(settings_for(broker), queue)
    eventually(lambda: watched.figures().get("consumers") == 1)
    assert dt.datetime.fromisoformat(watched.figures()["depthTime"]) > asked


def test_what_is_held_and_what_is_stuck(broker, queue, settings_for, consume, watch, eventually):
    with JmsClient(broker) as java:
        for body in ("text", ["never put on the wire"], b"octets", [True]):
            java.send(queue, body)
    reader = consume(settings_for(broker), queue)
    watched = watch(settings_for(broker), [queue], held=lambda: reader.waiting()[0])
    eventually(lambda: depths(watched) == {"depth": 4, "delivering": 4, "stuckInDelivery": 2})
    reader.close()
    eventually(lambda: depths(watched) == {"depth": 4, "delivering": 0})  # nobody reads: none can be stuck


def test_several_queues_add_up_and_another_reader_makes_it_unknown(
    broker, queue, settings_for, consume, watch, eventually
):
    names = [f"{queue}.a", f"{queue}.b"]
    with JmsClient(broker) as java:
        for name in names:
            java.send(name, "text")
    readers = [consume(settings_for(broker), name) for name in names]
    watched = watch(settings_for(broker), names, held=lambda: sum(reader.waiting()[0] for reader in readers))
    eventually(lambda: depths(watched) == {"depth": 2, "delivering": 2, "stuckInDelivery": 0})
    consume(settings_for(broker), names[0])
    eventually(lambda: depths(watched) == {"depth": 2, "delivering": 2})


def test_a_fully_qualified_name(broker, queue, settings_for, watch, eventually):
    broker.create_queue(queue)
    watched = watch(settings_for(broker), [f"{queue}::{queue}"])
    eventually(lambda: depths(watched) == {"depth": 0, "delivering": 0})


def test_who_may_not_ask_is_told_once(settings_for, watch, eventually, caplog):
    caplog.set_level(logging.INFO, "pyspark_jms.link")
    with EmbeddedArtemis(users=[User("reader", "pw", permissions={"consume", "browse"})]) as broker:
        watched = watch(settings_for(broker, user="reader"), ["DLQ"])
        eventually(lambda: not watched._thread.is_alive())
    assert watched.figures() == {}
    told = [record.getMessage() for record in caplog.records if "no figures" in record.getMessage()]
    assert len(told) == 1
    assert "permission manage" in told[0]


def test_figures_go_with_the_connection_and_come_back(broker, queue, settings_for, watch, eventually):
    broker.create_queue(queue)
    with Proxy(broker.host, broker.port) as proxy:
        watched = watch(settings_for(broker, url=f"stomp://{proxy.host}:{proxy.port}"), [queue])
        eventually(lambda: depths(watched) == {"depth": 0, "delivering": 0})
        proxy.refuse()
        proxy.cut()
        eventually(lambda: watched.figures() == {})
        proxy.accept()
        eventually(lambda: depths(watched) == {"depth": 0, "delivering": 0})
        watched.close()


def test_a_queue_that_is_not_there_yet(broker, queue, settings_for, watch, eventually):
    watched = watch(settings_for(broker), [queue])
    assert watched.figures() == {}
    broker.create_queue(queue)
    eventually(lambda: depths(watched) == {"depth": 0, "delivering": 0})
