"""The receiver with a journal, on a real broker: acknowledged when durable, read again as it was, known again."""

import contextlib

import pytest
from rawstomp import RawStomp
from streaming import left, wait_until

from pyspark_jms.errors import DataLossError, JournalLockedError
from pyspark_jms.journal.durable import partitions_of
from pyspark_jms.journal.store import Position, read_stretch
from pyspark_jms.options import SourceOptions
from pyspark_jms.spark.receiver import Receiver
from pyspark_jms.spark.stopping import StopRequest


def options(broker, queue, folder, **more):
    raw = {"brokerUrl": broker.url, "user": broker.user, "password": broker.password, "queue": queue}
    raw |= {"journalLocation": str(folder)} | {key: str(value) for key, value in more.items()}
    return SourceOptions.parse(raw)


@contextlib.contextmanager
def receiving(broker, queue, folder, *, start=0, crash=False, **more):
    """``crash``: end as kill -9 would, the lock freed and the socket gone, nothing else done."""
    receiver = Receiver(options(broker, queue, folder, **more), StopRequest())
    try:
        receiver.open(start)
        yield receiver
    finally:
        if crash:
            for consumer in receiver._consumers:
                consumer.drop()
            receiver._store.close()
        else:
            receiver.close()


def fill(broker, queue, count, first=0):
    with RawStomp(broker) as client:
        client.send(queue, [([("n", str(n))], f"text {n}") for n in range(first, first + count)])


def arrived(receiver, count):
    wait_until(lambda: receiver.progress()["inFlightMessages"] == count, what=f"the arrival of {count} messages")


def texts(receiver, start, end):
    """The bodies of a batch as a task would read them, partition by partition."""
    found = []
    for parts in partitions_of(receiver.journal(), start, end):
        bodies = []
        for part in parts:
            stretch = read_stretch(part.info.path, part.info.digest, part.first, part.last)
            frames = bytes(stretch.octets).split(b"\0\n")[:-1]
            assert len(frames) == part.last - part.first
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
        assert receiver.admit() == 40
        assert left(broker, queue) == 0  # all hundred: they are durable
        before = texts(receiver, 0, 40)
        assert len(before) > 1
        assert flat(before) == numbered(0, 40)
    again = Receiver(options(broker, queue, tmp_path, partitionBytes=100), StopRequest())
    assert texts(again, 0, 40) == before  # Spark asks for the batch it has no commit of before anything else
    again.close()
    with receiving(broker, queue, tmp_path, start=40, maxMessagesPerTrigger=7) as receiver:
        assert receiver.admit() == 47
        assert flat(texts(receiver, 40, 47)) == numbered(40, 47)


def test_deletes_what_is_done_and_goes_on_counting(broker, queue, tmp_path):
    fill(broker, queue, 10)
    with receiving(broker, queue, tmp_path) as receiver:
        arrived(receiver, 10)
        assert receiver.admit() == 10
        receiver.settle(10)
        assert receiver.journal().position == Position(10, 10)
        assert receiver.journal().segments() == []
    fill(broker, queue, 5, first=10)
    with receiving(broker, queue, tmp_path, start=10) as receiver:
        arrived(receiver, 5)
        assert receiver.admit() == 15
        assert flat(texts(receiver, 10, 15)) == numbered(10, 15)


def test_knows_what_comes_again_after_a_crash_between_durable_and_acknowledged(broker, queue, tmp_path, monkeypatch):
    fill(broker, queue, 20)
    with monkeypatch.context() as patch, receiving(broker, queue, tmp_path, crash=True) as receiver:
        arrived(receiver, 20)
        patch.setattr(Receiver, "_acknowledge", lambda *_: None)  # the process dies before the ACKs leave
        assert receiver.admit() == 20
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the connection")
    assert broker.message_count(queue) == 20
    fill(broker, queue, 3, first=20)
    with receiving(broker, queue, tmp_path, start=20) as receiver:
        end = 20
        while end < 23:
            end = receiver.admit()
        assert flat(texts(receiver, 20, 23)) == numbered(20, 23)
        assert left(broker, queue) == 0
        assert receiver.progress()["recognised"] == 20


def test_knows_them_even_when_their_batch_is_done_and_deleted(broker, queue, tmp_path, monkeypatch):
    fill(broker, queue, 20)
    with monkeypatch.context() as patch, receiving(broker, queue, tmp_path, crash=True) as receiver:
        arrived(receiver, 20)
        patch.setattr(Receiver, "_acknowledge", lambda *_: None)
        assert receiver.admit() == 20
        receiver.settle(20)
        assert receiver.journal().segments() == []
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the connection")
    with receiving(broker, queue, tmp_path, start=20) as receiver:
        wait_until(lambda: receiver.admit() == 20 and receiver.progress()["recognised"] == 20)
        assert left(broker, queue) == 0
        receiver.admit()
    with receiving(broker, queue, tmp_path, start=20) as receiver:
        assert list(receiver.journal().unacknowledged()) == []


def test_a_broker_restart_inside_a_run_repeats_nothing(fresh_broker, tmp_path):
    broker = fresh_broker()
    fill(broker, "q", 200)
    with receiving(broker, "q", tmp_path, maxMessagesPerTrigger=50) as receiver:
        arrived(receiver, 200)
        assert receiver.admit() == 50
        broker.kill()
        broker.start()
        fill(broker, "q", 10, first=200)
        receiver.settle(50)
        found, end = [], 50
        while end < 210:
            start, end = end, receiver.admit()
            found += flat(texts(receiver, start, end)) if end > start else []
        assert found == numbered(50, 210)
        assert left(broker, "q") == 0


def test_a_full_journal_leaves_the_rest_on_the_broker(broker, queue, tmp_path):
    fill(broker, queue, 3000)
    bounded = {"maxJournalBytes": "100k", "windowBytes": "50k", "maxMessagesPerTrigger": 100}
    with receiving(broker, queue, tmp_path, **bounded) as receiver:
        end = most = 0
        for _ in range(60):
            start, end = end, receiver.admit()
            most = max(most, receiver.progress()["journalBytes"])
            if end - start < 100 and broker.message_count(queue) == 0:
                break
            receiver.settle(start)
        assert end == 3000
        assert most < 400_000


def test_a_second_query_is_refused_by_name(broker, queue, tmp_path, monkeypatch):
    monkeypatch.setattr("pyspark_jms.spark.receiver._LOCK_SECONDS", 0.3)
    with receiving(broker, queue, tmp_path), pytest.raises(JournalLockedError, match=rf"queue://{queue}"):
        Receiver(options(broker, queue, tmp_path), StopRequest()).open(0)


def test_a_journal_that_does_not_reach_the_checkpoint_is_data_loss(broker, queue, tmp_path):
    with pytest.raises(DataLossError, match=r"JMS_DATA_LOSS.*ends at 77"), receiving(broker, queue, tmp_path, start=77):
        pass
    fill(broker, queue, 3)
    with receiving(broker, queue, tmp_path, start=77, failOnDataLoss="false") as receiver:
        arrived(receiver, 3)
        assert receiver.admit() == 80
