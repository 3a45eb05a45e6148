"""A batch read looks and removes nothing."""

import pytest
from numbered import fill
from pyspark.errors import AnalysisException
from rawstomp import RawStomp
from streaming import access, left
from waiting import await_value

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.spark.batch_reader import JmsPeek

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def peek(spark, broker, **options):
    return spark.read.format("jms").options(**access(broker), idleTimeout="300ms", **options).load()


@pytest.mark.releases
def test_shows_what_is_there_and_leaves_it_untouched(spark, broker, queue):
    fill(broker, queue, 500)
    for _ in range(2):
        rows = peek(spark, broker, queue=queue).orderBy("sequence").collect()
        assert [(row.sequence, row.text) for row in rows] == [(n, f"text {n}") for n in range(500)]
    assert left(broker, queue, 500) == 500
    await_value(lambda: set(broker.delivery_counts(queue)), {0})
    assert broker.consumer_count(queue) == 0


def test_a_read_ends_with_a_line(broker, queue, caplog):
    fill(broker, queue, 3)
    options = SourceOptions.parse(
        access(broker) | {"queue": queue, "selector": "n <> '0'", "idleTimeout": "300ms"}, "batch"
    )
    assert sum(batch.num_rows for batch in JmsPeek(options).read(None)) == 2
    assert caplog.messages[-1] == f"= the read has ended: 2 rows of {queue}; nothing was removed"


@pytest.mark.parametrize(
    ("bound", "seen"),
    [
        pytest.param({"maxMessagesPerTrigger": 7}, 7, marks=pytest.mark.releases),
        ({"maxBytesPerTrigger": "25k"}, 2),
        pytest.param({"maxBytesPerTrigger": 1}, 1, marks=pytest.mark.deep),
    ],
)
def test_is_bounded(spark, broker, queue, bound, seen):
    with RawStomp(broker) as client:
        client.send(queue, [([], str(n) * 10_000) for n in range(8)])
    found = [row.text[0] for row in peek(spark, broker, queue=queue, **bound).collect()]
    assert found == [str(n) for n in range(seen)]
    await_value(lambda: set(broker.delivery_counts(queue)), {0})


def test_bounds_and_sequence_are_of_all_queues_together(spark, broker, queue):
    names = [f"{queue}.{k}" for k in range(3)]
    for name in names:
        fill(broker, name, 4)
    listed = '["' + '", "'.join(names) + '"]'
    rows = peek(spark, broker, queue=listed, maxMessagesPerTrigger=10).collect()
    assert [row.sequence for row in rows] == list(range(10))
    assert [row.JMSDestination[-1] for row in rows] == list("0000111122")


def test_bytes_are_of_all_queues_together(spark, broker, queue):
    names = [f"{queue}.{k}" for k in range(3)]
    with RawStomp(broker) as client:
        for name in names:
            client.send(name, [([], "x" * 10_000)])
    listed = '["' + '", "'.join(names) + '"]'
    rows = peek(spark, broker, queue=listed, maxBytesPerTrigger="25k").collect()
    assert [row.JMSDestination[-1] for row in rows] == list("01")


def test_an_action_that_stops_early_gives_everything_back(spark, broker, queue):
    fill(broker, queue, 100)
    assert len(peek(spark, broker, queue=queue).limit(1).collect()) == 1
    assert left(broker, queue, 100) == 100
    await_value(lambda: set(broker.delivery_counts(queue)), {0})


def test_a_topic_has_nothing_to_look_at(spark, broker):
    with pytest.raises(AnalysisException, match=r"JMS_UNSUPPORTED.*readStream"):
        peek(spark, broker, topic="t").collect()


def test_options_of_a_stream_are_refused(spark, broker, queue):
    with pytest.raises(AnalysisException, match=r"JMS_UNKNOWN_OPTION.*windowBytes.*maxMessagesPerTrigger"):
        peek(spark, broker, queue=queue, windowBytes="1m").collect()


def test_consuming_is_refused_with_the_reason_and_the_remedy(spark, broker, queue, tmp_path):
    with pytest.raises(AnalysisException, match=r"(deliveryGuarantee|journalLocation) .*availableNow=True"):
        peek(spark, broker, queue=queue, deliveryGuarantee="exactly-once", journalLocation=str(tmp_path)).collect()


def test_others_do_not_see_the_messages_while_it_looks_and_do_afterwards(broker, queue):
    fill(broker, queue, 20)
    looking = JmsPeek(SourceOptions.parse(access(broker) | {"queue": queue, "idleTimeout": "1m"}, "batch")).read(None)
    seen = next(looking).num_rows
    with RawStomp(broker) as other:
        while seen < 20:
            seen += next(looking).num_rows
        assert other.read(queue, quiet=0.5, ack=False) == []
        looking.close()
        assert len(other.read(queue, wanted=20, ack=False)) == 20
    await_value(lambda: set(broker.delivery_counts(queue)), {0})
