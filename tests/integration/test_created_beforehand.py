"""A user without the permission to create queues, and the queues of docs/security.md: exactly-once."""

import json
import re
from pathlib import Path

import pytest
from amqp_sending import put
from commands import run
from configured_artemis import ConfiguredArtemis
from driver_runs import end, require_each_once, start, texts
from pyspark.errors import StreamingQueryException
from registers import ReaderQuery
from streaming import left, run_available

from pyspark_jms.errors import JMSSecurityError, MaxConsumersError
from pyspark_jms.testing import User

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
STATE = {"consume", "browse", "send"}
SPARK = User(
    "spark",
    "pw",
    permissions=(),
    at={
        "orders": {"consume", "browse"},
        "answers": {"send"},
        "orders.staging.#": STATE,
        "pyspark-jms.commits.#": STATE,
    },
)
"""As the page grants it. It may create nothing, and it has no management."""


def prepared_broker(limit=' max-consumers="1"'):
    """Its broker.xml has the addresses of the page."""
    [block] = re.findall(r"```xml\n<addresses>\n(.*?)</addresses>\n```", PAGE.read_text(), re.DOTALL)
    block = block.replace(' max-consumers="1"', limit)
    return ConfiguredArtemis(users=[SPARK], replaced=[("<addresses>", f"<addresses>{block}")])


def create(broker, name):
    """As ``artemis queue create`` does, for a ledger."""
    control = broker.server.getActiveMQServerControl()
    control.createQueue(name, "MULTICAST", name, None, True, 1, False, True)


@pytest.fixture
def prepared():
    with prepared_broker() as broker:
        yield broker


LIMITED = {"user": SPARK.name, "password": SPARK.password, "stagingQueue": "orders.staging"}


def limited(broker, **options):
    return {"brokerUrl": broker.amqp_url, "deliveryGuarantee": "exactly-once", **LIMITED, **options}


@pytest.mark.deep
@pytest.mark.broker
def test_a_read_with_the_queues_of_the_page(prepared, tmp_path):
    put(prepared, "orders", *texts(0, 60))
    assert end(start(prepared, "orders", tmp_path, "planned", 2, **LIMITED), -9)
    put(prepared, "orders", *texts(60, 70))
    assert end(start(prepared, "orders", tmp_path, **LIMITED)) == 0
    require_each_once(prepared, "orders", tmp_path, 70)


@pytest.mark.broker
def test_a_read_by_readers_with_the_queues_of_the_page(prepared, capsys):
    running = ReaderQuery(prepared, queue="orders", readers=2, maxMessagesPerTrigger=20, **LIMITED)
    for first in (0, 60):
        put(prepared, "orders", *texts(first, first + 60))
        assert sorted(running.texts(60)) == sorted(texts(first, first + 60))
        running.source.stop()
        running.start()
    running.source.stop()
    assert left(prepared, "orders") == 0
    run(limited(prepared), "check", "--staging-queue", "orders.staging.1")
    assert "orders.staging.1 has the lock of one query, and this user may use it" in capsys.readouterr().out
    put(prepared, "orders", "one")
    other = ReaderQuery(prepared, queue="orders", **LIMITED | {"stagingQueue": "orders.staging.other"})
    named = r"the address orders\.staging\.other\.0 with the multicast queue orders\.staging\.other\.0"
    with pytest.raises(JMSSecurityError, match=named):
        other.plan()
    other.source.stop()
    run(limited(prepared), "check", "--staging-queue", "orders.staging.2")
    missing = "Create the address orders.staging.2 with the multicast queue orders.staging.2"
    assert missing in " ".join(capsys.readouterr().out.split())


@pytest.mark.broker
def test_a_queue_of_a_reader_without_a_limit_of_consumers_is_refused():
    with prepared_broker(limit="") as broker:
        put(broker, "orders", "text")
        running = ReaderQuery(broker, queue="orders", readers=2, **LIMITED)
        with pytest.raises(MaxConsumersError, match=r"orders\.staging\.0::orders\.staging\.0"):
            running.plan()
        running.source.stop()
        assert left(broker, "orders", 1) == 1


def answers_of(broker):
    """How the queue is written to exactly once."""
    target = limited(broker, queue="answers")
    del target["stagingQueue"]
    return target


@pytest.mark.deep
@pytest.mark.broker
def test_a_query_from_queue_to_queue(spark, prepared, tmp_path):
    for name in ("orders", "answers"):
        prepared.create_queue(name)
    put(prepared, "orders", *texts(0, 100))
    options = limited(prepared, queue="orders", maxMessagesPerTrigger="40")
    frame = spark.readStream.format("jms").options(**options).load().select("text")
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(StreamingQueryException, match=r"pyspark-jms\.commits\.[^ ]+\.token"):
        run_available(frame, checkpoint, "jms", **answers_of(prepared))
    query = json.loads((checkpoint / "metadata").read_text())["id"]
    ledger = f"pyspark-jms.commits.{query}.token"
    create(prepared, ledger)
    run_available(frame, checkpoint, "jms", **answers_of(prepared))
    assert left(prepared, "orders") == 0
    put(prepared, "orders", *texts(100, 110))
    run_available(frame, checkpoint, "jms", **answers_of(prepared))
    assert left(prepared, "answers", 110) == 110


@pytest.mark.broker
@pytest.mark.deep
def test_a_job_makes_the_first_token_of_its_ledger(spark, prepared):
    """After 30 s without one."""
    prepared.create_queue("answers")
    rows = spark.createDataFrame([("one",)], "text STRING")
    create(prepared, "pyspark-jms.commits.job.nightly.token")
    for _ in range(2):
        rows.write.format("jms").options(**answers_of(prepared), writeId="job:nightly/1").mode("append").save()
    assert left(prepared, "answers", 1) == 1
