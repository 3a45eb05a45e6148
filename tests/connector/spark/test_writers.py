"""``df.write`` and ``df.writeStream`` through a real Spark, read back by a client that shares no code with them.

Jobs that are killed while they write: tests/integration/test_killed_writes.py.
"""

import json
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from proxy import Proxy
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql.functions import concat, lit, udf
from rawstomp import RawStomp, take_texts
from streaming import access, ledger_of, lines, once_to, run_available, uncommit
from waiting import await_count, await_value, wait_until

from pyspark_jms.amqp.sink import CommitLedger
from pyspark_jms.delivery.commit_token import LEDGER_PREFIX, identity_of, is_finished
from pyspark_jms.functions import write_id
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.tasks import Sent, TaskResult
from pyspark_jms.spark.writers import JmsBatchWriter, JmsStreamWriter, TaskReport


def deep(*case):
    return pytest.param(*case, marks=pytest.mark.deep)


# --- df.write ---------------------------------------------------------------------------------------


def write(frame, broker, mode="append", **options):
    everything = access(broker) | {name: str(value) for name, value in options.items()}
    frame.write.format("jms").mode(mode).options(**everything).save()


class Nowhere:
    url, user, password = "stomp://127.0.0.1:1", "u", "p"


def once(broker, this=None):
    this = this or f"job:{uuid.uuid4().hex}/1"
    return {"brokerUrl": access(broker, "amqp")["brokerUrl"], "deliveryGuarantee": "exactly-once", "writeId": this}


def rows(spark, count, partitions=2):
    return spark.range(0, count, 1, partitions).selectExpr("concat('row ', id) text")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.releases),
        deep({"transaction": "none"}),
        deep({"transaction": 7}),
        pytest.param(None, marks=pytest.mark.releases),
    ],
)
def test_every_row_is_sent(spark, broker, queue, options):
    options = once(broker) if options is None else options
    write(rows(spark, 100), broker, queue=queue, **options)
    assert take_texts(broker, queue) == sorted(f"row {n}" for n in range(100))


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


def test_a_column_that_is_no_property_s_is_refused_before_anything_connects(spark):
    frame = rows(spark, 1).selectExpr("text", "current_date() price")
    with pytest.raises(
        AnalysisException, match=r"\[JMS_SCHEMA\] Column price of propertyColumns has the type date, .*boolean"
    ):
        write(frame, Nowhere, queue="q", propertyColumns="price")


@pytest.mark.releases
def test_a_write_that_is_tried_again_sends_nothing_again(spark, broker, queue):
    job = f"job:{queue}"
    this, other = once(broker, f"{job}/2026-11-21T00:00+00:00"), once(broker, f"{job}/2")
    for options in (this, this, other, this):
        write(rows(spark, 10), broker, queue=queue, **options)
    assert take_texts(broker, queue) == sorted([f"row {n}" for n in range(10)] * 2)


def test_an_id_that_was_used_for_other_rows_is_a_mismatch(spark, broker, queue):
    this = once(broker)
    write(rows(spark, 10, 1), broker, queue=queue, **this)
    with pytest.raises(AnalysisException, match=rf"\[JMS_REPLAY_MISMATCH\] {this['writeId']} .*10 rows.*11 rows"):
        write(rows(spark, 11, 1), broker, queue=queue, **this)
    await_count(broker, queue, 10)


@pytest.mark.deep
def test_a_write_that_is_tried_again_in_other_partitions_is_refused(spark, broker, queue, tmp_path):
    """The first task failed, the second one sent: a retry with one partition finds no entry of its own name."""
    this, sent = once(broker), tmp_path / "sent"

    def priority(number):
        while number < 5 and not sent.exists():  # Spark ends the second task when the first one has failed
            time.sleep(0.05)
        return 77 if number < 5 else 4

    ids = spark.range(0, 10, 1, 2)
    half = ids.select(concat(lit("row "), ids.id).alias("text"), udf(priority, "int")(ids.id).alias("JMSPriority"))

    def release():
        try:
            wait_until(lambda: broker.message_count(queue) == 5, what="the second task")
        finally:
            sent.touch()

    with ThreadPoolExecutor(1) as pool:
        released = pool.submit(release)
        with pytest.raises(PythonException, match="JMSPriority"):
            write(half, broker, queue=queue, **this)
        released.result()
    with pytest.raises(Exception, match=r"\[JMS_REPLAY_MISMATCH\] .*partition 1 \(5 rows\)"):
        write(rows(spark, 10, 1), broker, queue=queue, **this)
    await_count(broker, queue, 5)
    priority = "int(4) JMSPriority"
    write(spark.range(0, 10, 1, 2).selectExpr("concat('row ', id) text", priority), broker, queue=queue, **this)
    assert take_texts(broker, queue) == [f"row {n}" for n in range(10)]


@pytest.mark.deep
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
    assert take_texts(broker, queue) == sorted(f"{number}-{n}" for number in range(2) for n in range(5))
    await_value(lambda: [broker.message_count(f"{LEDGER_PREFIX}{query}.token") for query in queries], [1])


@pytest.mark.deep
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
    assert take_texts(broker, queue) == ["the same"]


@pytest.mark.deep
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
    assert take_texts(broker, queue) == ["the same"] * 2


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
        ("overwrite", {}, r"\[JMS_UNSUPPORTED\] .*cannot empty a queue.*append"),
    ],
)
def test_what_a_batch_write_cannot_promise_is_refused_before_anything_connects(spark, mode, options, reason):
    nowhere = {"brokerUrl": "amqp://127.0.0.1:1", "queue": "q"}
    with pytest.raises(AnalysisException, match=reason):
        rows(spark, 1).write.format("jms").mode(mode).options(**(nowhere | options)).save()


# --- df.writeStream ---------------------------------------------------------------------------------


def stream_of_rows(spark, tmp_path, count=20, name="rows"):
    """A stream of one batch with columns n (0 …) and text."""
    folder = tmp_path / name
    spark.range(count).selectExpr("id n", "concat('row ', id) text").coalesce(1).write.parquet(str(folder))
    return spark.readStream.schema("n long, text string").parquet(str(folder))


def write_stream(frame, broker, tmp_path, **options):
    return run_available(frame, tmp_path / "checkpoint", sink="jms", **(access(broker) | options))


@pytest.mark.releases
def test_headers_properties_and_destinations_of_each_row(spark, broker, queue, tmp_path):
    frame = stream_of_rows(spark, tmp_path, 4).selectExpr(
        f"concat('queue://{queue}.', n % 2) destination",
        "cast(concat('bytes\\0', n) as binary) bytes",
        "map('n', cast(n as string), 'odd$名', 'a:b\\\\c\\n') properties",
        "concat('c-', n) JMSCorrelationID",
        "'queue://answers' JMSReplyTo",
        "'kind' JMSType",
        "cast(n + 3 as int) JMSPriority",
        "cast(1 as int) JMSDeliveryMode",
        "3600000L time_to_live",
        "'application/x' content_type",
        "n sequence",
    )
    before = time.time() * 1000
    write_stream(frame, broker, tmp_path)
    for k in (0, 1):
        with RawStomp(broker) as client:
            found = client.read(f"{queue}.{k}", wanted=2)
        for message, n in zip(found, sorted((k, k + 2), reverse=True), strict=True):  # priority first
            headers = message.headers
            assert message.body == b"bytes\0" + str(n).encode()
            assert (headers["n"], headers["odd$名"]) == (str(n), "a:b\\c\n")
            assert (headers["correlation-id"], headers["reply-to"]) == (f"c-{n}", "queue://answers")
            assert (headers["type"], headers["priority"], headers["persistent"]) == ("kind", str(n + 3), "false")
            assert before + 3_500_000 < int(headers["expires"]) < before + 3_700_000
            assert headers["content-type"] == "application/x"
            assert "sequence" not in headers


def test_a_literal_sets_a_header_of_all_rows(spark, broker, queue, tmp_path):
    headers = {"JMSDeliveryMode": lit(1), "JMSPriority": lit(7), "time_to_live": lit(3_600_000)}
    frame = stream_of_rows(spark, tmp_path, 2).select("text").withColumns(headers)
    broker.create_queue(queue, topic=True)
    with RawStomp(broker) as client:
        client.request("SUBSCRIBE", [("id", "t"), ("destination", queue), ("subscription-type", "MULTICAST")])
        write_stream(frame, broker, tmp_path, topic=queue)
        found = [client.receive() for _ in range(2)]
    assert [message.body for message in found] == [b"row 0", b"row 1"]
    assert [(m.headers["priority"], m.headers["persistent"]) for m in found] == [("7", "false")] * 2
    assert all(int(message.headers["expires"]) > time.time() * 1000 for message in found)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        pytest.param(
            "cast(n as int) JMSPriority",
            r"\[JMS_MESSAGE_FORMAT\].*[Rr]ow 10.*priorit",
            marks=pytest.mark.releases,
        ),
        deep("1 JMSPriorty", r"\[JMS_SCHEMA\].*JMSPriorty.*JMSPriority"),
    ],
)
def test_a_row_that_cannot_be_sent_fails_the_task_and_nothing_is_sent(spark, broker, queue, tmp_path, column, reason):
    frame = stream_of_rows(spark, tmp_path).selectExpr("text", column)
    with pytest.raises(StreamingQueryException, match=reason):
        write_stream(frame, broker, tmp_path, queue=queue)
    await_count(broker, queue, 0)


def test_bad_rows_are_dropped_and_typed_columns_sent(spark, broker, queue, tmp_path):
    frame = stream_of_rows(spark, tmp_path, 10).selectExpr(
        "text", "map('n', if(n % 2 = 0, cast(n as string), 'x')) properties",
        "map('n', 'short') property_types", "n / 4 Price", "n > 4 big",
    )  # fmt: skip
    options = {"propertyColumns": "price, big", "onBadRow": "drop"}
    write_stream(frame, broker, tmp_path, queue=queue, **options)
    with RawStomp(broker) as client:
        found = client.read(queue, wanted=5)
    assert [message.headers["n"] for message in found] == ["0", "2", "4", "6", "8"]
    assert [message.headers["price"] for message in found] == ["0.0", "0.5", "1.0", "1.5", "2.0"]
    assert [message.headers["big"] for message in found] == ["false"] * 3 + ["true"] * 2
    types = '{"n":"short","price":"double","big":"boolean"}'
    assert {message.headers["spark_jms_types"] for message in found} == {types}


def test_rows_without_a_destination_name_the_remedy(spark, broker, tmp_path):
    with pytest.raises(StreamingQueryException, match=r"destination.*option"):
        write_stream(stream_of_rows(spark, tmp_path).select("text"), broker, tmp_path)


def test_an_unknown_option_is_refused(spark, broker, queue, tmp_path):
    with pytest.raises(StreamingQueryException, match=r"\[JMS_UNKNOWN_OPTION\] .*priority.*JMSPriority"):
        write_stream(stream_of_rows(spark, tmp_path).select("text"), broker, tmp_path, queue=queue, priority=3)


def test_an_empty_batch_does_not_connect(spark, broker, tmp_path):
    frame = stream_of_rows(spark, tmp_path).where("n < 0").select("text")
    write_stream(frame, broker, tmp_path, queue="q", brokerUrl="stomp://127.0.0.1:1")


# --- exactly once ------------------------------------------------------------------------------------


@pytest.mark.releases
def test_a_batch_that_is_not_in_the_commit_log_is_not_sent_again(spark, broker, queue, tmp_path):
    frame = stream_of_rows(spark, tmp_path, 500).select("text")
    for _ in range(2):
        write_stream(frame, broker, tmp_path, **once_to(broker, queue))
        uncommit(tmp_path / "checkpoint")
    await_count(broker, queue, 500)
    await_count(broker, f"{ledger_of(tmp_path / 'checkpoint')}.token", 1)


@pytest.mark.deep
def test_at_least_once_a_batch_that_is_not_in_the_commit_log_is_sent_again(spark, broker, queue, tmp_path):
    """The default."""
    frame = stream_of_rows(spark, tmp_path, 10).select("text")
    write_stream(frame, broker, tmp_path, queue=queue)
    uncommit(tmp_path / "checkpoint")
    write_stream(frame, broker, tmp_path, queue=queue)
    await_count(broker, queue, 20)


def test_a_replay_with_other_rows_stops_the_query_or_is_sent_as_asked(spark, broker, queue, tmp_path):
    frame, options = stream_of_rows(spark, tmp_path, 5), once_to(broker, queue)
    write_stream(frame.select("text"), broker, tmp_path, **options)
    uncommit(tmp_path / "checkpoint")
    with pytest.raises(StreamingQueryException, match=r"\[JMS_REPLAY_MISMATCH\] .*/0/0 .*\b5\b"):
        write_stream(frame.where("n > 0").select("text"), broker, tmp_path, **options)
    await_count(broker, queue, 5)
    write_stream(frame.where("n > 0").select("text"), broker, tmp_path, **options, onReplayMismatch="send")
    assert take_texts(broker, queue) == sorted([f"row {n}" for n in range(5)] + [f"row {n}" for n in range(1, 5)])


@pytest.mark.deep
def test_each_worker_process_looks_into_the_ledger_once_in_a_run(spark, broker, queue, tmp_path):
    """A task has one connection, and the first one of a query one more, to create the ledger. A process has one more
    for the ledger, and one to ask what its queue is. Spark has a few idle processes and takes any of them.
    """
    batches = 8
    lines(tmp_path, batches, 3)
    frame = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(tmp_path / "rows"))
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        options = once_to(broker, queue) | {"brokerUrl": proxy.url}
        write_stream(frame.selectExpr("value text"), broker, tmp_path, **options)
        assert 1 <= proxy.accepted - batches - 1 < batches
    await_count(broker, queue, batches * 3)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"transaction": 10}, r"\[JMS_OPTION_CONFLICT\] .*transaction=10.*Remove option transaction"),
        deep({"writeId": "w"}, r"\[JMS_OPTION_CONFLICT\] .*writeId.*writeStream"),
        ({"brokerUrl": "stomp://127.0.0.1:1"}, r"\[JMS_UNSUPPORTED\] .*over STOMP.*COMMIT.*amqp://"),
    ],
)
def test_what_a_stream_cannot_promise_is_refused_before_anything_connects(spark, tmp_path, options, reason):
    frame = stream_of_rows(spark, tmp_path, 1).select("text")
    nowhere = {"brokerUrl": "amqp://127.0.0.1:1", "user": "u", "password": "p", "queue": "q"}
    everything = nowhere | {"deliveryGuarantee": "exactly-once"} | options
    with pytest.raises(StreamingQueryException, match=reason):
        run_available(frame, tmp_path / "checkpoint", sink="jms", **everything)


# --- on the driver ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("writer", "arguments", "name"),
    [(JmsStreamWriter, (7,), "batch 7"), (partial(JmsBatchWriter, overwrite=False), (), "this write")],
)
def test_the_driver_counts_dropped_rows_and_does_not_connect_for_at_least_once_writes(writer, arguments, name, caplog):
    reports = [TaskReport(TaskResult(Sent(5, 2))), None, TaskReport(TaskResult(Sent(1, 1)))]
    options = SinkOptions.parse({"brokerUrl": "amqp://127.0.0.1:1", "queue": "q"})
    writer(options).commit(reports, *arguments)
    assert caplog.messages == [f"= {name}: 3 of 9 rows were dropped (onBadRow=drop)"]


WRITES = """
import sys
from pyspark.sql import SparkSession

folder, url, user, password, queue = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").getOrCreate()


def write(batch, _):
    access = {"brokerUrl": url, "user": user, "password": password, "queue": queue}
    batch.selectExpr("'one' AS text").write.format("jms").mode("append").options(**access).save()


write(spark.range(0, 3, 1, 2), 0)
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load().writeStream.foreachBatch(write)
query = rows.option("checkpointLocation", folder).trigger(availableNow=True).start()
query.awaitTermination()
"""


@pytest.mark.deep
def test_a_write_that_is_no_batch_of_a_query_says_what_it_wrote(broker, queue, tmp_path):
    command = [sys.executable, "-c", WRITES, str(tmp_path), broker.url, broker.user, broker.password, queue]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert broker.message_count(queue) > 3
    said = [line for line in ended.stderr.splitlines() if "has ended" in line]
    assert [line.partition("= ")[2] for line in said] == ["the write has ended: 3 messages in 2 tasks"]


PLAN_AND_FINISH = """
import pickle, sys
from pyspark.sql.types import StringType, StructField, StructType
from pyspark_jms.spark.source import JmsDataSource
from pyspark_jms.spark.writers import TaskReport
from pyspark_jms.sink.tasks import Sent, TaskResult
source = JmsDataSource({"brokerUrl": "PROTOCOL://127.0.0.1:1", "queue": "q"})
writer = source.WRITER(StructType([StructField("text", StringType())]), False)
reports = pickle.loads(pickle.dumps([TaskReport(TaskResult(Sent(1)))]))
pickle.loads(pickle.dumps(writer)).commit(reports, *ARGUMENTS)
links = ("pyspark_jms.stomp.link", "pyspark_jms.amqp.link", "pyspark_jms.source.stores", "pyspark_jms.columns.arrays")
print(sorted({"pandas", *links} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    ("protocol", "writer", "arguments"),
    [
        ("stomp", "writer", "[]"),
        ("amqp", "streamWriter", "[1]"),
        pytest.param("stomp", "streamWriter", "[1]", marks=pytest.mark.deep),
        pytest.param("amqp", "writer", "[]", marks=pytest.mark.deep),
    ],
)
def test_planning_a_write_and_its_commit_import_neither_pandas_nor_a_protocol(protocol, writer, arguments):
    """Spark does both in processes of their own, which it ends after an idle minute."""
    program = PLAN_AND_FINISH.replace("PROTOCOL", protocol).replace("WRITER", writer).replace("ARGUMENTS", arguments)
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == "[]\n"
