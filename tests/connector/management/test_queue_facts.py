import dataclasses
import json
import logging
import re
from dataclasses import replace

import pytest
from old_brokers import EmbeddedArtemis244, OldArtemis
from proxy import Proxy
from rawstomp import RawStomp
from waiting import wait_until

from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.management.queue_facts import QueueFacts, keeps_delivered, look_up_queues, queue_facts, warn_of_missing
from pyspark_jms.network.address import Address


@pytest.fixture(autouse=True)
def _warnings(caplog):
    caplog.set_level(logging.WARNING, "pyspark_jms")


def test_a_queue_that_is_not_there_is_warned_of_and_not_made(broker, settings_for, open_link, queue, caplog):
    broker.create_queue(f"{queue}.there")
    names = [f"{queue}.there", f"{queue}.Thre", f"{queue}.there::{queue}.there", f"{queue}.there::other-{queue}"]
    missing = (f"{queue}.Thre", f"{queue}.there::other-{queue}")
    assert warn_of_missing(look_up_queues(open_link, settings_for(broker), names).values()) == missing
    warned = [record.getMessage() for record in caplog.records]
    assert len(warned) == 2
    assert warned[0].startswith(f"! queue {queue}.Thre does not exist on the broker. This query creates it")
    assert not broker.has_queue(f"{queue}.Thre")


def test_patterns_are_not_asked_for(settings_for, open_link, broker, queue, caplog):
    assert warn_of_missing(look_up_queues(open_link, settings_for(broker), [f"{queue}.#", f"{queue}.*"]).values()) == ()
    assert caplog.text == ""


def test_who_may_not_ask_is_left_in_peace(restricted, settings_for, open_link, caplog):
    assert (
        warn_of_missing(look_up_queues(open_link, settings_for(restricted, user="worker"), ["missing"]).values()) == ()
    )
    assert caplog.text == ""


def test_a_broker_that_cannot_be_asked_or_reached(classic, settings_for, open_link, caplog):
    settings = settings_for(classic)
    assert warn_of_missing(look_up_queues(open_link, settings, ["missing"]).values()) == ()
    nobody = dataclasses.replace(settings, addresses=(Address("127.0.0.1", 1),))
    assert warn_of_missing(look_up_queues(open_link, nobody, ["missing"]).values()) == ()
    assert caplog.text == ""


@pytest.mark.parametrize("protocol", ["stomp"], indirect=True)
@pytest.mark.parametrize("body", [b"[" * 20_000, b"[1", b"\xff"], ids=lambda body: repr(body[:2]))
def test_an_odd_answer_does_not_end_a_query(broker, settings_for, open_link, queue, caplog, body):
    broker.create_queue(queue)

    def alter(data):
        return re.sub(rb'content-length:\d+\n\n\["[^"]*"\]', b"content-length:%d\n\n%b" % (len(body), body), data)

    with Proxy(broker.host, broker.port) as proxy:
        proxy.to_client.alter = alter
        settings = settings_for(broker, url=proxy.url)
        assert warn_of_missing(look_up_queues(open_link, settings, [queue]).values()) == ()
    assert not caplog.records


SETTINGS_OF_A_QUEUE = {
    "routing-type": "ANYCAST",
    "durable": True,
    "filter-string": "n = 1",
    "purge-on-no-consumers": True,
    "ring-size": 5,
    "last-value": True,
    "exclusive": True,
    "max-consumers": 3,
    "consumers-before-dispatch": 2,
}


def create(open_link, settings, name, **configuration):
    with open_link(settings) as link:
        link.operation("broker", "createQueue", json.dumps({"name": name, "address": name, **configuration}))


def test_the_facts_of_a_queue(broker, settings_for, open_link, queue):
    create(open_link, settings_for(broker), queue, **SETTINGS_OF_A_QUEUE)
    with open_link(settings_for(broker)) as link:
        link.queue_operation(queue, "pause")
        found = queue_facts(link, [queue, f"{queue}::{queue}"])
    expected = QueueFacts(
        name=queue,
        exists=True,
        address=queue,
        routing_type=DestinationKind.QUEUE,
        durable=True,
        filter="n = 1",
        purge_on_no_consumers=True,
        ring_size=5,
        last_value=True,
        exclusive=True,
        max_consumers=3,
        consumers_before_dispatch=2,
        auto_delete=False,
        paused=True,
        messages=0,
        delivering=0,
        scheduled=0,
        consumers=0,
        acknowledged=0,
    )
    assert found == {queue: expected, f"{queue}::{queue}": replace(expected, name=f"{queue}::{queue}")}


def test_a_queue_without_a_limit_has_none(broker, settings_for, open_link, queue):
    broker.create_queue(queue)
    with open_link(settings_for(broker)) as link:
        facts = queue_facts(link, [queue])[queue]
    assert (facts.ring_size, facts.max_consumers, facts.filter, facts.paused) == (None, None, None, False)


def test_an_answer_without_a_list_is_read_by_attributes(broker, settings_for, open_link, queue, monkeypatch):
    create(open_link, settings_for(broker), queue, **SETTINGS_OF_A_QUEUE)
    names = [queue, f"{queue}.missing"]
    with open_link(settings_for(broker)) as link:
        listed = {name: replace(facts, acknowledged=None) for name, facts in queue_facts(link, names).items()}
        for queues in (None, "notAnOperation"):
            link.words = replace(link.words, queues=queues)
            assert queue_facts(link, names) == listed


def test_many_queues_take_few_requests(broker, settings_for, open_link, queue):
    settings = settings_for(broker)
    names = [f"{queue}.{number}" for number in range(600)]
    with open_link(settings) as link:
        for name in names:
            configuration = {"name": name, "address": name, "routing-type": "ANYCAST"}
            link.operation("broker", "createQueue", json.dumps(configuration))
        requests, exchange = [], link._exchange
        link._exchange = lambda *request: requests.append(request) or exchange(*request)
        found = queue_facts(link, [*names, f"{queue}.missing"])
    assert [name for name, facts in found.items() if not facts.exists] == [f"{queue}.missing"]
    assert {facts.address for facts in found.values() if facts.exists} == set(names)
    assert len(requests) < 8


def test_the_queue_of_a_subscription_and_a_topic(broker, settings_for, open_link, queue):
    settings = settings_for(broker)
    create(open_link, settings, f"app.{queue}", address=queue, **{"routing-type": "MULTICAST"})
    with open_link(settings) as link:
        found = queue_facts(link, [queue, f"app.{queue}", f"{queue}::app.{queue}", f"{queue}.#"])
    topic = DestinationKind.TOPIC
    assert {name: (facts.exists, facts.address, facts.routing_type) for name, facts in found.items()} == {
        queue: (False, queue, topic),
        f"app.{queue}": (True, queue, topic),
        f"{queue}::app.{queue}": (True, queue, topic),
    }
    assert found[queue].is_topic
    assert {facts.name_to_read("::") for facts in found.values() if facts.exists} == {f"{queue}::app.{queue}"}


# --- what no attribute shows -------------------------------------------------------------------------


def shown_in_flight(open_link, settings, consume, names):
    """``keeps_delivered`` of each queue, while a consumer has its message."""
    found = []
    for name in names:
        link = consume(settings, name)
        wait_until(lambda link=link: link.waiting()[0] == 1)
        with open_link(settings) as management:
            found.append(keeps_delivered(management, name))
    return found


def test_a_message_in_flight_shows_whether_the_queue_is_non_destructive(
    broker, settings_for, open_link, consume, queue
):
    settings, names = settings_for(broker), [f"{queue}.ordinary", f"{queue}.table"]
    for name, non_destructive in zip(names, (False, True), strict=True):
        create(open_link, settings, name, **{"routing-type": "ANYCAST", "non-destructive": non_destructive})
        with open_link(settings) as management:
            assert keeps_delivered(management, name) is None, "nothing is in flight"
        with RawStomp(broker) as client:
            client.send(name, [((), "text")])
    assert shown_in_flight(open_link, settings, consume, names) == [False, True]


@pytest.mark.deep
@pytest.mark.parametrize("release", [EmbeddedArtemis244, OldArtemis])
def test_older_releases_show_the_same(release, settings_for, open_link, consume, queue):
    with release() as broker:
        settings = settings_for(broker)
        if release is not OldArtemis:  # which lists no messages in flight
            test_a_message_in_flight_shows_whether_the_queue_is_non_destructive(
                broker, settings_for, open_link, consume, queue
            )
        create(open_link, settings, queue, **SETTINGS_OF_A_QUEUE)
        with open_link(settings) as link:
            facts = queue_facts(link, [queue])[queue]
    assert (facts.ring_size, facts.max_consumers, facts.consumers_before_dispatch, facts.filter) == (5, 3, 2, "n = 1")
    assert (facts.last_value, facts.exclusive, facts.purge_on_no_consumers, facts.paused) == (True, True, True, False)
