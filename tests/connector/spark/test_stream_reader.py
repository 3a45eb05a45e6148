"""What a reader with admission control is asked, by Spark and by hand. What all readers do: test_stream_reading.py."""

import pickle
import threading

import pytest
from numbered import fill
from proxy import Proxy
from pyspark.errors.exceptions.captured import StreamingQueryException
from streaming import access, left, read, stopping
from waiting import wait_until

from pyspark_jms.errors import BrokerUnreachableError, JournalError
from pyspark_jms.options.source import SourceOptions

pytest.importorskip("pyspark.sql.streaming.datasource", reason="this release has no admission control")

from pyspark.sql.streaming.datasource import ReadMaxBytes

from pyspark_jms.spark.stream_reader import JmsStreamReader

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def test_trigger_once_is_refused(spark, broker, queue, tmp_path):
    fill(broker, queue, 3)
    writer = read(spark, broker, queue=queue).writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    query = writer.trigger(once=True).start()
    with pytest.raises(StreamingQueryException, match=r"JMS_UNSUPPORTED.*availableNow"):
        query.awaitTermination(60)
    assert left(broker, queue, 3) == 3


def test_the_copy_for_executors_carries_the_options_only(broker):
    reader = JmsStreamReader(SourceOptions.parse(access(broker) | {"queue": "q"}))
    assert set(vars(pickle.loads(pickle.dumps(reader)))) == {"_options", "_query"}
    assert reader.partitions({"seq": 0}, {"seq": 5}) == []
    assert reader.initialOffset() == {"seq": 0}


@pytest.mark.parametrize("repeated", [False, True])
def test_a_query_whose_first_batch_did_not_end_waits_for_its_broker_too(broker, queue, repeated):
    """Its checkpoint has no batch in the commit log: Spark asks for the first offset, as for a new query."""
    fill(broker, queue, 3)
    with Proxy(broker.host, broker.port) as proxy:
        proxy.refuse()
        raw = access(broker) | {"brokerUrl": proxy.url, "queue": queue, "reconnectTimeout": "60s"}
        with stopping(JmsStreamReader(SourceOptions.parse(raw))) as reader:
            start = reader.initialOffset()
            if repeated:
                assert reader.partitions(start, {"seq": 3}) == []
                threading.Timer(2, proxy.accept).start()
                wait_until(lambda: reader.latestOffset({"seq": 3}, ReadMaxBytes(1)) == {"seq": 6})
            else:
                with pytest.raises(BrokerUnreachableError):
                    reader.latestOffset(start, ReadMaxBytes(1))


@pytest.mark.parametrize("journal", [None, "false", "true"], ids=["plain", "journal", "shared journal"])
def test_counts_what_spark_drops_for_the_selector(broker, queue, tmp_path, journal):
    fill(broker, queue, 10)
    options = access(broker) | {"queue": queue, "selectorInSpark": "residual"}
    # Artemis knows no JMSRedelivered.
    options |= {"selector": "n IN ('0', '1', '2', '3', '4') AND JMSRedelivered = TRUE"}
    if journal:
        options |= {"deliveryGuarantee": "exactly-once", "journalLocation": str(tmp_path), "journalShared": journal}
    with stopping(JmsStreamReader(SourceOptions.parse(options))) as reader:
        start = end = {"seq": 0}
        while end["seq"] < 5:
            start, end = end, reader.latestOffset(end, ReadMaxBytes(1))
            parts = [part for _ in range(2) for part in reader.partitions(start, end)]  # a stage that runs twice
            assert sum(batch.num_rows for part in parts for batch in reader.read(part)) == 0
        assert reader.reportLatestOffset()["selectorDropped"] == 5
    broker.purge(queue)


def test_with_data_loss_allowed_a_batch_is_what_the_journal_still_holds_of_it(broker, queue, tmp_path):
    fill(broker, queue, 10)
    options = access(broker) | {
        "queue": queue,
        "deliveryGuarantee": "exactly-once",
        "journalLocation": str(tmp_path),
        "maxMessagesPerTrigger": "5",
    }

    def rows(start, end, **more):
        with stopping(JmsStreamReader(SourceOptions.parse(options | more))) as reader:
            end = end or reader.latestOffset({"seq": start}, ReadMaxBytes(1))
            parts = reader.partitions({"seq": start}, end)
            found = [n for part in parts for batch in reader.read(part) for n in batch.column("sequence").to_pylist()]
            return end["seq"], found

    assert rows(0, None) == (5, [0, 1, 2, 3, 4])
    end, found = rows(5, None)
    assert found == list(range(5, end)), "up to five: what has arrived by then"
    end, found = restored = rows(3, None, failOnDataLoss="false")  # a checkpoint older than the journal
    assert found == list(range(5, end))
    assert rows(3, {"seq": end}, failOnDataLoss="false") == restored


def test_a_task_that_does_not_see_the_journal_says_what_to_do(broker, queue, tmp_path):
    fill(broker, queue, 3)
    journal = {
        "deliveryGuarantee": "exactly-once",
        "journalLocation": str(tmp_path / "journal"),
        "journalShared": "true",
    }
    with stopping(JmsStreamReader(SourceOptions.parse(access(broker) | {"queue": queue} | journal))) as reader:
        parts = reader.partitions({"seq": 0}, reader.latestOffset({"seq": 0}, ReadMaxBytes(1)))
        elsewhere = pickle.loads(pickle.dumps(reader))
        (tmp_path / "journal").rename(tmp_path / "out of sight")
        with pytest.raises(JournalError, match=r"\[JMS_JOURNAL_IO\].*: No such file.*journalShared"):
            list(elsewhere.read(parts[0]))
        (tmp_path / "out of sight").rename(tmp_path / "journal")
        assert [batch.num_rows for batch in elsewhere.read(parts[0])] == [3]
