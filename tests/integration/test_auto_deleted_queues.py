"""Exactly-once reads on an Artemis that deletes empty queues, as it does without auto-delete-queues=false."""

import logging

import pytest
from amqp_sending import put
from configured_artemis import ConfiguredArtemis
from registers import ReaderQuery
from waiting import wait_until

from pyspark_jms.errors import JMSSecurityError
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


def test_a_queue_that_never_was_there_is_an_error_with_the_right_remedy(artemis):
    put(artemis, "orders.five", "five")
    running = query(artemis, '["orders.five", "orders.missing"]')
    with pytest.raises(JMSSecurityError, match=r"this user may not create it.*auto-delete-queues"):
        running.plan()
    running.source.stop()
