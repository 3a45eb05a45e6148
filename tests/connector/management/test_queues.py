import dataclasses
import logging
import re

import pytest
from proxy import Proxy

from pyspark_jms.management.queues import warn_of_missing_queues
from pyspark_jms.network.address import Address
from pyspark_jms.testing import EmbeddedClassic


@pytest.fixture(autouse=True)
def _warnings(caplog):
    caplog.set_level(logging.WARNING, "pyspark_jms")


def test_a_queue_that_is_not_there_is_warned_of_and_not_made(broker, settings_for, open_link, queue, caplog):
    broker.create_queue(f"{queue}.there")
    names = [f"{queue}.there", f"{queue}.Thre", f"{queue}.there::{queue}.there", f"{queue}.there::other-{queue}"]
    missing = (f"{queue}.Thre", f"{queue}.there::other-{queue}")
    assert warn_of_missing_queues(open_link, settings_for(broker), names) == missing
    warned = [record.getMessage() for record in caplog.records]
    assert len(warned) == 2
    assert warned[0].startswith(f"! queue {queue}.Thre does not exist on the broker. This query creates it")
    assert not broker.has_queue(f"{queue}.Thre")


def test_patterns_are_not_asked_for(settings_for, open_link, broker, queue, caplog):
    assert warn_of_missing_queues(open_link, settings_for(broker), [f"{queue}.#", f"{queue}.*"]) == ()
    assert caplog.text == ""


def test_who_may_not_ask_is_left_in_peace(restricted, settings_for, open_link, caplog):
    assert warn_of_missing_queues(open_link, settings_for(restricted, user="worker"), ["missing"]) == ()
    assert caplog.text == ""


@pytest.fixture(scope="module")
def classic():
    with EmbeddedClassic() as broker:
        yield broker


@pytest.mark.broker
def test_a_broker_that_cannot_be_asked_or_reached(classic, settings_for, open_link, caplog):
    settings = settings_for(classic)
    assert warn_of_missing_queues(open_link, settings, ["missing"]) == ()
    nobody = dataclasses.replace(settings, addresses=(Address("127.0.0.1", 1),))
    assert warn_of_missing_queues(open_link, nobody, ["missing"]) == ()
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
        assert warn_of_missing_queues(open_link, settings, [queue]) == ()
    assert not caplog.records
