"""What only ActiveMQ Classic does: Java's maps and objects, a browser, answers, permissions without a transaction."""

from contextlib import closing
from uuid import UUID

import commands
import pyarrow as pa
import pytest
from amqp_messages import TRUE, binary, list_, properties, section, string, ulong
from amqp_sending import put_encoded, subscription_to
from broker_rows import read_batches, read_texts, write_batch
from numbered import fill
from rawstomp import RawStomp
from streaming import access, journal_in, run_available
from waiting import await_count, wait_until

from pyspark_jms.errors import JMSSecurityError, UnsupportedError
from pyspark_jms.jms.model import BodyType
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.stomp.source import StompSource
from pyspark_jms.testing import EmbeddedClassic, JmsClient, Typed, User

pytestmark = [pytest.mark.slow, pytest.mark.broker, pytest.mark.spark]


LIMITED = {"user": "limited", "password": "pw"}


@pytest.fixture(scope="module")
def classic():
    limited = User(*LIMITED.values(), permissions=set(), at={"mine.#": {"send", "consume", "createAddress"}})
    with EmbeddedClassic(users=[limited]) as broker:
        yield broker


@pytest.fixture
def java(classic):
    with JmsClient(classic) as client:
        yield client


def read(spark, classic, queue, folder, name, **options):
    stream = spark.readStream.format("jms").options(**access(classic), queue=queue, **options).load()
    run_available(stream, folder, "memory", name=name)
    return spark.table(name).collect()


def test_a_java_map_comes_with_its_content(spark, classic, java, queue, tmp_path):
    java.send(queue, {"i": 7, "s": "007 <&> ä\r\n", "d": Typed("double", -0.0), "b": True, "n": None})
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
    properties = {"boolean": True, "int": -7, "string": "007", "double": Typed("double", 1e10), "null": None}
    properties |= {"JMSXGroupID": "g"}
    java.send(queue, "ä 😀", properties=properties, correlation_id="c", type="kind")
    for body in (b"\0\xff", b"", None, ["lost"]):
        java.send(queue, body)
    java.send(queue, body_type=BodyType.TEXT)
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
    java.send(queue, classic.jvm.java.util.UUID.randomUUID())
    stream = spark.readStream.format("jms").options(**access(classic), queue=queue).load()
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(Exception, match=r"\[JMS_CONNECTION_LOST\](.|\n)*ObjectMessage"):
        query.awaitTermination(120)
    await_count(classic, queue, 1)
    (row,) = read(spark, classic, queue, tmp_path / "text", "object_as_text", bodyType="text")
    assert row.text == ""


def test_a_row_that_is_refused_without_a_transaction_is_an_error(spark, classic):
    rows = spark.range(0, 50, 1, 1).selectExpr(
        "IF(id = 20, 'queue://theirs', 'queue://mine.q') destination", "'x' text"
    )
    write = rows.write.format("jms").mode("append").options(**access(classic) | LIMITED)
    with pytest.raises(Exception, match=r"\[JMS_SECURITY\].*limited.*theirs"):
        write.option("transaction", "none").save()
    with pytest.raises(Exception, match=r"\[JMS_(SECURITY|TRANSACTION_ROLLED_BACK)\]"):
        write.option("transaction", "task").save()


def test_a_refused_message_ends_its_transaction_over_amqp(classic, capsys):
    """Classic tells what it refused only if the message was sent unsettled, and commits the rest of the transaction."""

    def send_over_amqp(destinations, **login):
        rows = pa.RecordBatch.from_pydict({"text": ["x"] * len(destinations), "destination": destinations})
        write_batch(access(classic, "amqp") | login, None, rows)

    for destinations in (["queue://mine.amqp", "queue://theirs", "queue://mine.amqp"], ["queue://theirs"]):
        with pytest.raises(JMSSecurityError, match=r"limited.*theirs"):
            send_over_amqp(destinations, **LIMITED)
    assert classic.message_count("mine.amqp") == 0

    send_over_amqp(["queue://mine.move"] * 50)
    assert commands.run(access(classic, "amqp") | LIMITED, "move", "--queue", "mine.move", "--to", "theirs") == 1
    assert "[JMS_SECURITY]" in capsys.readouterr().err
    await_count(classic, "mine.move", 50)


def test_astral_text_stays_in_bodies_and_is_refused_in_properties(spark, classic, queue):
    write = spark.sql("SELECT '😀' text").write.format("jms").mode("append").options(**access(classic), queue=queue)
    write.save()
    bad = spark.sql("SELECT 'x' text, map('p', '😀') properties")
    with pytest.raises(Exception, match=r"\[JMS_MESSAGE_FORMAT\] Row 0 .*'p'"):
        bad.write.format("jms").mode("append").options(**access(classic), queue=queue).save()
    await_count(classic, queue, 1)


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
        return sum(map(len, read_batches(access(classic), name, **limits)))

    assert shown(whole) == shown(whole, maxMessagesPerTrigger="100") == 49
    assert caplog.text == ""
    for limits in ({}, {"maxMessagesPerTrigger": "51"}, {"selector": "n >= 0"}, {"selector": "n < 0"}):
        with pytest.raises(UnsupportedError, match=r"shows 50 messages .* the broker has more"):
            shown(cut, **limits)
    assert shown(cut, maxMessagesPerTrigger="50") == 50


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
@pytest.mark.parametrize(("page", "messages", "warned"), [(10, 61, False), (200, 199, False), (200, 250, True)])
def test_a_selector_that_matches_the_last_message_only_shows_it(
    classic, queue, caplog, protocol, page, messages, warned
):
    """Classic alone ends such a browse after the first page, with nothing."""
    limit_pages(classic, queue, browse=1000, page=page)
    with RawStomp(classic) as client:
        client.send(f"/queue/{queue}", [([("n", number)], "") for number in range(messages)])
    assert len(read_texts(access(classic, protocol), queue, selector=f"n = '{messages - 1}'")) == 1
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
    rows.write.format("jms").mode("append").options(**access(classic, "amqp"), queue=queue).save()
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
    with pytest.raises(Exception, match=r"\[JMS_UNSUPPORTED\] .*Read the queue over AMQP"):
        noop(spark, classic, queue, tmp_path / "c", **journal_in(tmp_path / "j"))
    await_count(classic, queue, 1)


def test_a_batch_read_over_stomp_shows_such_messages_up_to_its_window(classic, queue):
    put_with_ids(classic, queue, *[QPID_ID, None] * 500)
    options = SourceOptions.parse(access(classic) | {"queue": queue}, "batch")
    assert sum(map(len, read_batches(access(classic), queue))) == 1000
    with closing(StompSource.connect(options.connection)) as link:
        link.subscribe(subscription_to(queue, browse=True, window_messages=100))
        with pytest.raises(UnsupportedError, match=r"Read the queue over AMQP"):
            wait_until(lambda: [link.shown(each) for each in link.take()] and False, what="the error")


def test_a_move_over_stomp_sends_nothing_that_it_cannot_acknowledge(classic, queue, capsys):
    put_with_ids(classic, queue, QPID_ID)
    assert commands.run(access(classic), "move", "--queue", queue, "--to", f"{queue}.to") == 1
    assert "[JMS_UNSUPPORTED]" in capsys.readouterr().err
    assert (classic.message_count(queue), classic.has_queue(f"{queue}.to")) == (1, False)
