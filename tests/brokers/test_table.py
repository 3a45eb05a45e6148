"""Each row of the table of a broker's page, tested on its broker. The cell decides the expected result."""

import ast
import threading
import time
from contextlib import closing
from pathlib import Path

import brokers_page
import pytest
from chosen_brokers import skip_as
from proxy import Proxy
from pyspark.errors import StreamingQueryException
from streaming import run_available
from waiting import await_count, await_value, wait_until

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.stomp.link.connection import connect
from pyspark_jms.stomp.link.management import StompManagementLink
from pyspark_jms.testing import JmsClient
from pyspark_jms.tools.check.broker import open_management

slow = pytest.mark.slow


def test_every_row_is_tested_or_listed_as_not_tested():
    """A test of this folder uses ``documented["…"]``."""
    tested = {
        node.slice.value
        for path in Path(__file__).parent.glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "documented"
    }
    rows = {fact for broker in brokers_page.BROKERS for fact in brokers_page.facts(broker)}
    assert tested | brokers_page.UNTESTED == rows
    assert not tested & brokers_page.UNTESTED


@slow
def test_who_answers(stage, report):
    """The last lines of a run name the brokers and versions of the run."""
    with closing(connect(settings(stage))) as link:
        assert link.dialect is stage.dialect
    report(f"{stage.name}: run on {link.server}, measured on {stage.dialect.tested_versions}")


@slow
def test_a_message_is_known_again(spark, stage, queues, tmp_path, documented):
    queue, _ = queues
    given = documented["`JMSMessageID`"] == "if the producer set one"
    headers = [[("amqp-message-id", f"m{n}")] if given else [] for n in range(5)]
    with stage.client() as client:
        client.put(queue, [(each, f"text {n}") for n, each in enumerate(headers)])
    before = ids(spark.read.format("jms").options(**stage.access, queue=queue).load().collect())
    with stage.client() as client:
        client.get(queue, 5, ack=False)  # delivered, and the connection ends
    wait_until(lambda: stage.in_flight(queue, 5) == 0, what="the five to be back")
    stream = spark.readStream.format("jms").options(**stage.access, queue=queue).load()
    run_available(stream, tmp_path, "memory", name=f"known_{stage.name}")
    after = ids(spark.table(f"known_{stage.name}").collect())

    assert before == after
    assert before.keys() == {f"text {n}" for n in range(5)}
    stable, own = zip(*before.values(), strict=True)
    known = {"yes": 5, "no": 0}[documented["redeliveries are recognised (`delivery_id`)"].partition(":")[0]]
    assert len(set(stable) - {None}) == known
    match documented["`JMSMessageID`"]:
        case "no":
            assert set(own) == {None}
        case "yes":
            assert len(set(own)) == 5
            assert all(each.startswith("ID:") for each in own)
        case "if the producer set one":
            assert sorted(own) == [f"m{n}" for n in range(5)]


FAULTS = {"in the sink": ("chr(0)", "JMS_MESSAGE_FORMAT"), "in Spark": ("raise_error('enough')", "enough")}


@slow
@pytest.mark.parametrize("where", list(FAULTS))
def test_a_task_that_fails_leaves_nothing_or_is_refused(spark, set_spark, stage, queues, documented, where):
    """Row 950 of a thousand is bad. In Spark, where it cannot be evaluated, the sink sees the rows before it end."""
    refused, queue = queues
    fault, stated = FAULTS[where]
    together = {"yes": True, "refused": False}[documented["one transaction for each task (`transaction=task`)"]]
    set_spark("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    rows = spark.range(0, 1_000, 1, 1).selectExpr(f"IF(id = 950, {fault}, repeat('x', 200)) text")
    write = rows.write.format("jms").mode("append").options(**stage.access)
    refusal = stated if together else rf"\[JMS_UNSUPPORTED\].*transaction=none|{stated}"
    with pytest.raises(Exception, match=refusal):
        write.options(queue=refused, transaction="task").save()
    with pytest.raises(Exception, match=stated):
        write.options(queue=queue, transaction="none").save()
    wait_until(lambda: stage.broker.message_count(queue) > 0, what="rows of the task without a transaction")
    await_count(stage.broker, refused, 0)


@slow
def test_what_was_written_is_there_after_kill_9(spark, own_stage, queues, documented):
    """The broker is killed as soon as the writes have returned."""
    by_row, by_task = queues
    rows = spark.range(0, 1_300, 1, 1).selectExpr("CAST(id AS STRING) text")
    write = rows.write.format("jms").mode("append").options(**own_stage.access)
    together = "row by row" not in documented["Spark → queue"]
    write.options(queue=by_row, transaction="none").save()
    if together:
        write.options(queue=by_task, transaction="task").save()
    own_stage.broker.kill()
    own_stage.broker.start()
    await_count(own_stage.broker, by_row, 1_300)
    await_count(own_stage.broker, by_task, (1_300 if together else 0))


@slow
def test_rows_without_a_transaction_are_confirmed(spark, stage, queues, documented):
    """The link dies at the fiftieth receipt, where there is one."""
    queue, _ = queues
    rows = spark.range(0, 100, 1, 1).selectExpr("CAST(id AS STRING) text")
    each = {"one for each row": True, "one for all rows": False}[documented["receipts with `transaction=none`"]]
    with Proxy(stage.broker.host, stage.broker.port) as proxy:
        proxy.to_client.cut_at(b"RECEIPT\n", nth=50)
        write = rows.write.format("jms").mode("append").options(**stage.access | {"brokerUrl": proxy.url})
        write = write.options(queue=queue, transaction="none")
        if each:
            with pytest.raises(Exception, match=r"\[JMS_CONNECTION_LOST\]"):
                write.save()
        else:
            write.save()
        assert proxy.to_client.cut_done.wait(10 if each else 0) is each
    if not each:
        await_count(stage.broker, queue, 100)


@slow
def test_what_is_in_flight_is_bounded(spark, stage, queues, tmp_path, documented):
    """While the first batch is held. Messages of 1,000 bytes, of which 64 KB are at most 65 and one that passes it."""
    queue, _ = queues
    with stage.client() as client:
        client.put(queue, [([], "x" * 1_000)] * 400)
    words = documented["prefetch window"]
    least, most = (16, 16) if "messages: one for each 4 KB" in words else (33, 66)
    assert stage.dialect.window_header in words
    finished = threading.Event()
    stream = spark.readStream.format("jms").options(**stage.access, queue=queue, windowBytes="64k").load()
    query = stream.writeStream.foreachBatch(lambda *_: finished.wait(250)).option("checkpointLocation", str(tmp_path))
    query = query.start()
    try:
        wait_until(lambda: stage.in_flight(queue, 400) >= least, what="a full window")
        until = time.monotonic() + 2
        while time.monotonic() < until:
            assert stage.in_flight(queue, 400) <= most
    finally:
        finished.set()
        query.stop()


@slow
def test_what_a_stop_costs(spark, stage, queues, tmp_path, documented):
    """A query ends twelve times with ten messages in flight. Artemis gives up after ten attempts, a Java consumer of
    Classic after six.
    """
    queue, _ = queues
    with stage.client() as client:
        client.put(queue, [([], "x")] * 10)
    stream = spark.readStream.format("jms").options(**stage.access, queue=queue).load()
    for number in range(12):
        all_are_here = threading.Event()

        def fail(_rows, _batch, all_are_here=all_are_here):
            all_are_here.wait(250)
            raise RuntimeError("the query ends, and its batch is not done")

        writer = stream.writeStream.foreachBatch(fail).option("checkpointLocation", str(tmp_path / str(number)))
        query = writer.start()
        wait_until(lambda: stage.in_flight(queue, 10) == 10, what="all of them in flight")
        all_are_here.set()
        with pytest.raises(StreamingQueryException, match="its batch is not done"):
            query.awaitTermination(250)
        wait_until(lambda: stage.in_flight(queue, 10) == 0, what="all of them to be back")
    words = documented["delivery attempts when a query stops"]
    assert words in {"none", "one for each message in flight; the broker has no limit"}
    free = words == "none"
    if hasattr(stage.broker, "delivery_counts"):
        await_value(lambda: stage.broker.delivery_counts(queue), [0 if free else 12] * 10)
    with stage.client() as client:
        found = client.get(queue, 10)  # none of them went to the dead letters
    assert {message.headers.get("redelivered", "false") for message in found} == {"false" if free else "true"}


@slow
def test_a_look_counts_no_delivery(spark, stage, queues, documented):
    queue, _ = queues
    with stage.client() as client:
        client.put(queue, [([], "x")] * 300)
    for _ in range(3):
        assert spark.read.format("jms").options(**stage.access, queue=queue).load().count() == 300
        wait_until(lambda: stage.in_flight(queue, 300) == 0, what="all of them to be back")
    with stage.client() as client:
        found = client.get(queue, 300)
    seen = {message.headers.get("redelivered", "false") for message in found}
    assert seen == {{"yes": "false", "no": "true"}[documented["`spark.read` costs no delivery attempt"]]}


@slow
def test_what_was_acknowledged_stays_away_after_kill_9(spark, own_stage, queues, tmp_path, documented, report):
    queue, _ = queues
    with own_stage.client() as client:
        client.put(queue, [([], "x" * 1_000)] * 300)
    stream = spark.readStream.format("jms").options(**own_stage.access, queue=queue).load()
    query = run_available(stream, tmp_path, "noop")
    assert sum(progress.numInputRows for progress in query.recentProgress) == 300
    own_stage.broker.kill()
    own_stage.broker.start()
    back = own_stage.broker.message_count(queue)
    report(f"{own_stage.name}: {back} of 300 acknowledged messages were back after kill -9 of the broker")
    assert back <= {"yes": 0, "no": 300}[documented["acknowledgements survive `kill -9` of the broker"]]


@slow
def test_time_to_live(spark, stage, queues, tmp_path, documented):
    queue, _ = queues
    rows = spark.sql("SELECT 'gone' text, 1L time_to_live UNION ALL SELECT 'stays', 3600000L")
    rows.write.format("jms").mode("append").options(**stage.access, queue=queue).save()
    time.sleep(0.1)
    stream = spark.readStream.format("jms").options(**stage.access, queue=queue).load()
    run_available(stream, tmp_path, "memory", name=f"life_{stage.name}")
    assert documented["time to live"] == "yes"
    assert [row.text for row in spark.table(f"life_{stage.name}").collect()] == ["stays"]


@slow
def test_a_delay_works_or_is_refused(spark, stage, queues, documented):
    skip_as("classic-as-run", "without schedulerSupport it delivers at once")
    queue, _ = queues
    rows = spark.sql("SELECT 'later' text, 1500L delivery_delay")
    write = rows.write.format("jms").mode("append").options(**stage.access, queue=queue)
    began = time.time()
    if documented["delivery delay"] == "refused":
        with pytest.raises(Exception, match=r"\[JMS_UNSUPPORTED\].*delivery_delay"):
            write.save()
        await_count(stage.broker, queue, 0)
        return
    write.save()
    with stage.client() as client:
        (message,) = client.get(queue, 1)
    assert message.body == b"later"
    assert time.time() - began >= 1.5


@slow
def test_maps_of_java_producers(spark, stage, queues, tmp_path, documented):
    queue, _ = queues
    words = documented["maps of Java producers"]
    if words == "not tried":
        pytest.skip("no JMS client of this broker is at hand")
    with JmsClient(stage.broker) as java:
        java.send(queue, {"i": 7})
    stream = spark.readStream.format("jms").options(**stage.access, queue=queue).load()
    run_available(stream, tmp_path, "memory", name=f"java_map_{stage.name}")
    (row,) = spark.table(f"java_map_{stage.name}").collect()
    if words == "with their content":
        assert {name: (item.type, item.value) for name, item in row.map.items()} == {"i": ("int", "7")}
    else:
        assert words == "without their content"
        assert row.map is None


@slow
def test_questions_about_itself(stage, documented):
    link, finding = open_management(StompManagementLink, settings(stage))
    if documented["management queries"] == "yes":
        with link:
            assert link.attribute("broker", "version")
    else:
        assert link is None
        assert stage.name in finding.value


def settings(stage):
    return SourceOptions.parse(stage.access | {"queue": "q"}).connection


def ids(rows):
    return {row.text: (row.delivery_id, row.JMSMessageID) for row in rows}
