"""Exactly-once reads over AMQP by Spark: the staging queue, deaths of the driver, two drivers of one checkpoint."""

import threading
import time
from collections import Counter

import pytest
from amqp_messages import TRUE, application_properties, block_of, list_, properties, section, string, timestamp
from amqp_sending import put, settings_of
from pyspark.errors import StreamingQueryException
from streaming import access, left, run_available
from waiting import wait_until

from pyspark_jms.amqp.link.consumer import Consumer
from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.wire.definitions import Target
from pyspark_jms.amqp.wire.values import Typed, encode
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def read(spark, broker, queue, **options):
    if not hasattr(broker, "amqp_url"):
        pytest.skip("needs an embedded broker")
    given = access(broker) | {"brokerUrl": broker.amqp_url, "queue": queue, "deliveryGuarantee": "exactly-once"}
    return spark.readStream.format("jms").options(**given | options).load()


@pytest.mark.releases
def test_available_now_reads_each_message_once_and_leaves_nothing(spark, broker, queue, tmp_path):
    put(broker, queue, *map(str, range(500)))
    frame = read(spark, broker, queue, maxMessagesPerTrigger="200").select("text")
    run_available(frame, tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))
    found = Counter(int(row.text) for row in spark.read.parquet(str(tmp_path / "out")).collect())
    assert found == Counter(range(500))
    assert left(broker, queue) == 0
    put(broker, queue, *map(str, range(500, 600)))
    run_available(frame, tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))
    found = Counter(int(row.text) for row in spark.read.parquet(str(tmp_path / "out")).collect())
    assert found == Counter(range(600))


def numbers(spark, folder):
    return Counter(int(row.text) for row in spark.read.parquet(str(folder)).select("text").collect())


def test_the_second_run_of_a_checkpoint_is_fenced(spark, broker, queue, tmp_path):
    put(broker, queue, *map(str, range(50)))
    frame = read(spark, broker, queue).select("text")
    run_available(frame, tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))
    older = tmp_path / "older"
    older.mkdir()
    for log in ("offsets", "commits"):
        (older / log).mkdir()
        (older / log / "0").write_bytes((tmp_path / "checkpoint" / log / "0").read_bytes())
    (older / "metadata").write_bytes((tmp_path / "checkpoint" / "metadata").read_bytes())
    put(broker, queue, "50")
    with pytest.raises(StreamingQueryException, match=r"\[JMS_SOURCE_FENCED\] .*finished the messages up to 50"):
        run_available(frame, older, "noop")
    assert left(broker, queue, 1) == 1
    run_available(frame, tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))
    assert numbers(spark, tmp_path / "out") == Counter(range(51))


def test_trigger_once_is_refused(spark, broker, queue, tmp_path):
    writer = read(spark, broker, queue).writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    query = writer.trigger(once=True).start()
    with pytest.raises(StreamingQueryException, match=r"JMS_UNSUPPORTED.*availableNow"):
        query.awaitTermination(60)


def nasty(number, **more):
    """A message that would expire, come late, overtake, be grouped or be refused, if the broker saw it in a block."""
    in_an_hour = timestamp(int(time.time() * 1000) + 3_600_000)
    group = {"group_id": string(f"g{number % 3}")}
    return (
        section(0x70, list_(TRUE, encode(Typed("ubyte", number % 10))))
        + properties(message_id=string(f"ID:{number}"), absolute_expiry_time=in_an_hour, **group)
        + application_properties(_AMQ_DUPL_ID=string(f"{time.time_ns()}-{number}"))
        + section(0x77, string(str(number)))
    )


@pytest.mark.deep
def test_a_rival_and_messages_that_the_broker_acts_on(spark, broker, queue, tmp_path):
    """Every message is in the query or with the other consumer, once."""
    taken = Counter()
    ends = threading.Event()

    def rival():
        link = Consumer(settings_of(broker))
        link.subscribe(
            Subscription(destination=Destination.parse(f"queue://{queue}"), window_bytes=1 << 20, window_messages=3)
        )
        while not ends.wait(0.1):
            for block in link.take():
                link.await_receipt(link.acknowledge(block.ids))
                taken.update(int(block.message(index).rpartition(b"\xa1")[2][1:]) for index in range(len(block)))
        link.close()

    settings_of(broker)  # skips without AMQP
    thread = threading.Thread(target=rival)
    thread.start()
    frame = read(spark, broker, queue, maxMessagesPerTrigger="100").select("text")
    writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with Producer(settings_of(broker)) as producer:
        producer.open(Target(address=queue, capabilities=("queue",)))
        for first in range(0, 1_000, 50):
            producer.send(block_of([nasty(number) for number in range(first, first + 50)]))
            producer.commit()
    wait_until(lambda: broker.message_count(queue) == 0, 120, "an empty queue")
    ends.set()
    thread.join(30)
    query.stop()
    run_available(frame, tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))
    assert numbers(spark, tmp_path / "out") + taken == Counter(range(1_000))
    assert taken


@pytest.mark.releases
@pytest.mark.deep
def test_from_queue_to_queue_exactly_once(spark, broker, queue, tmp_path):
    put(broker, queue, *map(str, range(300)))
    target = access(broker) | {"brokerUrl": broker.amqp_url, "queue": f"{queue}.out"}
    frame = read(spark, broker, queue, maxMessagesPerTrigger="100").select("text")
    run_available(frame, tmp_path / "checkpoint", "jms", deliveryGuarantee="exactly-once", **target)
    assert left(broker, queue) == 0
    assert left(broker, f"{queue}.out", 300) == 300
