"""What only ActiveMQ Classic does: Java's maps and objects, a browser, answers, permissions without a transaction."""

import time
from contextlib import closing
from uuid import UUID

import pyarrow as pa
import pytest
from amqp_messages import TRUE, binary, list_, properties, section, string, ulong
from amqp_sending import put_encoded, subscription_to
from numbered import fill
from rawstomp import RawStomp
from streaming import run_available
from waiting import await_count, await_value, wait_until

from pyspark_jms.amqp.sink import AmqpSinkLink
from pyspark_jms.errors import JMSSecurityError, UnsupportedError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.source.peek import peek
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.stomp.source import StompSource
from pyspark_jms.testing import EmbeddedClassic, User
from pyspark_jms.tools.cli import main

pytestmark = [pytest.mark.slow, pytest.mark.broker, pytest.mark.spark]


@pytest.fixture(scope="module")
def classic():
    limited = User("limited", "pw", permissions=set(), at={"mine.#": {"send", "consume", "createAddress"}})
    with EmbeddedClassic(users=[limited]) as broker:
        yield broker


def access(broker, user=None, password=None):
    return {"brokerUrl": broker.url, "user": user or broker.user, "password": password or broker.password}


@pytest.fixture
def java(classic):
    """A Jakarta session in the broker's own machine."""
    connection = classic.connection_factory().createConnection(classic.user, classic.password)
    connection.start()
    yield connection.createSession(False, 1)
    connection.close()


def send(java, queue, message):
    producer = java.createProducer(java.createQueue(queue))
    producer.send(message)
    producer.close()


def read(spark, classic, queue, folder, name, **options):
    stream = spark.readStream.format("jms").options(**access(classic), queue=queue, **options).load()
    run_available(stream, folder, "memory", name=name)
    return spark.table(name).collect()


def test_a_java_map_comes_with_its_content(spark, classic, java, queue, tmp_path):
    message = java.createMapMessage()
    message.setInt("i", 7)
    message.setString("s", "007 <&> ä\r\n")
    message.setDouble("d", -0.0)
    message.setBoolean("b", True)
    message.setObject("n", None)
    send(java, queue, message)
    (row,) = read(spark, classic, queue, tmp_path, "java_map")
    assert row.body_error is None
    assert {name: (element.type, element.value) for name, element in row.map.items()} == {
        "i": ("int", "7"),
        "s": ("string", "007 <&> ä\r\n"),
        "d": ("double", "-0.0"),
        "b": ("boolean", "true"),
        "n": ("string", None),
    }


def test_what_arrives_as_what(spark, classic, java, queue, tmp_path):
    """The table of docs/brokers/classic.md."""
    text = java.createTextMessage("ä 😀")
    text.setJMSCorrelationID("c")
    text.setJMSType("kind")
    for name, value in (("Boolean", True), ("Int", -7), ("String", "007")):
        getattr(text, f"set{name}Property")(name.lower(), value)
    text.setDoubleProperty("double", 1e10)
    text.setObjectProperty("null", None)
    text.setStringProperty("JMSXGroupID", "g")
    binary = java.createBytesMessage()
    binary.writeBytes(b"\0\xff")
    stream = java.createStreamMessage()
    stream.writeString("lost")
    for message in (text, binary, java.createBytesMessage(), java.createMessage(), stream, java.createTextMessage()):
        send(java, queue, message)
    rows = sorted(read(spark, classic, queue, tmp_path, "arrived"), key=lambda row: row.sequence)
    found = [(row.body_type, row.text, row.bytes and bytes(row.bytes), row.body_error) for row in rows]
    assert found == [
        ("text", "ä 😀", None, None),
        ("bytes", None, b"\0\xff", None),
        ("bytes", None, b"", None),
        ("text", "", None, None),
        ("text", "", None, None),
        ("text", "", None, None),
    ]
    assert rows[0].properties == {"boolean": "true", "int": "-7", "string": "007", "double": "1.0E10", "null": "null"}
    assert (rows[0].JMSCorrelationID, rows[0].JMSType) == ("c", "kind")
    assert rows[0].JMSMessageID.startswith("ID:")


def test_an_object_stops_the_query_with_the_reason_and_stays(spark, classic, java, queue, tmp_path):
    send(java, queue, java.createObjectMessage(classic.jvm.java.math.BigDecimal("1.5")))
    stream = spark.readStream.format("jms").options(**access(classic), queue=queue).load()
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(Exception, match=r"\[JMS_CONNECTION_LOST\](.|\n)*ObjectMessage"):
        query.awaitTermination(120)
    await_count(classic, queue, 1)
    (row,) = read(spark, classic, queue, tmp_path / "text", "object_as_text", bodyType="text")
    assert row.text == ""


def test_a_peek_counts_no_delivery(spark, classic, queue):
    rows = spark.range(700).selectExpr("CAST(id AS STRING) text")
    rows.write.format("jms").mode("append").options(**access(classic), queue=queue).save()
    peek = spark.read.format("jms").options(**access(classic), queue=queue).load()
    for _ in range(2):
        assert peek.count() == 700
    await_value(lambda: set(classic.delivery_counts(queue)), {0})


def test_a_row_that_is_refused_without_a_transaction_is_an_error(spark, classic):
    rows = spark.range(0, 50, 1, 1).selectExpr(
        "IF(id = 20, 'queue://theirs', 'queue://mine.q') destination", "'x' text"
    )
    write = rows.write.format("jms").mode("append").options(**access(classic, "limited", "pw"))
    with pytest.raises(Exception, match=r"\[JMS_SECURITY\].*limited.*theirs"):
        write.option("transaction", "none").save()
    with pytest.raises(Exception, match=r"\[JMS_(SECURITY|TRANSACTION_ROLLED_BACK)\]"):
        write.option("transaction", "task").save()


def test_a_refused_message_ends_its_transaction_over_amqp(classic, capsys):
    """Classic tells what it refused only if the message was sent unsettled, and commits the rest of the transaction."""

    def send_over_amqp(destinations, **login):
        given = {"brokerUrl": classic.amqp_url, "user": classic.user, "password": classic.password} | login
        rows = pa.RecordBatch.from_pydict({"text": ["x"] * len(destinations), "destination": destinations})
        send_at_least_once(AmqpSinkLink, SinkOptions.parse(given), iter([rows]))

    for destinations in (["queue://mine.amqp", "queue://theirs", "queue://mine.amqp"], ["queue://theirs"]):
        with pytest.raises(JMSSecurityError, match=r"limited.*theirs"):
            send_over_amqp(destinations, user="limited", password="pw")
    assert classic.message_count("mine.amqp") == 0

    send_over_amqp(["queue://mine.move"] * 50)
    given = ["--broker-url", classic.amqp_url, "--user", "limited", "--option", "password=pw"]
    assert main(["move", *given, "--queue", "mine.move", "--to", "theirs"]) == 1
    assert "[JMS_SECURITY]" in capsys.readouterr().err
    await_count(classic, "mine.move", 50)


def test_an_answer_reaches_who_asked(spark, classic, java, queue, tmp_path):
    answers = java.createTemporaryQueue()
    consumer = java.createConsumer(answers)
    message = java.createTextMessage("question")
    message.setJMSReplyTo(answers)
    send(java, queue, message)
    stream = spark.readStream.format("jms").options(**access(classic), queue=queue).load()
    rows = stream.selectExpr("JMSReplyTo destination", "concat(text, ': answer') text")
    run_available(rows, tmp_path, "jms", **access(classic))
    assert consumer.receive(20_000).getText() == "question: answer"


def test_astral_text_stays_in_bodies_and_is_refused_in_properties(spark, classic, queue):
    write = spark.sql("SELECT '😀' text").write.format("jms").mode("append").options(**access(classic), queue=queue)
    write.save()
    bad = spark.sql("SELECT 'x' text, map('p', '😀') properties")
    with pytest.raises(Exception, match=r"\[JMS_MESSAGE_FORMAT\] Row 0 .*'p'"):
        bad.write.format("jms").mode("append").options(**access(classic), queue=queue).save()
    await_count(classic, queue, 1)


def test_time_to_live_and_delay(spark, classic, queue):
    began = time.time()
    rows = spark.sql(
        "SELECT 'later' text, 1500L delivery_delay, CAST(NULL AS BIGINT) time_to_live UNION ALL SELECT 'gone', NULL, 1L"
    )
    rows.write.format("jms").mode("append").options(**access(classic), queue=queue).save()
    wait_until(lambda: any(letter.queue == queue for letter in classic.dead_letters()), what="the expired one")
    wait_until(lambda: classic.message_count(queue) == 1, what="the delayed one")
    assert time.time() - began >= 1.4


def limit_pages(classic, queues, *, browse, page=200):
    policy = classic.jvm.org.apache.activemq.broker.region.policy
    entry, entries, policies = policy.PolicyEntry(), classic.jvm.java.util.ArrayList(), policy.PolicyMap()
    entry.setQueue(queues)
    entry.setMaxPageSize(page)
    entry.setMaxBrowsePageSize(browse)
    entries.add(entry)
    policies.setPolicyEntries(entries)
    classic.server.setDestinationPolicy(policies)


def test_a_browse_that_ends_at_a_limit_is_an_error_and_a_small_whole_queue_is_not(classic, queue, caplog):
    limit_pages(classic, f"{queue}.>", browse=50)
    whole, cut = f"{queue}.whole", f"{queue}.cut"
    fill(classic, whole, 49)
    fill(classic, cut, 51)

    def shown(name, **limits):
        options = SourceOptions.parse(access(classic) | {"queue": name} | limits, "batch")
        return sum(map(len, peek(reading_of(options))))

    assert shown(whole) == shown(whole, maxMessagesPerTrigger="100") == 49
    assert caplog.text == ""
    for limits in ({}, {"maxMessagesPerTrigger": "51"}, {"selector": "n >= 0"}, {"selector": "n < 0"}):
        with pytest.raises(UnsupportedError, match=r"shows 50 messages .* the broker has more"):
            shown(cut, **limits)
    assert shown(cut, maxMessagesPerTrigger="50") == 50


@pytest.mark.parametrize("url", ["url", "amqp_url"])
@pytest.mark.parametrize(("page", "messages", "warned"), [(10, 61, False), (200, 199, False), (200, 250, True)])
def test_a_selector_that_matches_the_last_message_only_shows_it(classic, queue, caplog, url, page, messages, warned):
    """Classic alone ends such a browse after the first page, with nothing."""
    limit_pages(classic, queue, browse=1000, page=page)
    with RawStomp(classic) as client:
        client.send(f"/queue/{queue}", [([("n", number)], "") for number in range(messages)])
    given = access(classic) | {"queue": queue, "brokerUrl": getattr(classic, url), "idleTimeout": "300ms"}
    options = SourceOptions.parse(given | {"selector": f"n = '{messages - 1}'"}, "batch")
    assert sum(map(len, peek(reading_of(options)))) == 1
    assert ("the broker does not tell how many it has" in caplog.text) is warned


# --- what AMQP clients sent, over STOMP ---------------------------------------------------------------

QPID_ID = string(f"ID:{UUID(int=7)}:1:1:1-1")
AMQP_IDS = {
    "string": QPID_ID,
    "plain": string("order-7"),
    "own": string("ID:host-1-2:1:1:1:1"),  # spelled as Classic spells its own
    "uuid": b"\x98" + UUID(int=7).bytes,
    "ulong": ulong(7),
    "binary": binary(b"\0\xff"),
}

SHOWN = {
    "string": f"ID:{UUID(int=7)}:1:1:1-1",
    "plain": "ID:order-7",
    "own": r"\[ID:host-1-2:1:1:1:1\]",
    "uuid": f"ID:AMQP_UUID:{UUID(int=7)}",
    "ulong": "ID:AMQP_ULONG:7",
    "binary": "ID:AMQP_BINARY:00FF",
}


def put_with_ids(broker, queue, *ids):
    head, body = section(0x70, list_(TRUE)), section(0x77, string("x"))
    messages = [head + properties(**({"message_id": each} if each else {})) + body for each in ids]
    put_encoded(broker, f"queue://{queue}", messages)


def noop(spark, broker, queue, folder, **options):
    stream = spark.readStream.format("jms").options(**access(broker) | options, queue=queue).load()
    return run_available(stream, folder, "noop")


def test_what_the_amqp_sink_writes_is_acknowledged_over_stomp(spark, classic, queue, tmp_path):
    rows = spark.range(5).selectExpr("CAST(id AS STRING) text")
    over_amqp = access(classic, "amqp")
    rows.write.format("jms").mode("append").options(**over_amqp, queue=queue).save()
    found = read(spark, classic, queue, tmp_path, "of_amqp")
    assert sorted(row.text for row in found) == [*"01234"]
    assert len({row.JMSMessageID for row in found}) == 5
    await_count(classic, queue, 0)


@pytest.mark.parametrize("kind", AMQP_IDS)
def test_an_id_of_an_amqp_client_ends_a_stomp_read_with_the_cause(spark, classic, queue, tmp_path, kind):
    put_with_ids(classic, queue, None, AMQP_IDS[kind])
    with pytest.raises(Exception, match=rf"\[JMS_UNSUPPORTED\] .*{SHOWN[kind]}.*Read the queue over AMQP"):
        noop(spark, classic, queue, tmp_path / "stomp")
    await_count(classic, queue, 1)  # the first message has Classic's own id
    noop(spark, classic, queue, tmp_path / "amqp", brokerUrl=classic.amqp_url)
    await_count(classic, queue, 0)


def test_a_read_with_a_journal_meets_such_an_id(spark, classic, queue, tmp_path):
    put_with_ids(classic, queue, QPID_ID)
    once = {"deliveryGuarantee": "exactly-once", "journalLocation": str(tmp_path / "j")}
    with pytest.raises(Exception, match=r"\[JMS_UNSUPPORTED\] .*Read the queue over AMQP"):
        noop(spark, classic, queue, tmp_path / "c", **once)
    await_count(classic, queue, 1)


def test_a_batch_read_over_stomp_shows_such_messages_up_to_its_window(classic, queue):
    put_with_ids(classic, queue, *[QPID_ID, None] * 500)
    options = SourceOptions.parse(access(classic) | {"queue": queue}, "batch")
    assert sum(map(len, peek(reading_of(options)))) == 1000
    with closing(StompSource.connect(options.connection)) as link:
        link.subscribe(subscription_to(queue, browse=True, window_messages=100))
        with pytest.raises(UnsupportedError, match=r"Read the queue over AMQP"):
            wait_until(lambda: [link.shown(each) for each in link.take()] and False, what="the error")


def test_a_move_over_stomp_sends_nothing_that_it_cannot_acknowledge(classic, queue, capsys):
    put_with_ids(classic, queue, QPID_ID)
    given = ["--broker-url", classic.url, "--user", classic.user, "--option", f"password={classic.password}"]
    assert main(["move", *given, "--queue", queue, "--to", f"{queue}.to"]) == 1
    assert "[JMS_UNSUPPORTED]" in capsys.readouterr().err
    assert (classic.message_count(queue), classic.has_queue(f"{queue}.to")) == (1, False)
