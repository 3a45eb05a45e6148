"""What is promised over AMQP, on every broker: reading, writing, a stop, a killed broker, selectors, topics, check.

`make test` has tests/integration/test_amqp.py, on Artemis.
"""

import functools
import re
import uuid
from contextlib import closing

import commands
import pytest
from amqp_brokers import AMQP_BROKERS
from amqp_sending import subscription_to
from batch_reads import assert_written_as_read, shown_of
from broker_rows import access_over
from chosen_brokers import BROWSE_ENDS, skip_as
from pyspark.errors import StreamingQueryException
from rabbit4 import Rabbit4, require_rabbit4
from streaming import batches_done, run_available
from waiting import await_count, wait_until

from pyspark_jms.network.connection import StateCondition
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.end_of_queue import EndOfQueue
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.testing import JmsClient, Typed

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.deep]

COUNT = 400


@pytest.fixture(scope="module", params=[*AMQP_BROKERS, "rabbitmq"])
def stage(request):
    if request.param == "rabbitmq":
        require_rabbit4("sid")
        with Rabbit4("sid") as broker:
            yield RabbitStage(request.param, broker)
        return
    with AMQP_BROKERS[request.param]() as broker:
        yield AmqpStage(request.param, broker)


@pytest.fixture
def queue():
    return f"q.{uuid.uuid4().hex[:8]}"


class AmqpStage:
    def __init__(self, name, broker):
        self.name, self.broker = name, broker

    @property
    def access(self):
        return access_over(self.broker, "amqp")

    @functools.cached_property
    def version(self):
        reading = reading_of(SourceOptions.parse(self.access | {"queue": "none"}))
        with closing(reading.connect(StateCondition())) as link:
            return re.search(r"/([\d.]+)", link.server)[1]

    def java(self):
        return JmsClient(self.broker.amqp_url, self.broker.user, self.broker.password)

    def put(self, destination, count=COUNT):
        with self.java() as java:
            for n in range(count):
                java.send(destination, f"text {n}", properties={"n": n})

    def take(self, queue, count):
        with self.java() as java:
            return java.receive_all(queue, count, timeout=30)

    def create(self, queue):
        """Before it is written to, where the broker creates none."""

    def stream(self, spark, **options):
        return spark.readStream.format("jms").options(**self.access, **options).load()


class RabbitStage(AmqpStage):
    """RabbitMQ creates no queue for a client of AMQP 1.0, and Java clients spell its addresses themselves."""

    def create(self, queue):
        self.broker.create_queue(queue)

    def put(self, destination, count=COUNT):
        self.create(destination)
        super().put(f"queue:///queues/{destination}", count)

    def take(self, queue, count):
        return super().take(f"/queues/{queue}", count)


def numbers_in(spark, folder):
    return sorted(row.n for row in spark.read.parquet(str(folder)).selectExpr("int(properties.n) n").collect())


def test_every_message_goes_through_spark(spark, stage, queue, tmp_path):
    target = f"{queue}.out"
    stage.put(queue)
    stage.create(target)
    assert spark.read.format("jms").options(**stage.access, queue=queue).load().count() == COUNT
    await_count(stage.broker, queue, COUNT)
    stream = stage.stream(spark, queue=queue, maxMessagesPerTrigger="150")
    run_available(stream, tmp_path / "checkpoint", "jms", **stage.access, queue=target)
    wait_until(lambda: stage.broker.message_count(queue) == 0, what="the last acknowledgement")
    await_count(stage.broker, target, COUNT)
    found = stage.take(target, COUNT)
    assert sorted((message.properties["n"], message.body) for message in found) == sorted(
        (Typed("int", n), f"text {n}") for n in range(COUNT)
    )


def test_rows_that_were_read_with_a_schema_are_written_as_they_are(spark, stage, queue):
    names = [queue, f"{queue}.second"]
    for name in names:
        stage.create(name)
    assert_written_as_read(spark, *(stage.access | {"queue": name} for name in names))


def test_a_batch_read_shows_the_whole_queue_or_says_that_it_does_not(spark, stage, queue, caplog):
    skip_as("classic-in-production", BROWSE_ENDS)
    stage.create(queue)
    rows = spark.range(0, 10_500, 1, 1).selectExpr("concat('text ', id) text")
    rows.write.format("jms").options(**stage.access, queue=queue).mode("append").save()
    shown = shown_of(stage.access | {"queue": queue})
    browses = stage.name != "rabbitmq"
    assert shown == [f"text {n}" for n in range(10_500 if browses else 10_000)]
    assert ("Raise maxMessagesPerTrigger and maxBytesPerTrigger" in caplog.text) is not browses


def test_a_query_that_is_stopped_and_a_broker_that_is_killed_lose_nothing(spark, stage, queue, tmp_path):
    stage.put(queue)

    def start():
        stream = stage.stream(spark, queue=queue, maxMessagesPerTrigger="40").writeStream.format("parquet")
        return stream.option("path", f"{tmp_path}/out").option("checkpointLocation", f"{tmp_path}/checkpoint").start()

    query = start()
    wait_until(lambda: batches_done(tmp_path) >= 2, what="the second batch")
    query.stop()
    query, done = start(), batches_done(tmp_path)
    wait_until(lambda: batches_done(tmp_path) > done, what="a batch of the second run")
    stage.broker.kill()
    stage.broker.start()
    wait_until(lambda: set(numbers_in(spark, tmp_path / "out")) == {*range(COUNT)}, seconds=150, what="all messages")
    wait_until(lambda: stage.broker.message_count(queue) == 0, what="the last acknowledgement")
    query.stop()


@pytest.mark.timeout(60)
def test_a_broker_answers_while_it_has_no_more_messages(stage, queue):
    """So a flood that stops is a batch at once."""
    stage.put(queue, 3)
    reading = reading_of(SourceOptions.parse(stage.access | {"queue": queue}))
    silence = EndOfQueue(lambda link: link.ping())
    with closing(reading.connect(StateCondition())) as link:
        link.subscribe(subscription_to(queue))
        wait_until(lambda: link.waiting()[0] == 3)
        if stage.name == "rabbitmq":  # gives no sign of life, so that a batch of a flood waits its time
            assert not link.has_receipt(link.ping())
            return
        for come in range(3):
            wait_until(lambda come=come: silence.is_reached([link], come))
        link.has_receipt(link.acknowledge([one for block in link.take() for one in block.ids]), wait=True)
    await_count(stage.broker, queue, 0)


def test_a_selector_is_evaluated_by_the_broker_or_in_spark(spark, stage, queue, tmp_path):
    stage.put(queue, 40)
    residual = {"selectorInSpark": "residual"} if stage.name in {"broker-j", "rabbitmq"} else {}
    stream = stage.stream(spark, queue=queue, selector="n >= 30", **residual)
    run_available(stream, tmp_path / "checkpoint", "parquet", path=f"{tmp_path}/out")
    assert numbers_in(spark, tmp_path / "out") == [*range(30, 40)]


def test_a_durable_subscription_keeps_what_is_sent_while_nobody_reads(spark, stage, queue, tmp_path):
    topic = f"topic.{queue}"
    if hasattr(stage.broker, "create_topic"):
        stage.broker.create_topic(topic)
    subscription = {"topic": topic, "subscriptionName": "daily", "clientId": f"app.{queue}", "idleTimeout": "300ms"}
    if stage.name == "rabbitmq":
        with pytest.raises(StreamingQueryException, match=r"\[JMS_UNSUPPORTED\].*queues only.*Bind a queue"):
            run_available(stage.stream(spark, **subscription), tmp_path / "checkpoint", "noop")
        return

    def read():
        stream = stage.stream(spark, **subscription)
        run_available(stream, tmp_path / "checkpoint", "parquet", path=f"{tmp_path}/out")

    read()
    stage.put(f"topic://{topic}", 30)
    read()
    assert numbers_in(spark, tmp_path / "out") == [*range(30)]
    named = ["--topic", topic, "--subscription-name", "daily", "--client-id", f"app.{queue}"]
    assert commands.run(stage.access, "unsubscribe", *named) == 0
    stage.put(f"topic://{topic}", 5)
    read()
    assert numbers_in(spark, tmp_path / "out") == [*range(30)]


def test_the_check_finds_no_problem(stage, queue, capsys):
    stage.put(queue, 3)
    findings = commands.findings_of_check(stage.access, capsys, "--queue", queue)
    assert findings["dialect"]["value"] == stage.name.removesuffix(" 2.44")
    if stage.name != "classic":  # has no management over AMQP
        assert findings["queue"]["details"]["messages"] == 3
    assert findings["transactions"]["verdict"] == ("note" if stage.name == "rabbitmq" else "fine")


def test_an_exactly_once_read_is_kept_in_a_staging_queue_or_refused(spark, stage, queue, tmp_path):
    stage.put(queue, 100)
    stream = stage.stream(spark, queue=queue, deliveryGuarantee="exactly-once", maxMessagesPerTrigger="40")
    if not stage.name.startswith("artemis"):
        with pytest.raises(StreamingQueryException, match=r"\[JMS_UNSUPPORTED\] deliveryGuarantee="):
            run_available(stream, tmp_path / "checkpoint", "noop")
        await_count(stage.broker, queue, 100)
        return
    run_available(stream, tmp_path / "checkpoint", "parquet", path=f"{tmp_path}/out")
    stage.broker.kill()
    stage.broker.start()
    stage.put(queue, 5)
    run_available(stream, tmp_path / "checkpoint", "parquet", path=f"{tmp_path}/out")
    assert numbers_in(spark, tmp_path / "out") == sorted([*range(100), *range(5)])
    await_count(stage.broker, queue, 0)
