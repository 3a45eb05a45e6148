"""The sink through a real Spark, read back by a client that shares no code with it."""

import time

import pytest
from pyspark.errors.exceptions.captured import StreamingQueryException
from rawstomp import RawStomp
from streaming import access, run_available

from pyspark_jms.testing import EmbeddedArtemis, User

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def rows(spark, tmp_path, count=20, name="rows"):
    """A stream of one batch with columns n (0 …) and text."""
    folder = tmp_path / name
    spark.range(count).selectExpr("id n", "concat('row ', id) text").coalesce(1).write.parquet(str(folder))
    return spark.readStream.schema("n long, text string").parquet(str(folder))


def write(frame, broker, tmp_path, **options):
    return run_available(frame, tmp_path / "checkpoint", sink="jms", **(access(broker) | options))


def test_a_row_with_only_text_is_enough(spark, broker, queue, tmp_path):
    write(rows(spark, tmp_path).select("text"), broker, tmp_path, queue=queue)
    with RawStomp(broker) as client:
        found = client.read(queue, wanted=20)
    assert [message.body for message in found] == [f"row {n}".encode() for n in range(20)]
    assert {message.headers["persistent"] for message in found} == {"true"}
    assert {message.headers["priority"] for message in found} == {"4"}


def test_headers_properties_and_destinations_of_each_row(spark, broker, queue, tmp_path):
    frame = rows(spark, tmp_path, 4).selectExpr(
        f"concat('queue://{queue}.', n % 2) destination",
        "cast(concat('octets\\0', n) as binary) bytes",
        "map('n', cast(n as string), 'odd: name\\n', 'a:b\\\\c\\n') properties",
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
    write(frame, broker, tmp_path)
    for k in (0, 1):
        with RawStomp(broker) as client:
            found = client.read(f"{queue}.{k}", wanted=2)
        for message, n in zip(found, sorted((k, k + 2), reverse=True), strict=True):  # priority first
            headers = message.headers
            assert message.body == b"octets\0" + str(n).encode()
            assert (headers["n"], headers["odd: name\n"]) == (str(n), "a:b\\c\n")
            assert (headers["correlation-id"], headers["reply-to"]) == (f"c-{n}", "queue://answers")
            assert (headers["type"], headers["priority"], headers["persistent"]) == ("kind", str(n + 3), "false")
            assert before + 3_500_000 < int(headers["expires"]) < before + 3_700_000
            assert headers["content-type"] == "application/x"
            assert "sequence" not in headers


def test_options_are_the_defaults_of_rows(spark, broker, queue, tmp_path):
    options = {"topic": queue, "deliveryMode": "non_persistent", "priority": 7, "timeToLive": "1h"}
    broker.create_queue(queue, topic=True)
    with RawStomp(broker) as client:
        client.request("SUBSCRIBE", [("id", "t"), ("destination", queue), ("subscription-type", "MULTICAST")])
        write(rows(spark, tmp_path, 2).select("text"), broker, tmp_path, **options)
        found = [client.receive() for _ in range(2)]
    assert [message.body for message in found] == [b"row 0", b"row 1"]
    assert [(m.headers["priority"], m.headers["persistent"]) for m in found] == [("7", "false")] * 2


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("cast(n as int) JMSPriority", r"\[JMS_MESSAGE_FORMAT\].*[Rr]ow 10.*priorit"),
        ("map('destination', 'x') properties", r"\[JMS_MESSAGE_FORMAT\].*[Rr]ow 0.*destination"),
        ("1 JMSPriorty", r"\[JMS_SCHEMA\].*JMSPriorty.*JMSPriority"),
    ],
)
def test_a_row_that_cannot_be_sent_fails_the_task_and_nothing_is_sent(spark, broker, queue, tmp_path, column, said):
    frame = rows(spark, tmp_path).selectExpr("text", column)
    with pytest.raises(StreamingQueryException, match=said):
        write(frame, broker, tmp_path, queue=queue)
    assert broker.message_count(queue) == 0


def test_rows_without_a_destination_say_what_to_do(spark, broker, tmp_path):
    with pytest.raises(StreamingQueryException, match=r"destination.*option"):
        write(rows(spark, tmp_path).select("text"), broker, tmp_path)


def test_an_unknown_option_is_refused(spark, broker, queue, tmp_path):
    with pytest.raises(StreamingQueryException, match=r"\[JMS_UNKNOWN_OPTION\] .*prioritty.*priority"):
        write(rows(spark, tmp_path).select("text"), broker, tmp_path, queue=queue, prioritty=3)


def test_a_user_who_may_not_send_gets_one_clear_error(spark, tmp_path):
    limited = User("limited", "pw", {"consume", "createDurableQueue", "createAddress"})
    with EmbeddedArtemis(users=[limited]) as broker:
        broker.create_queue("closed")
        frame = rows(spark, tmp_path).select("text")
        with pytest.raises(StreamingQueryException, match=r"\[JMS_.*may not send") as caught:
            write(frame, broker, tmp_path, queue="closed", user="limited", password="pw")
        assert "row 1" not in str(caught.value)
        assert broker.message_count("closed") == 0


def test_an_empty_batch_connects_nowhere(spark, broker, tmp_path):
    frame = rows(spark, tmp_path).where("n < 0").select("text")
    write(frame, broker, tmp_path, queue="q", brokerUrl="stomp://127.0.0.1:1")


def test_order_within_a_partition_is_kept(spark, broker, queue, tmp_path):
    frame = rows(spark, tmp_path, 30_000).selectExpr("text", "map('n', cast(n as string)) properties")
    write(frame, broker, tmp_path, queue=queue)
    with RawStomp(broker) as client:
        found = client.read(queue, wanted=30_000)
    assert [int(message.headers["n"]) for message in found] == list(range(30_000))
