"""What is promised, on every broker: stops, crashes, restarts, refusals. Slow: `make test-all`."""

import time

import files_job
import own_process
import pytest
from chosen_brokers import BROKER_AS, skip_as
from streaming import batches_done, journal_in, run_available
from waiting import await_count, wait_until

pytestmark = pytest.mark.slow

COUNT = 1_200
BATCH = 100


def put_numbered(stage, queue, count=COUNT):
    with stage.client() as client:
        client.put(queue, [([("n", str(n))], f"text {n}") for n in range(count)])


def options_of(stage, queue, **options):
    return {**stage.access, "queue": queue, "maxMessagesPerTrigger": str(BATCH), **options}


def finish(spark, stage, options, folder):
    """Go on from the checkpoint until the queue is empty. Returns how many messages came twice."""
    found = files_job.read_on(spark, options | {"maxMessagesPerTrigger": str(COUNT)}, folder)
    wait_until(lambda: stage.broker.message_count(options["queue"]) == 0, what="an empty queue")
    assert set(found) == set(range(COUNT))
    return found.total() - COUNT


@pytest.mark.parametrize("journal", [False, True], ids=["no journal", "journal"])
def test_a_driver_killed_in_the_middle_loses_nothing_or_a_journal_is_refused(
    spark, stage, queues, tmp_path, journal, documented, report
):
    queue, _ = queues
    promised = documented["queue → Spark"]
    assert promised in {"at-least-once", "at-least-once, or exactly-once with a journal"}
    once = journal_in(tmp_path / "journal") if journal else {}
    options = options_of(stage, queue, **once)
    put_numbered(stage, queue)
    if journal and "exactly-once" not in promised:
        with pytest.raises(Exception, match=r"\[JMS_UNSUPPORTED\].*journalLocation"):
            files_job.read_on(spark, options, tmp_path)
        wait_until(lambda: stage.broker.message_count(queue) == COUNT, what="every message to be back")
        return
    with files_job.running(options, tmp_path) as process:
        wait_until(lambda: batches_done(tmp_path) >= 2, seconds=200, what="the second batch")
        own_process.kill(process)
    wait_until(lambda: stage.broker.consumer_count(queue) == 0, what="the end of the subscription")
    repeated = finish(spark, stage, options, tmp_path)
    kind = " with a journal" if journal else ""
    report(f"{stage.name}, driver killed{kind}: {COUNT} sent, {COUNT} read, {repeated} repeated")
    assert repeated == 0 or not journal


def test_a_query_stopped_in_the_middle_loses_nothing(spark, stage, queues, tmp_path, report):
    queue, _ = queues
    put_numbered(stage, queue)
    options = options_of(stage, queue)
    query = files_job.start(spark, options, tmp_path)
    wait_until(lambda: batches_done(tmp_path) >= 2, what="the second batch")
    query.stop()
    repeated = finish(spark, stage, options, tmp_path)
    report(f"{stage.name}, query stopped: {COUNT} sent, {COUNT} read, {repeated} repeated")
    assert repeated <= BATCH


def test_a_broker_killed_and_started_in_the_middle_loses_nothing(spark, own_stage, queues, tmp_path, report):
    queue, _ = queues
    put_numbered(own_stage, queue)
    options = options_of(own_stage, queue)
    query = files_job.start(spark, options, tmp_path)
    wait_until(lambda: batches_done(tmp_path) >= 2, what="the second batch")
    own_stage.broker.kill()
    own_stage.broker.start()
    done = batches_done(tmp_path)
    wait_until(lambda: batches_done(tmp_path) > done + 1, seconds=150, what="batches after the restart")
    query.stop()
    repeated = finish(spark, own_stage, options, tmp_path)
    report(f"{own_stage.name}, broker killed and started: {COUNT} sent, {COUNT} read, {repeated} repeated")


def test_bodies_of_every_type(spark, stage, queues, tmp_path, documented):
    queue, _ = queues
    rows = spark.sql(
        """
        SELECT 'text' body_type, 'ä 😀' text, CAST(NULL AS BINARY) bytes, NULL map, NULL stream UNION ALL
        SELECT 'bytes', NULL, X'0001FF00', NULL, NULL UNION ALL
        SELECT 'object', NULL, X'ACED0005', NULL, NULL UNION ALL
        SELECT 'message', NULL, NULL, NULL, NULL UNION ALL
        SELECT 'map', NULL, NULL, MAP('d', NAMED_STRUCT('type', 'double', 'value', '-0.0')), NULL UNION ALL
        SELECT 'stream', NULL, NULL, NULL, ARRAY(NAMED_STRUCT('type', 'char', 'value', 'x'))
        """
    )
    rows.write.format("jms").mode("append").options(**stage.access, queue=queue).save()
    stream = spark.readStream.format("jms").options(**stage.access, queue=queue).load()
    run_available(stream, tmp_path / "checkpoint", "memory", name=f"bodies_{stage.name}")
    assert documented["maps, streams and objects of this sink"] == "in envelopes"
    found = {row.body_type: row for row in spark.table(f"bodies_{stage.name}").collect()}
    assert found.keys() == {"text", "bytes", "object", "message", "map", "stream"}
    assert not [row.body_error for row in found.values() if row.body_error]
    assert found["text"].text == "ä 😀"
    assert bytes(found["bytes"].bytes) == b"\0\1\xff\0"
    assert bytes(found["object"].bytes) == b"\xac\xed\0\5"
    assert found["map"].map["d"].asDict() == {"type": "double", "value": "-0.0"}
    assert found["stream"].stream[0].asDict() == {"type": "char", "value": "x"}


def test_a_selector_is_evaluated_somewhere(spark, stage, queues, tmp_path, documented):
    queue, _ = queues
    by_broker = {"evaluated by the broker": True, "in Spark only": False}[documented["selectors"]]
    with stage.client() as client:
        client.put(queue, [([("color", color)], color) for color in ("red", "blue") * 20])
    choices = {} if by_broker else {"selectorInSpark": "residual"}
    stream = (
        spark.readStream.format("jms").options(**stage.access, queue=queue, selector="color = 'red'", **choices).load()
    )
    name = f"selected_{stage.name}"
    run_available(stream, tmp_path / "checkpoint", "memory", name=name)
    assert [row.text for row in spark.table(name).collect()] == ["red"] * 20
    left = 20 if by_broker else 0
    wait_until(lambda: stage.broker.message_count(queue) == left, what="what was not selected to stay, or go")


def test_exactly_once_writes_are_refused(spark, stage, queues, documented):
    queue, _ = queues
    assert documented["exactly-once writes (`deliveryGuarantee=exactly-once`)"].startswith("refused")
    assert "exactly-once" not in documented["Spark → queue"]
    options = stage.access | {"queue": queue, "deliveryGuarantee": "exactly-once", "writeId": f"job:{queue}/1"}
    write = spark.range(10).selectExpr("CAST(id AS STRING) text").write.format("jms").mode("append").options(**options)
    with pytest.raises(Exception, match=r"\[JMS_UNSUPPORTED\].*exactly-once.*amqp://"):
        write.save()
    assert not stage.broker.has_queue(queue) or stage.broker.message_count(queue) == 0


@pytest.mark.parametrize("named", [True, False], ids=["named", "found out"])
def test_transactions_work_or_are_refused(spark, stage, queues, named, documented):
    queue, _ = queues
    works = {"yes": True, "refused": False}[documented["one transaction for each task (`transaction=task`)"]]
    rows = spark.range(10).selectExpr("CAST(id AS STRING) text")
    broker = {"broker": stage.name} if named else {}
    write = rows.write.format("jms").mode("append").options(**stage.access, queue=queue, **broker)
    if not works:
        with pytest.raises(Exception, match=r"\[JMS_UNSUPPORTED\].*transaction=none"):
            write.option("transaction", "task").save()
    write.option("transaction", "auto").save()
    await_count(stage.broker, queue, 10)


def test_many_acknowledgements_at_once(spark, stage, queues, tmp_path):
    """Thousands in one batch: Classic reads none while it writes, and must not be left waiting for room."""
    queue, _ = queues
    rows = spark.range(0, 12_000, 1, 2).selectExpr("repeat(CAST(id AS STRING), 200) text")
    rows.write.format("jms").mode("append").options(**stage.access, queue=queue).save()
    stream = spark.readStream.format("jms").options(**stage.access, queue=queue).load()
    query = run_available(stream, tmp_path / "checkpoint", "noop")
    assert sum(progress.numInputRows for progress in query.recentProgress) == 12_000
    wait_until(lambda: stage.broker.message_count(queue) == 0, what="an empty queue")


def expired(stage, queue):
    """Have the broker itself move a message to a dead-letter queue; returns the name of that queue."""
    soon = ("expires", str(int(time.time() * 1000) + 300))
    with stage.client() as client:
        match stage.name:
            case "artemis":
                dead = "ExpiryQueue"
                client.put(queue, [([soon, ("n", "7")], "late")])
            case "classic":
                dead = f"DLQ.{queue}" if BROKER_AS == "classic-in-production" else "ActiveMQ.DLQ"
                client.put(queue, [([soon, ("n", "7")], "late")])
                time.sleep(1)
                client.put(queue, [([], "next")])
                client.get(queue, 1)  # it looks at what has expired when somebody reads
            case "rabbitmq":
                dead = f"{queue}.dead"
                declare_with_dead_letters(client, queue, dead)
                where = [("destination", f"/amq/queue/{queue}"), ("persistent", "true"), ("expiration", "300")]
                client.request("SEND", [*where, ("n", "7")], b"late")
    wait_until(lambda: stage.broker.message_count(dead) == 1, what="the expired message")
    return dead


def declare_with_dead_letters(client, queue, dead):
    client.request("SUBSCRIBE", [("id", "d"), ("destination", f"/queue/{dead}"), ("ack", "client-individual")])
    arguments = [("x-dead-letter-exchange", ""), ("x-dead-letter-routing-key", dead)]
    client.request("SUBSCRIBE", [("id", "q"), ("destination", f"/queue/{queue}"), ("ack", "client"), *arguments])
    for name in "dq":
        client.request("UNSUBSCRIBE", [("id", name)])


def test_what_a_broker_moved_to_its_dead_letter_queue_can_be_written_as_it_was_read(spark, stage, queues):
    skip_as("artemis-built-in", "it has no queue for expired messages")
    dead = expired(stage, queues[0])
    frame = spark.read.format("jms").options(**stage.access, queue=dead).load()
    (row,) = frame.collect()
    assert row.properties["n"] == "7"
    reported = stage.dialect.set_by_broker & row.properties.keys()
    assert reported, "the broker reports the original queue"
    again = spark.createDataFrame([row], frame.schema)
    again.write.format("jms").mode("append").options(**stage.access, queue=queues[1]).save()
    with stage.client() as client:
        (message,) = client.get(queues[1], 1)
    with stage.client() as client:
        client.get(dead, 1)
    assert (message.headers["n"], message.body) == ("7", b"late")
    assert not reported & message.headers.keys()


@pytest.mark.parametrize("there", [True, False])
def test_rows_that_are_not_persistent_arrive(spark, stage, queues, there):
    """RabbitMQ confirmed them and kept none: their queue was the connection's own, and ended with it."""
    queue = queues[1]
    if there:
        with stage.client() as client:
            client.put(queue, [([], "before")])
            client.get(queue, 1)
    rows = spark.range(20).selectExpr("concat('row ', id) text", "int(id % 2) + 1 JMSDeliveryMode")
    rows.coalesce(1).write.format("jms").mode("append").options(**stage.access, queue=queue).save()
    found = spark.read.format("jms").options(**stage.access, queue=queue).load().collect()
    reported = sorted((row.text, row.JMSDeliveryMode) for row in found)
    assert reported == sorted((f"row {n}", n % 2 + 1) for n in range(20))
    assert not any(row.properties for row in found)
