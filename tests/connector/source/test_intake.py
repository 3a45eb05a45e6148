from numbered import fill
from receivers import OpenReceiver
from streaming import access
from waiting import wait_until

from pyspark_jms.options.source import SourceOptions


def opened(broker, queue, **more):
    drain = more.pop("drain", False)
    return OpenReceiver(SourceOptions.parse(access(broker) | {"queue": queue} | more), drain=drain)


def test_what_waits_is_counted_and_taken(broker, queue):
    fill(broker, queue, 10)
    receiver = opened(broker, queue)
    try:
        intake = receiver._intake
        before = intake.activity()
        wait_until(lambda: intake.waiting().messages == 10)
        waiting = intake.waiting()
        assert (waiting.in_flight, waiting.no_room) == (waiting.size, False)
        assert intake.activity() >= before
        intake.take_all()
        assert intake.waiting() == waiting, "taken, and in no batch yet"
        assert not intake.is_drained(1e9), "a query without an end is never drained"
    finally:
        receiver.close()


def test_a_full_journal_takes_nothing(broker, queue, tmp_path):
    fill(broker, queue, 10)
    receiver = opened(
        broker,
        queue,
        deliveryGuarantee="exactly-once",
        journalLocation=str(tmp_path),
        maxJournalBytes="1k",
        maxBytesPerTrigger="1k",
        windowBytes="1m",
    )
    try:
        intake = receiver._intake
        wait_until(lambda: intake.waiting().messages == 10)
        intake.take_all()
        assert intake.journal_is_full
        fill(broker, queue, 5, first=10)
        wait_until(lambda: receiver.links[0].waiting()[0] == 5)
        assert intake.waiting().messages == 10
        assert intake.waiting().no_room
    finally:
        receiver.close()


def test_a_drain_ends_when_nothing_comes(broker, queue):
    receiver = opened(broker, queue, drain=True, idleTimeout="300ms")
    try:
        assert not receiver._intake.is_drained(0.1)
        assert receiver._intake.is_drained(0.4)
    finally:
        receiver.close()


def test_a_connection_lost_between_two_looks_does_not_end_the_query(broker, queue):
    fill(broker, queue, 3)
    receiver = opened(broker, queue)
    try:
        receiver.links[0].drop()
        wait_until(lambda: receiver.links[0].is_down)
        receiver._intake.check()
        wait_until(lambda: receiver.next_batch_end() == 3)
    finally:
        receiver.close()
