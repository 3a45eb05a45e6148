"""Option ``selector`` in real queries: what the broker holds back, what Spark evaluates, what is refused."""

import json

import pytest
from proxy import Direction, Proxy
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.captured import StreamingQueryException
from rawstomp import RawStomp
from streaming import access, left, read, run_available, stopping
from waiting import await_count, await_value, wait_until

from pyspark_jms.spark.releases import HAS_ADMISSION_CONTROL

pytestmark = [pytest.mark.broker, pytest.mark.spark]

COLORS = ("red", "green", "blue")


def put_colored(broker, queue, *, topic=False):
    with RawStomp(broker) as client:
        messages = [
            ([("n", str(n)), ("color", COLORS[n % 3]), ("priority", str(n % 10))], f"text {n}") for n in range(30)
        ]
        client.send(queue, messages, topic=topic)


def deep(*case):
    return pytest.param(*case, marks=pytest.mark.deep)


def numbers(spark, table):
    return sorted(int(row.n) for row in spark.sql(f"select properties.n n from {table}").collect())


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("JMSPriority >= 7 AND NOT color = 'red'", lambda n: n % 10 >= 7 and n % 3),
        deep("color = 'red'", lambda n: n % 3 == 0),
        deep("color IN ('red', 'blue')\n  AND JMSDeliveryMode = 'PERSISTENT'", lambda n: n % 3 != 1),
        deep("convert_string_expressions:n BETWEEN 10 AND 12", lambda n: 10 <= n <= 12),
    ],
)
def test_what_does_not_match_stays_on_the_queue_for_others(spark, broker, queue, tmp_path, selector, wanted):
    put_colored(broker, queue)
    run_available(read(spark, broker, queue=queue, selector=selector, idleTimeout="500ms"), tmp_path, name="pushed")
    expected = [n for n in range(30) if wanted(n)]
    assert numbers(spark, "pushed") == expected
    assert left(broker, queue, 30 - len(expected)) == 30 - len(expected)
    await_value(lambda: set(broker.delivery_counts(queue)), {0})
    broker.purge(queue)


@pytest.mark.releases
def test_a_part_that_only_spark_can_evaluate(spark, broker, queue, tmp_path):
    put_colored(broker, queue)
    selector = "JMSRedelivered = FALSE AND color = 'red'"
    named = access(broker) | {"queue": queue, "selector": selector, "broker": "artemis"}
    with pytest.raises(AnalysisException, match=r"\[JMS_SELECTOR_RESIDUAL\]"):
        spark.readStream.format("jms").options(**named).load()
    frame = read(spark, broker, queue=queue, selector=selector, selectorInSpark="residual", idleTimeout="500ms")
    query = run_available(frame, tmp_path, name="split")
    assert numbers(spark, "split") == [n for n in range(30) if n % 3 == 0]
    assert left(broker, queue, 20) == 20
    if HAS_ADMISSION_CONTROL:  # else the progress has no metrics
        assert json.loads(query.lastProgress["sources"][0]["latestOffset"])["selectorDropped"] == 0
    broker.purge(queue)


@pytest.mark.deep
def test_one_kind_of_envelopes(spark, broker, queue, tmp_path):
    rows = spark.sql("SELECT map('n', named_struct('type', 'int', 'value', '1')) map UNION ALL SELECT NULL")
    rows.write.format("jms").mode("append").options(**access(broker), queue=queue).save()
    frame = read(spark, broker, queue=queue, selector="spark_jms_body = 'map'", idleTimeout="500ms")
    run_available(frame, tmp_path, name="envelopes")
    assert [row.map["n"].value for row in spark.table("envelopes").collect()] == ["1"]
    assert left(broker, queue, 1) == 1
    broker.purge(queue)


def test_an_invalid_selector_is_said_by_load(spark, broker):
    with pytest.raises(AnalysisException, match=r"(?s)\[JMS_INVALID_SELECTOR\].*color == 'red'.*\^"):
        read(spark, broker, queue="q", selector="color == 'red'")


@pytest.mark.deep
def test_what_an_ignored_selector_lets_through_is_dropped_from_a_topic_and_counted(spark, broker, queue, tmp_path):
    """Artemis ignores the selector of a multicast queue that is subscribed by its full name."""
    broker.create_queue(queue, topic=True)
    options = access(broker) | {"topic": f"{queue}::{queue}.sub", "selector": "color = 'red'"}
    frame = spark.readStream.format("jms").options(**options).load()
    with stopping(
        frame.writeStream.format("memory").queryName("kept").option("checkpointLocation", str(tmp_path)).start()
    ) as query:
        name = f"{queue}.sub"
        wait_until(lambda: broker.has_queue(name) and broker.consumer_count(name) == 1, what="the subscription")
        put_colored(broker, queue, topic=True)
        wait_until(
            lambda: (
                query.lastProgress
                and json.loads(query.lastProgress["sources"][0]["latestOffset"])["selectorDropped"] == 20
            ),
            what="the count of drops",
        )
        wait_until(lambda: len(numbers(spark, "kept")) == 10, what="the rows")
        assert numbers(spark, "kept") == [n for n in range(30) if n % 3 == 0]


class _DeafToSelectors(Direction):
    """On its way to the broker the selector becomes a header that means nothing: a broker that ignores it."""

    def _admit(self, link, tail, binary):
        passed, trap = super()._admit(link, tail, binary)
        return passed.replace(b"\nselector:", b"\nforgotten:"), trap


@pytest.mark.parametrize("in_spark", ["check", deep("off")])
def test_a_queue_whose_broker_ignores_the_selector_stops_the_query_and_keeps_its_messages(
    spark, broker, queue, tmp_path, in_spark
):
    put_colored(broker, queue)
    proxy = Proxy(broker.host, broker.port)
    proxy.to_broker = _DeafToSelectors()
    with proxy:
        options = access(broker) | {"brokerUrl": proxy.url, "queue": queue, "idleTimeout": "500ms"}
        options |= {"selector": "color = 'red'", "selectorInSpark": in_spark}
        frame = spark.readStream.format("jms").options(**options).load()
        if in_spark == "off":
            run_available(frame, tmp_path, name="unchecked")
            assert numbers(spark, "unchecked") == list(range(30))
            return
        with pytest.raises(StreamingQueryException, match=r"\[JMS_SELECTOR_IGNORED\] \d+ of \d+ "):
            run_available(frame, tmp_path, sink="noop")
        wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the subscription")
    await_count(broker, queue, 30)
    await_value(lambda: set(broker.delivery_counts(queue)), {0})
    broker.purge(queue)
