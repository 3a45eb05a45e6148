"""The receiver with a journal, on a real broker: acknowledged when durable, read again as it was, known again."""

import contextlib
import json

import pytest
from numbered import fill
from pyspark.sql.streaming.datasource import ReadMaxBytes
from rawstomp import RawStomp
from receivers import OpenReceiver
from streaming import access, journal_in, left, read, run_available, stopping
from waiting import await_count, wait_until

from pyspark_jms.delivery.journal.journal_log import Position
from pyspark_jms.delivery.journaled_ledger import partitions_of
from pyspark_jms.errors import DataLossError, JournalLockedError, OptionConflictError, OtherBrokerError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.ack_loop import AckLoop
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.source.stores.received import QueryJournal
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.spark.stream_reader import JmsStreamReader


def options(broker, queue, folder, **more):
    given = access(broker) | {"queue": queue} | journal_in(folder)
    return SourceOptions.parse(given | {key: str(value) for key, value in more.items()})


@pytest.fixture
def die_unacknowledged(tmp_path, monkeypatch):
    """Receive so many messages into the journal, and die before the first ACK leaves. Returns the first batch's texts.

    ``end``: of that batch. ``acknowledged``: up to which offset Spark has committed.
    """

    def die_unacknowledged(broker, queue, count, *, end=None, acknowledged=0, **more):
        with monkeypatch.context() as patch, receiving(broker, queue, tmp_path, crash=True, **more) as receiver:
            arrived(receiver, count)
            patch.setattr(AckLoop, "acknowledge", lambda *_: None)
            assert receiver.next_batch_end() == (end or count)
            batch = flat(texts(receiver.journal(), 0, end or count))
            receiver.acknowledge_through(acknowledged)
        return batch

    return die_unacknowledged


def recognise_all(broker, queue, folder, count, spelled=None):
    """Those of the batches that are done come again, and only to be acknowledged. ``spelled``: its other name."""
    with receiving(broker, spelled or queue, folder, start=count) as receiver:
        wait_until(lambda: receiver.next_batch_end() == count and receiver.progress()["recognised"] == count)
        assert left(broker, queue) == 0
        receiver.next_batch_end()
    with receiving(broker, queue, folder, start=count) as receiver:
        assert list(receiver.journal().receipts.unacknowledged()) == []


@contextlib.contextmanager
def receiving(broker, queue, folder, *, start=0, crash=False, **more):
    """``crash``: end as kill -9 would, the lock freed and the socket gone, nothing else done."""
    receiver = OpenReceiver(options(broker, queue, folder, **more), start)
    try:
        yield receiver
    finally:
        if crash:
            receiver.crash()
        else:
            receiver.close()


def arrived(receiver, count):
    wait_until(lambda: receiver.progress()["inFlightMessages"] == count, what=f"the arrival of {count} messages")


def texts(store, start, end):
    """The bodies of a batch as a task would read them, partition by partition."""
    found = []
    for parts in partitions_of(store, start, end):
        bodies = []
        for part in parts:
            frames = part.place.load().data.split(b"\0\n")[:-1]
            assert len(frames) == len(part)
            bodies += [frame.partition(b"\n\n")[2].decode() for frame in frames]
        found.append(bodies)
    return found


def flat(lists):
    return [item for one in lists for item in one]


def numbered(first, last):
    return [f"text {n}" for n in range(first, last)]


def test_acknowledges_when_durable_and_reads_the_same_again(broker, queue, tmp_path):
    fill(broker, queue, 100)
    with receiving(broker, queue, tmp_path, maxMessagesPerTrigger=40, partitionBytes=3000, crash=True) as receiver:
        arrived(receiver, 100)
        assert receiver.next_batch_end() == 40
        assert left(broker, queue) == 0  # all hundred: they are durable
        before = texts(receiver.journal(), 0, 40)
        assert len(before) > 1
        assert flat(before) == numbered(0, 40)
    again = QueryJournal(reading_of(options(broker, queue, tmp_path, partitionBytes=100)), StopRequest())
    assert texts(again.store(), 0, 40) == before  # Spark asks for the batch it has no commit of before anything else
    again.close()
    with receiving(broker, queue, tmp_path, start=40, maxMessagesPerTrigger=7) as receiver:
        assert receiver.next_batch_end() == 47
        assert flat(texts(receiver.journal(), 40, 47)) == numbered(40, 47)


def test_deletes_what_is_done_and_goes_on_counting(broker, queue, tmp_path):
    fill(broker, queue, 10)
    with receiving(broker, queue, tmp_path) as receiver:
        arrived(receiver, 10)
        assert receiver.next_batch_end() == 10
        ledger, connection = receiver._ledger, receiver.links[0].connection
        wait_until(lambda: all(connection.has_receipt(ack.receipt) for ack in ledger.unconfirmed(0)))
        receiver.acknowledge_through(10)
        assert receiver.journal().position == Position(10, 10)
        assert receiver.journal().segments() == []
        assert receiver.journal().bytes_used == 0  # no tombstone: the receipt was here
    fill(broker, queue, 5, first=10)
    with receiving(broker, queue, tmp_path, start=10) as receiver:
        arrived(receiver, 5)
        assert receiver.next_batch_end() == 15
        assert flat(texts(receiver.journal(), 10, 15)) == numbered(10, 15)


def test_knows_what_comes_again_after_a_crash_between_durable_and_acknowledged(
    broker, queue, tmp_path, die_unacknowledged
):
    fill(broker, queue, 20)
    die_unacknowledged(broker, queue, 20)
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the connection")
    await_count(broker, queue, 20)
    fill(broker, queue, 3, first=20)
    with receiving(broker, queue, tmp_path, start=20) as receiver:
        end = 20
        while end < 23:
            end = receiver.next_batch_end()
        assert flat(texts(receiver.journal(), 20, 23)) == numbered(20, 23)
        assert left(broker, queue) == 0
        assert receiver.progress()["recognised"] == 20


def test_knows_them_even_when_their_batch_is_done_and_deleted(broker, queue, tmp_path, die_unacknowledged):
    fill(broker, queue, 20)
    die_unacknowledged(broker, queue, 20, acknowledged=20)
    assert not list(tmp_path.glob("segment-*"))
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the connection")
    recognise_all(broker, queue, tmp_path, 20)


def test_a_broker_restart_inside_a_run_repeats_nothing(killable, queue, tmp_path):
    broker = killable
    fill(broker, queue, 200)
    with receiving(broker, queue, tmp_path, maxMessagesPerTrigger=50) as receiver:
        arrived(receiver, 200)
        assert receiver.next_batch_end() == 50
        broker.kill()
        broker.start()
        fill(broker, queue, 10, first=200)
        receiver.acknowledge_through(50)
        found, end = [], 50
        while end < 210:
            start, end = end, receiver.next_batch_end()
            found += flat(texts(receiver.journal(), start, end)) if end > start else []
        assert found == numbered(50, 210)
        assert left(broker, queue) == 0


def test_a_full_journal_leaves_the_rest_on_the_broker(broker, queue, tmp_path):
    fill(broker, queue, 3000)
    bounded = {"maxJournalBytes": "100k", "windowBytes": "50k", "maxMessagesPerTrigger": 100}
    with receiving(broker, queue, tmp_path, **bounded) as receiver:
        end = most = 0
        for _ in range(60):
            start, end = end, receiver.next_batch_end()
            most = max(most, receiver.progress()["journalBytes"])
            if end - start < 100 and broker.message_count(queue) == 0:
                break
            receiver.acknowledge_through(start)
        assert end == 3000
        assert most < 400_000


def test_a_second_query_is_refused_by_name(broker, queue, tmp_path, monkeypatch):
    monkeypatch.setattr("pyspark_jms.source.stores.received._LOCK_SECONDS", 0.3)
    with (
        receiving(broker, queue, tmp_path),
        pytest.raises(JournalLockedError, match=rf"\[JMS_JOURNAL_LOCKED\].*queue://{queue}"),
    ):
        OpenReceiver(options(broker, queue, tmp_path))


def test_a_journal_that_does_not_reach_the_checkpoint_is_data_loss(broker, queue, tmp_path):
    with pytest.raises(DataLossError, match=r"\[JMS_DATA_LOSS\].* 77\b"), receiving(broker, queue, tmp_path, start=77):
        pass
    fill(broker, queue, 3)
    with receiving(broker, queue, tmp_path, start=77, failOnDataLoss="false") as receiver:
        arrived(receiver, 3)
        assert receiver.next_batch_end() == 80


def test_a_new_checkpoint_on_an_old_journal_starts_with_the_oldest_message_that_is_not_done(
    broker, queue, tmp_path, caplog
):
    fill(broker, queue, 30)
    with receiving(broker, queue, tmp_path, maxMessagesPerTrigger=10) as receiver:
        arrived(receiver, 30)
        assert receiver.next_batch_end() == 10
        assert receiver.next_batch_end() == 20
        receiver.acknowledge_through(10)
    with stopping(JmsStreamReader(options(broker, queue, tmp_path))) as reader:
        assert reader.initialOffset() == {"seq": 10}
        assert "! the checkpoint is new, and the journal" in caplog.text
        assert reader.latestOffset({"seq": 10}, ReadMaxBytes(1))["seq"] == 30
        rows = [batch for part in reader.partitions({"seq": 10}, {"seq": 30}) for batch in reader.read(part)]
        assert [text for batch in rows for text in batch.column("text").to_pylist()] == numbered(10, 30)


def test_a_swapped_journal_is_refused_and_keeps_its_messages(broker, queue, tmp_path):
    """Two queries, each with a checkpoint and a journal of its own, until their journalLocations are swapped."""
    folders = {name: tmp_path / name for name in ("one", "two")}
    ends = {}
    for name, folder in folders.items():
        fill(broker, f"{queue}.{name}", 20)
        with stopping(JmsStreamReader(options(broker, f"{queue}.{name}", folder, maxMessagesPerTrigger=5))) as reader:
            ends[name] = reader.latestOffset({"seq": 0}, ReadMaxBytes(1))
    with stopping(JmsStreamReader(options(broker, f"{queue}.one", folders["two"]))) as reader:
        with pytest.raises(DataLossError, match=r"\[JMS_DATA_LOSS\].*/two"):
            reader.partitions({"seq": 0}, ends["one"])  # Spark repeats a planned batch before anything else
        with pytest.raises(DataLossError, match=r"\[JMS_DATA_LOSS\].*/two"):
            reader.latestOffset(ends["one"], ReadMaxBytes(1))
    with stopping(JmsStreamReader(options(broker, f"{queue}.two", folders["two"]))) as reader:
        rows = [batch for part in reader.partitions({"seq": 0}, ends["two"]) for batch in reader.read(part)]
        assert [text for batch in rows for text in batch.column("text").to_pylist()] == numbered(0, 5)
        end = ends["two"]
        while end["seq"] < 20:
            end = reader.latestOffset(end, ReadMaxBytes(1))


@pytest.mark.parametrize("start", [0, 10], ids=["new checkpoint", "checkpoint without a journal"])
def test_the_journal_of_another_queue_is_refused_and_keeps_its_messages(broker, queue, tmp_path, start):
    """A checkpoint that names no journal: the messages themselves say whose they are."""
    fill(broker, f"{queue}.one", 20)
    reader = JmsStreamReader(options(broker, f"{queue}.one", tmp_path))
    reader.latestOffset({"seq": 0}, ReadMaxBytes(1))
    reader.stop()
    for spelled, refused in ((f"{queue}.two", True), (f"{queue}.one::{queue}.one", False)):
        with stopping(JmsStreamReader(options(broker, spelled, tmp_path))) as reader:
            if refused:
                with pytest.raises(DataLossError, match=rf"\[JMS_DATA_LOSS\].*queue://{queue}\.one"):
                    reader.latestOffset({"seq": start}, ReadMaxBytes(1))
                with pytest.raises(DataLossError, match=rf"\[JMS_DATA_LOSS\].*queue://{queue}\.one"):
                    reader.partitions({"seq": 0}, {"seq": start + 5})
            else:
                assert reader.initialOffset() == {"seq": 0}
                end = {"seq": 0}
                while end["seq"] < 20:  # the first batch may have ended before all had come
                    end = reader.latestOffset(end, ReadMaxBytes(1))
                assert end["seq"] == 20


def test_a_checkpoint_written_with_a_journal_is_not_read_without_it(broker, queue, tmp_path):
    fill(broker, queue, 3)
    reader = JmsStreamReader(options(broker, queue, tmp_path))
    end = reader.latestOffset({"seq": 0}, ReadMaxBytes(1))
    reader.stop()
    with (
        stopping(JmsStreamReader(SourceOptions.parse(access(broker) | {"queue": queue}))) as reader,
        pytest.raises(OptionConflictError, match=r"\[JMS_OPTION_CONFLICT\].* journalLocation"),
    ):
        reader.partitions({"seq": 0}, end)


@pytest.mark.deep
def test_the_backlog_is_read_before_a_message_that_stops_the_query(fresh_broker, tmp_path, die_unacknowledged):
    broker, other = fresh_broker(), fresh_broker()
    fill(broker, "q", 10)
    fill(other, "q", 10, first=100)
    few = {"maxMessagesPerTrigger": 4}
    die_unacknowledged(broker, "q", 10, end=4, **few)
    with receiving(other, "q", tmp_path, start=4, **few) as receiver:
        arrived(receiver, 10)
        assert [receiver.next_batch_end(), receiver.next_batch_end()] == [8, 10]
        assert flat(texts(receiver.journal(), 4, 8) + texts(receiver.journal(), 8, 10)) == numbered(4, 10)
        with pytest.raises(OtherBrokerError, match=r"\[JMS_OTHER_BROKER\]"):
            receiver.next_batch_end()
    await_count(other, "q", 10)


@pytest.mark.deep
def test_a_scheduled_message_is_recognised_after_a_restart_of_the_broker(killable, queue, tmp_path, die_unacknowledged):
    """Artemis does not store when a message was to be delivered: the redelivered frame lacks that header."""
    broker = killable
    with RawStomp(broker) as client:
        client.send(queue, [([("AMQ_SCHEDULED_DELAY", "300"), ("n", str(n))], f"text {n}") for n in range(5)])
    die_unacknowledged(broker, queue, 5)
    broker.kill()
    broker.start()
    recognise_all(broker, queue, tmp_path, 5)


def test_a_queue_is_known_again_under_its_other_name(broker, queue, tmp_path, die_unacknowledged):
    """``q`` and ``q::q`` are the same queue: a query that spells it otherwise reads nothing twice."""
    fill(broker, queue, 10)
    die_unacknowledged(broker, queue, 10)
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the connection")
    recognise_all(broker, queue, tmp_path, 10, spelled=f"{queue}::{queue}")


def test_two_queues_of_one_address_share_ids_and_are_not_mixed_up(broker, queue, tmp_path, die_unacknowledged):
    """The same message in two queues has the same id and content in both, and is a message of each."""
    names = [f"{queue}::{queue}.{k}" for k in range(2)]
    both = json.dumps(names)
    with RawStomp(broker) as client:
        for k, name in enumerate(names):
            client.request("SUBSCRIBE", [("id", str(k)), ("destination", name), ("subscription-type", "MULTICAST")])
            client.request("UNSUBSCRIBE", [("id", str(k))])  # the queue stays
        client.send(queue, [([("n", str(n))], f"text {n}") for n in range(10)], topic=True)
    assert sorted(die_unacknowledged(broker, both, 20)) == sorted(2 * numbered(0, 10))
    with receiving(broker, both, tmp_path, start=20) as receiver:
        wait_until(lambda: receiver.next_batch_end() == 20 and receiver.progress()["recognised"] == 20)
        assert [left(broker, name.partition("::")[2]) for name in names] == [0, 0]


@pytest.mark.deep
@pytest.mark.spark
def test_tasks_that_see_the_folder_read_it_themselves(spark, broker, queue, tmp_path):
    fill(broker, queue, 200)
    where = {"queue": queue, "journalShared": True} | journal_in(tmp_path / "journal")
    frame = read(spark, broker, **where, partitionBytes="4k", maxMessagesPerTrigger=90, idleTimeout="500ms")
    query = run_available(frame, tmp_path / "checkpoint", name="shared_journal")
    rows = spark.sql("select text from shared_journal order by sequence").collect()
    assert [row.text for row in rows] == numbered(0, 200)
    assert query.lastProgress["batchId"] >= 2
    assert left(broker, queue) == 0
