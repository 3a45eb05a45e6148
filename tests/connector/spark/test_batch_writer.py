"""``df.write`` through a real Spark, read back by a client that shares no code with it."""

import json
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from rawstomp import RawStomp
from streaming import access
from waiting import await_count, await_value, wait_until

from pyspark_jms.amqp.sink import CommitLedger
from pyspark_jms.delivery.commit_token import LEDGER_PREFIX, identity_of, is_finished
from pyspark_jms.functions import write_id
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.tasks import Sent, TaskResult
from pyspark_jms.spark.batch_writer import JmsBatchWriter
from pyspark_jms.spark.reports import TaskReport

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def write(frame, broker, mode="append", **options):
    everything = access(broker) | {name: str(value) for name, value in options.items()}
    frame.write.format("jms").mode(mode).options(**everything).save()


class Nowhere:
    url, user, password = "stomp://127.0.0.1:1", "u", "p"


def once(broker, this=None):
    if not hasattr(broker, "amqp_url"):
        pytest.skip("needs an embedded broker")
    this = this or f"job:{uuid.uuid4().hex}/1"
    return {"brokerUrl": broker.amqp_url, "deliveryGuarantee": "exactly-once", "writeId": this}


def rows(spark, count, partitions=2):
    return spark.range(0, count, 1, partitions).selectExpr("concat('row ', id) text")


def texts(broker, queue):
    with RawStomp(broker) as client:
        return sorted(message.body.decode() for message in client.read(queue, quiet=0.5))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.releases),
        {"transaction": "none"},
        {"transaction": 7},
        pytest.param(None, marks=pytest.mark.releases),
    ],
)
def test_every_row_is_sent(spark, broker, queue, options):
    options = once(broker) if options is None else options
    write(rows(spark, 100), broker, queue=queue, **options)
    assert texts(broker, queue) == sorted(f"row {n}" for n in range(100))


@pytest.mark.releases
def test_a_task_that_fails_sends_nothing(spark, broker, queue):
    frame = spark.range(0, 40, 1, 1).selectExpr("concat('row ', id) text", "int(if(id = 30, 77, 4)) JMSPriority")
    with pytest.raises(PythonException, match=r"\[JMS_MESSAGE_FORMAT\] Row 30 .*JMSPriority"):
        write(frame, broker, queue=queue)
    await_count(broker, queue, 0)


@pytest.mark.releases
def test_maps_streams_and_types_as_spark_makes_them(spark, broker, queue):
    """The example of docs/typed-messages.md, and a stream."""
    orders = spark.range(2).selectExpr("id n", "if(id = 0, 'a:b', null) note", "id + 0.5D amount")
    frame = orders.selectExpr(
        "map('n', named_struct('type', 'int', 'value', string(n)),"
        " 'note', named_struct('type', 'string', 'value', note)) AS map",
        "map('amount', string(amount)) AS properties",
        "map('amount', 'double') AS property_types",
    )
    write(frame, broker, queue=queue)
    array = "array(named_struct('type', 'char', 'value', 'x'), null)"
    write(orders.selectExpr(f"if(n = 0, {array}, null) stream", "if(n = 1, cast('o' as binary), null) bytes",
                            "if(n = 1, 'object', null) body_type"), broker, queue=queue)  # fmt: skip
    with RawStomp(broker) as client:
        found = client.read(queue, wanted=4)
    assert sorted(
        (m.headers.get("spark_jms_body"), m.headers.get("spark_jms_types"), m.body.decode()) for m in found
    ) == [
        ("map", '{"amount":"double"}', envelope("a:b")),
        ("map", '{"amount":"double"}', envelope(None)),
        ("object", None, "o"),
        ("stream", None, '{"stream":[{"type":"char","value":"x"},{"type":"string","value":null}]}'),
    ]


def envelope(note):
    items = [
        {"name": "n", "type": "int", "value": "01"[note is None]},
        {"name": "note", "type": "string", "value": note},
    ]
    return json.dumps({"map": items}, separators=(",", ":"))


def test_bad_rows_are_dropped(spark, broker, queue):
    frame = spark.range(0, 40, 1, 2).selectExpr("concat('row ', id) text", "int(if(id % 10 = 3, 77, 4)) JMSPriority")
    write(frame, broker, queue=queue, onBadRow="drop")
    assert texts(broker, queue) == sorted(f"row {n}" for n in range(40) if n % 10 != 3)


def test_the_driver_counts_what_was_dropped(caplog):
    options = SinkOptions.parse({"brokerUrl": "stomp://127.0.0.1:1", "queue": "q"})
    JmsBatchWriter(options, overwrite=False).commit(
        [TaskReport(TaskResult(Sent(5, 2))), TaskReport(TaskResult(Sent(1)))]
    )
    assert [record.message for record in caplog.records] == ["= this write: 2 of 8 rows were dropped (onBadRow=drop)"]


def test_a_column_that_is_no_property_s_is_refused_before_anything_connects(spark):
    frame = rows(spark, 1).selectExpr("text", "current_date() price")
    with pytest.raises(AnalysisException, match=r"\[JMS_SCHEMA\] Column price .*date32.*boolean"):
        write(frame, Nowhere, queue="q", propertyColumns="price")


@pytest.mark.releases
def test_a_write_that_is_tried_again_sends_nothing_again(spark, broker, queue):
    job = f"job:{queue}"
    this, other = once(broker, f"{job}/2026-11-21T00:00+00:00"), once(broker, f"{job}/2")
    for options in (this, this, other, this):
        write(rows(spark, 10), broker, queue=queue, **options)
    assert texts(broker, queue) == sorted([f"row {n}" for n in range(10)] * 2)


def test_without_an_id_a_write_that_is_tried_again_sends_again(spark, broker, queue):
    for _ in range(2):
        write(rows(spark, 10), broker, queue=queue)
    await_count(broker, queue, 20)


def test_an_id_that_was_used_for_other_rows_is_a_mismatch(spark, broker, queue):
    this = once(broker)
    write(rows(spark, 10, 1), broker, queue=queue, **this)
    with pytest.raises(AnalysisException, match=rf"\[JMS_REPLAY_MISMATCH\] {this['writeId']} .*10 rows.*11 rows"):
        write(rows(spark, 11, 1), broker, queue=queue, **this)
    await_count(broker, queue, 10)


def test_a_write_that_is_tried_again_in_other_partitions_is_refused(spark, broker, queue):
    """The first task failed, the second one sent: a retry with one partition finds no entry of its own name."""
    this, half = once(broker), "int(if(id < 5, 77, 4)) JMSPriority"
    with pytest.raises(PythonException, match="JMSPriority"):
        write(spark.range(0, 10, 1, 2).selectExpr("concat('row ', id) text", half), broker, queue=queue, **this)
    wait_until(lambda: broker.message_count(queue) == 5, what="the second task")
    with pytest.raises(Exception, match=r"\[JMS_REPLAY_MISMATCH\] .*partition 1 \(5 rows\)"):
        write(rows(spark, 10, 1), broker, queue=queue, **this)
    await_count(broker, queue, 5)
    priority = "int(4) JMSPriority"
    write(spark.range(0, 10, 1, 2).selectExpr("concat('row ', id) text", priority), broker, queue=queue, **this)
    assert texts(broker, queue) == [f"row {n}" for n in range(10)]


def test_an_empty_partition_writes_no_entry(spark, broker, queue):
    this = once(broker)
    write(rows(spark, 10, 2).where("text < 'row 5'"), broker, queue=queue, **this)
    ledger = CommitLedger(SinkOptions.parse(access(broker) | this).connection, identity_of(this["writeId"]).owner)
    (finished,) = ledger.find()
    assert (is_finished(finished), finished.rows) == (True, 5)


@pytest.mark.releases
def test_for_each_batch_a_repeated_batch_is_not_sent_again(spark, broker, queue, tmp_path):
    """Its entries are in the ledger of the query, and leave with those of its batches."""
    (tmp_path / "rows").mkdir()
    for number in range(2):
        (tmp_path / "rows" / f"{number}.txt").write_text("\n".join(f"{number}-{n}" for n in range(5)))
    stream = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(tmp_path / "rows"))
    queries = set()

    def send(batch, number):
        queries.add(spark.sparkContext.getLocalProperty("sql.streaming.queryId"))
        for _ in range(2):
            write(batch.selectExpr("value text"), broker, queue=queue, **once(broker, write_id(batch, number)))

    run_available_for_each(stream, send, tmp_path / "checkpoint")
    assert texts(broker, queue) == sorted(f"{number}-{n}" for number in range(2) for n in range(5))
    await_value(lambda: [broker.message_count(f"{LEDGER_PREFIX}{query}.token") for query in queries], [1])


def test_for_each_batch_a_write_id_that_is_the_same_for_every_batch_is_refused(spark, broker, queue, tmp_path):
    """Two batches with the same rows: the second one would be taken for a repetition of the first, and skipped."""
    (tmp_path / "rows").mkdir()
    for number in range(2):
        (tmp_path / "rows" / f"{number}.txt").write_text("the same")
    stream = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(tmp_path / "rows"))

    def send(batch, _):
        write(batch.selectExpr("value text"), broker, queue=queue, **once(broker, queue))

    reason = rf"\[JMS_REPLAY_MISMATCH\] writeId {queue} was used in batch 0 of this query, and this is batch 1"
    with pytest.raises(StreamingQueryException, match=reason):
        run_available_for_each(stream, send, tmp_path / "checkpoint")
    assert texts(broker, queue) == ["the same"]


def test_for_each_batch_in_another_thread_a_write_has_an_identity_or_is_refused(spark, broker, queue, tmp_path):
    """Two queries with the same rows and the same names of their writes: both send. Spark tells the thread no query."""
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "0.txt").write_text("the same")
    stream = spark.readStream.format("text").load(str(tmp_path / "rows"))

    def in_a_thread(identify):
        def send(batch, number):
            options = once(broker, identify(batch, number))
            with ThreadPoolExecutor(1, initializer=lambda: spark.createDataFrame([], "ready int")) as pool:
                pool.submit(write, batch.selectExpr("value text"), broker, queue=queue, **options).result()

        return send

    for query in ("a", "b"):
        run_available_for_each(stream, in_a_thread(lambda *of: write_id(*of, "dead")), tmp_path / query)
    await_count(broker, queue, 2)
    with pytest.raises(StreamingQueryException, match=r"\[JMS_WRITE_IDENTITY\] .* writeId dead-0 .*Nothing was sent"):
        run_available_for_each(stream, in_a_thread(lambda _, number: f"dead-{number}"), tmp_path / "c")
    assert texts(broker, queue) == ["the same"] * 2


def test_a_write_of_a_job_that_does_not_say_which_is_refused(spark, broker, queue):
    with pytest.raises(PythonException, match=r"\[JMS_WRITE_IDENTITY\] .* writeId monday .*job:NAME/RUN"):
        write(rows(spark, 1), broker, queue=queue, **once(broker, "monday"))
    assert not broker.has_queue(queue)


def run_available_for_each(stream, function, checkpoint):
    writer = stream.writeStream.foreachBatch(function).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)


@pytest.mark.parametrize(
    ("mode", "options", "reason"),
    [
        (
            "append",
            {"deliveryGuarantee": "exactly-once"},
            r"\[JMS_OPTION_CONFLICT\] .*needs option writeId.*of its own",
        ),
        (
            "append",
            {"deliveryGuarantee": "exactly-once", "writeId": "w", "transaction": 5},
            r"\[JMS_OPTION_CONFLICT\] .*transaction=5",
        ),
        ("append", {"writeId": "w"}, r"\[JMS_OPTION_CONFLICT\] Option writeId .*Give both"),
        (
            "append",
            {"brokerUrl": "stomp+ssl://127.0.0.1:1", "deliveryGuarantee": "exactly-once", "writeId": "w"},
            r"\[JMS_UNSUPPORTED\] .*over STOMP.*COMMIT.*amqp://",
        ),
        ("overwrite", {}, r"\[JMS_UNSUPPORTED\] .*cannot empty a queue.*append"),
    ],
)
def test_what_cannot_be_promised_is_refused_before_anything_connects(spark, mode, options, reason):
    nowhere = {"brokerUrl": "amqp://127.0.0.1:1", "queue": "q"}
    with pytest.raises(AnalysisException, match=reason):
        rows(spark, 1).write.format("jms").mode(mode).options(**(nowhere | options)).save()
