"""What the reception of a read counts, takes, and leaves, on a real broker."""

import contextlib

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
    with contextlib.closing(opened(broker, queue)) as receiver:
        reception = receiver._reception
        before = reception.activity()
        wait_until(lambda: reception.waiting().messages == 10)
        waiting = reception.waiting()
        assert not waiting.no_room
        assert reception.activity() >= before
        reception.take_all()
        assert reception.waiting() == waiting, "taken, and in no batch yet"
        assert not reception.is_drained(1e9), "a query without an end is never drained"


def test_a_full_journal_takes_nothing(broker, queue, tmp_path):
    fill(broker, queue, 10)
    with contextlib.closing(
        opened(
            broker,
            queue,
            deliveryGuarantee="exactly-once",
            journalLocation=str(tmp_path),
            maxJournalBytes="1k",
            maxBytesPerTrigger="1k",
            windowBytes="1m",
        )
    ) as receiver:
        reception = receiver._reception
        wait_until(lambda: reception.waiting().messages == 10)
        reception.take_all()
        assert reception.journal_is_full
        fill(broker, queue, 5, first=10)
        wait_until(lambda: receiver.links[0].waiting()[0] == 5)
        assert reception.waiting().messages == 10
        assert reception.waiting().no_room


def test_a_drain_ends_when_nothing_comes(broker, queue):
    with contextlib.closing(opened(broker, queue, drain=True, idleTimeout="300ms")) as receiver:
        assert not receiver._reception.is_drained(0.1)
        wait_until(lambda: receiver._reception.is_drained(0.4))


def test_a_connection_lost_between_two_looks_does_not_end_the_query(broker, queue):
    fill(broker, queue, 3)
    with contextlib.closing(opened(broker, queue)) as receiver:
        receiver.links[0].drop()
        wait_until(lambda: receiver.links[0].is_down)
        receiver._reception.check()
        wait_until(lambda: receiver.next_batch_end() == 3)
