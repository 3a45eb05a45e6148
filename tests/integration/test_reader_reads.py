"""Exactly-once reads over AMQP by Spark, whose tasks receive from the broker."""

import json
import shutil
import threading
import time
from collections import Counter

import pytest
from amqp_messages import TRUE, application_properties, block_of, list_, properties, section, string, timestamp
from amqp_sending import put, settings_of, subscription_to
from pyspark.errors import StreamingQueryException
from streaming import access, batches_done, left, run_available, scheduled, stopping
from waiting import wait_until

from pyspark_jms.amqp.link.consumer import Consumer
from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.wire.types import Target
from pyspark_jms.amqp.wire.values import TypedValue, encode
from pyspark_jms.spark.releases import HAS_ADMISSION_CONTROL

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def read(spark, broker, queue, **options):
    given = access(broker, "amqp") | {"queue": queue, "deliveryGuarantee": "exactly-once"}
    return spark.readStream.format("jms").options(**given | options).load()


def numbers(spark, folder):
    return Counter(int(row.text) for row in spark.read.parquet(str(folder)).collect())


@pytest.mark.releases
def test_available_now_reads_each_message_once_with_any_number_of_readers(spark, broker, queue, tmp_path):
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    for run, readers in enumerate((2, 1, 3)):
        put(broker, queue, *map(str, range(60 * run, 60 * run + 60)))
        frame = read(spark, broker, queue, readers=str(readers), maxMessagesPerTrigger="40").select("text")
        run_available(frame, checkpoint, "parquet", path=str(out))
        assert numbers(spark, out) == Counter(range(60 * run + 60))
        assert left(broker, queue) == 0
    offsets = sorted((checkpoint / "offsets").iterdir(), key=lambda path: int(path.name) if path.name.isdigit() else -1)
    last = json.loads(offsets[-1].read_text().splitlines()[-1])
    assert len(last["names"]) == 3


@pytest.mark.deep
def test_an_older_copy_of_a_checkpoint_is_fenced(spark, broker, queue, tmp_path):
    frame = read(spark, broker, queue).select("text")
    for run in range(2):
        put(broker, queue, *map(str, range(50 * run, 50 * run + 50)))
        run_available(frame, tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))
    older = tmp_path / "older"
    for log in ("offsets", "commits"):
        (older / log).mkdir(parents=True)
        (older / log / "0").write_bytes((tmp_path / "checkpoint" / log / "0").read_bytes())
    (older / "metadata").write_bytes((tmp_path / "checkpoint" / "metadata").read_bytes())
    put(broker, queue, "100")
    with pytest.raises(StreamingQueryException, match=r"\[JMS_SOURCE_FENCED\] .*received batch 2"):
        run_available(frame, older, "noop")
    assert left(broker, queue, 1) == 1
    run_available(frame, tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))
    assert numbers(spark, tmp_path / "out") == Counter(range(101))


def nasty(number):
    """A message that would expire, come late, overtake, be grouped or be refused, if the broker saw it in a block."""
    in_an_hour = timestamp(int(time.time() * 1000) + 3_600_000)
    group = {"group_id": string(f"g{number % 3}")}
    return (
        section(0x70, list_(TRUE, encode(TypedValue("ubyte", number % 10))))
        + properties(message_id=string(f"ID:{number}"), absolute_expiry_time=in_an_hour, **group)
        + application_properties(_AMQ_DUPL_ID=string(f"{time.time_ns()}-{number}"))
        + section(0x77, string(str(number)))
    )


@pytest.mark.deep
@pytest.mark.parametrize("readers", [1, 2])
def test_a_rival_and_messages_that_the_broker_acts_on(spark, broker, queue, tmp_path, readers):
    """Every message is in the query or with the other consumer, once."""
    taken = Counter()
    ends = threading.Event()

    def rival():
        link = Consumer(settings_of(broker))
        link.subscribe(subscription_to(queue, window_messages=3))
        while not ends.wait(0.1):
            for block in link.take():
                link.has_receipt(link.acknowledge(block.ids), wait=True)
                taken.update(int(block.message(index).rpartition(b"\xa1")[2][1:]) for index in range(len(block)))
        link.close()

    frame = read(spark, broker, queue, maxMessagesPerTrigger="100", readers=str(readers)).select("text")
    thread = threading.Thread(target=rival)
    thread.start()
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


def started(frame, folder):
    writer = frame.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    wait_until(lambda: "Initializing" not in query.status["message"], what="the start of a query")
    return query


@pytest.mark.deep
def test_messages_with_a_delivery_delay_are_read_when_they_are_due(spark, broker, queue, tmp_path):
    """Over STOMP such a message is one of CORE, with ``_AMQ_SCHED_DELIVERY``."""
    put(broker, queue, *map(str, range(20)))
    frame = read(spark, broker, queue, readers="2", maxMessagesPerTrigger="10").select("text")
    for number, url in enumerate((broker.amqp_url, broker.url)):
        rows = spark.range(10).selectExpr(
            f"string(if(id < 5, 20, 30) + 5 * {number} + id % 5) AS text",
            "current_timestamp() + if(id < 5, INTERVAL 2 SECONDS, INTERVAL 1 HOUR) AS JMSDeliveryTime",
        )
        target = access(broker) | {"brokerUrl": url, "queue": queue}
        rows.coalesce(1).write.format("jms").mode("append").options(**target).save()
    run_available(frame, tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))
    assert numbers(spark, tmp_path / "out").keys() >= set(range(20))
    wait_until(lambda: scheduled(broker, queue) == 10, what="the end of the short delays")
    run_available(frame, tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))
    assert numbers(spark, tmp_path / "out") == Counter(range(30))
    assert left(broker, queue, 10) == scheduled(broker, queue) == 10


@pytest.mark.deep
def test_two_queries_of_one_frame_share_the_messages(spark, broker, queue, tmp_path):
    """Each checkpoint has registers of its own."""
    frame, sent = read(spark, broker, queue, readers="2").select("text"), 0
    folders = [tmp_path / "a", tmp_path / "b"]
    for until in (200, 400):
        before = {folder: batches_done(folder) for folder in folders}
        queries = [started(frame, folder) for folder in folders]
        while sent < until or any(batches_done(folder) == before[folder] for folder in folders):
            put(broker, queue, *map(str, range(sent, sent + 20)))
            sent += 20
            wait_until(lambda: not broker.message_count(queue), 120, "an empty queue")
        for query in queries:
            query.processAllAvailable()
            query.stop()
    logs = [(folder / "checkpoint" / "offsets" / "0").read_text().splitlines()[-1] for folder in folders]
    assert len({json.loads(log)["stream"] for log in logs}) == 2
    read_back = [spark.read.schema("text string").parquet(str(folder / "out")).collect() for folder in folders]
    assert Counter(int(row.text) for rows in read_back for row in rows) == Counter(range(sent))


@pytest.mark.releases
@pytest.mark.deep
def test_from_queue_to_queue_exactly_once(spark, broker, queue, tmp_path):
    put(broker, queue, *map(str, range(300)))
    target = access(broker, "amqp") | {"queue": f"{queue}.out"}
    frame = read(spark, broker, queue, maxMessagesPerTrigger="100").select("text")
    run_available(frame, tmp_path / "checkpoint", "jms", deliveryGuarantee="exactly-once", **target)
    assert left(broker, queue) == 0
    assert left(broker, f"{queue}.out", 300) == 300


@pytest.mark.deep
def test_a_stream_that_is_united_with_itself_has_each_message_twice(spark, broker, queue, tmp_path):
    """Two tasks read each register at a time, on the same cores."""
    put(broker, queue, *map(str, range(200)))
    frame = read(spark, broker, queue, readers="2").select("text")
    run_available(frame.union(frame), tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))
    found = numbers(spark, tmp_path / "out")
    assert set(found.values()) <= {2}
    assert set(found) == set(range(200))


# --- batches whose rows nobody reads, or reads in part --------------------------------------------------


@pytest.mark.deep
def test_a_filter_that_no_row_passes_reads_all(spark, broker, queue, tmp_path):
    """Spark does not prune a streaming source for it."""
    put(broker, queue, *map(str, range(20)))
    frame = read(spark, broker, queue, readers="2").select("text")
    run_available(frame.where("false"), tmp_path / "checkpoint", "noop")
    assert left(broker, queue) == 0
    run_available(frame, tmp_path / "checkpoint", "parquet", path=str(tmp_path / "out"))


@pytest.mark.deep
def test_a_query_that_ignores_its_rows_keeps_the_messages_and_does_not_spin(spark, broker, queue, tmp_path):
    put(broker, queue, *map(str, range(20)))
    frame, checkpoint = read(spark, broker, queue, readers="2").select("text"), tmp_path / "checkpoint"
    ignores = frame.writeStream.foreachBatch(lambda rows, batch: None)
    with stopping(ignores.option("checkpointLocation", str(checkpoint)).start()):
        wait_until(lambda: batches_done(tmp_path) >= 3, 120)
    assert batches_done(tmp_path) < 12, "the pauses grow"
    assert broker.message_count(queue) == 20
    with pytest.raises(StreamingQueryException, match=r"JMS_UNSUPPORTED.*No task has read batch"):
        run_available(frame, checkpoint, each=lambda rows, batch: None)
    run_available(frame, checkpoint, each=lambda rows, batch: rows.write.parquet(str(tmp_path / "out"), "append"))
    assert numbers(spark, tmp_path / "out") == Counter(range(20))
    assert left(broker, queue) == 0


@pytest.mark.deep
@pytest.mark.skipif(not HAS_ADMISSION_CONTROL, reason="AvailableNow runs one batch")
def test_a_file_sink_that_drops_the_batches_of_a_new_checkpoint_loses_no_message(spark, broker, queue, tmp_path):
    frame, checkpoint = read(spark, broker, queue).select("text"), tmp_path / "checkpoint"
    put(broker, queue, "0", "1")
    run_available(frame, checkpoint, "parquet", path=str(tmp_path / "out"))
    shutil.rmtree(checkpoint)
    put(broker, queue, "2", "3")
    with pytest.raises(StreamingQueryException, match=r"No task has read batch 1: .* new output folder"):
        run_available(frame, checkpoint, "parquet", path=str(tmp_path / "out"))
    assert broker.message_count(queue) == 2
    run_available(frame, checkpoint, "parquet", path=str(tmp_path / "out"))
    assert numbers(spark, tmp_path / "out") == Counter(range(4))


def test_rows_that_are_read_in_part(spark, broker, queue, tmp_path):
    """``isEmpty`` and ``limit`` need the first task; what the batch has, every action gets."""
    put(broker, queue, *map(str, range(40)))
    seen = []

    def each(rows, batch):
        empty = rows.isEmpty()
        some = {int(row.text) for row in rows.limit(3).collect()}
        every = [int(row.text) for row in rows.collect()]
        again = [int(row.text) for row in rows.collect()]
        seen.append((empty, some, every, again))

    frame = read(spark, broker, queue, readers="2", maxMessagesPerTrigger="20").select("text")
    run_available(frame, tmp_path / "checkpoint", each=each)
    assert all(empty == (not every) for empty, _, every, _ in seen)
    assert all(some <= set(every) and len(some) == min(3, len(every)) for _, some, every, _ in seen)
    assert all(sorted(every) == sorted(again) for _, _, every, again in seen)
    assert Counter(number for _, _, every, _ in seen for number in every) == Counter(range(40))
    assert left(broker, queue) == 0


@pytest.mark.deep
@pytest.mark.releases
def test_trigger_once_reads_one_batch(spark, broker, queue, tmp_path):
    put(broker, queue, *map(str, range(30)))
    frame = read(spark, broker, queue, readers="1", maxMessagesPerTrigger="20").select("text")
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    for rows in (20, 30):
        query = writer.option("path", str(tmp_path / "out")).trigger(once=True).start()
        assert query.awaitTermination(60)
        assert numbers(spark, tmp_path / "out") == Counter(range(rows))
