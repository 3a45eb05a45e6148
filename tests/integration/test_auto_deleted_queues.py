"""Reads on an Artemis that deletes empty queues, as it does without auto-delete-queues=false."""

import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from amqp_sending import put
from broker_rows import access_over
from configured_artemis import ConfiguredArtemis
from registers import ReaderQuery
from waiting import wait_until

from pyspark_jms.errors import InvalidDestinationError, JMSSecurityError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.receiver import BatchReceiver
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.testing import User

pytestmark = pytest.mark.broker

NO_DELETION = "<auto-delete-queues>false</auto-delete-queues><auto-delete-addresses>false</auto-delete-addresses>"
SPARK = User(
    "spark",
    "pw",
    permissions=(),
    at={
        "orders.#": {"consume", "browse"},
        "pyspark-jms.staging.#": {"createAddress", "createDurableQueue", "consume", "browse", "send"},
    },
)
"""As docs/security.md grants it for a queue that exists."""


@pytest.fixture(scope="module")
def artemis():
    scans = "<address-queue-scan-period>100</address-queue-scan-period>"
    with ConfiguredArtemis(core=scans, replaced=[(NO_DELETION, "")], users=[SPARK]) as broker:
        yield broker


def query(artemis, *queues):
    return ReaderQuery(artemis, queue=queues[0], user=SPARK.name, password=SPARK.password)


def test_a_queue_that_was_deleted_has_no_message(artemis, caplog):
    caplog.set_level(logging.WARNING, "pyspark_jms")
    put(artemis, "orders.one", "a", "b")
    running = query(artemis, "orders.one")
    assert running.texts(2) == ["a", "b"]
    for _ in range(2):
        wait_until(lambda: not artemis.has_queue("orders.one"))
        assert not running.plan()
        assert not running.plan()
        running.source.stop()
        running.start()
    assert not running.plan()
    warned = [each.getMessage() for each in caplog.records if "not on the broker any more" in each.getMessage()]
    assert len(warned) == 3, "once in each run"
    assert warned[0].startswith("! orders.one is not on the broker any more")
    put(artemis, "orders.one", "c")
    assert running.texts(1) == ["c"]
    running.source.stop()


def test_a_task_reads_the_queues_that_are_there(artemis):
    for name in ("two", "three"):
        put(artemis, f"orders.{name}", name)
    running = query(artemis, '["orders.two", "orders.three"]')
    assert sorted(running.texts(2)) == ["three", "two"]
    wait_until(lambda: not artemis.has_queue("orders.two"))
    put(artemis, "orders.three", "four")
    assert running.texts(1) == ["four"]
    running.source.stop()


@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_an_at_least_once_read_waits_for_its_queue_and_a_new_one_does_not(artemis, caplog, protocol):
    caplog.set_level(logging.WARNING, "pyspark_jms")
    name = f"orders.again.{protocol}"
    put(artemis, name, "a")
    given = access_over(artemis, protocol) | {"queue": name, "user": SPARK.name, "password": SPARK.password}
    reading = reading_of(SourceOptions.parse(given))
    receiver = BatchReceiver(reading, StopRequest(), store=None, sequence=0)
    with closing(receiver), ThreadPoolExecutor(1) as thread:
        wait_until(lambda: receiver.next_batch_end() == 1)
        receiver.acknowledge_through(1)
        wait_until(lambda: receiver.next_batch_end() and receiver.progress()["acknowledged"] == 1)
        receiver.links[0].connection.drop()
        wait_until(lambda: not artemis.has_queue(name))
        with pytest.raises((JMSSecurityError, InvalidDestinationError)):
            BatchReceiver(reading, StopRequest(), store=None, sequence=0)
        waiting = thread.submit(lambda: wait_until(lambda: receiver.next_batch_end() == 2))
        wait_until(lambda: "reconnecting to" in caplog.text)
        put(artemis, name, "b")
        waiting.result()


def test_a_queue_that_never_was_there_is_an_error_with_the_right_remedy(artemis):
    put(artemis, "orders.five", "five")
    running = query(artemis, '["orders.five", "orders.missing"]')
    with pytest.raises(JMSSecurityError, match=r"this user may not create it.*auto-delete-queues"):
        running.plan()
    running.source.stop()
