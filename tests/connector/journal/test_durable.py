"""The books with a journal, in a real folder: what is durable, offered, known again, deleted."""

from array import array
from dataclasses import dataclass, field

import pytest

from pyspark_jms.errors import DataLossError, IllegalStateError, OtherBrokerError
from pyspark_jms.journal.durable import DurableLedger, partitions_of
from pyspark_jms.journal.recognition import Recognition
from pyspark_jms.journal.store import JournalStore, Position, read_stretch

RECOGNITION = Recognition(
    identity=lambda identifier: identifier.partition(b",")[2],
    fingerprint=lambda run, index: run.body(index).ljust(16, b".")[:16],
)


@dataclass
class Run:
    """As a connection hands them out, with bodies for frames."""

    octets: bytearray = field(default_factory=bytearray)
    heads: array = field(default_factory=lambda: array("q"))
    ends: array = field(default_factory=lambda: array("q"))
    ids: list = field(default_factory=list)

    def __len__(self):
        return len(self.ids)

    def body(self, index):
        return bytes(self.octets[self.ends[index - 1] if index else 0 : self.ends[index]])


def run(numbers, session=1, prefix=b"m"):
    made = Run()
    for n in numbers:
        made.heads.append(len(made.octets))
        made.octets += b"%s%04d;" % (prefix, n)
        made.ends.append(len(made.octets))
        made.ids.append(b"%d,%d" % (session, n))
    return made


@pytest.fixture
def opened(tmp_path):
    """``opened(start)`` → store and ledger on the same folder; the ones before are closed, as by a crash."""
    stores = []

    def open_again(start=0, begin=True, **more):
        if stores:
            stores.pop().close()
        store = JournalStore.open(tmp_path, query="test", wait_seconds=0, pause=lambda _: None, clock=lambda: 1e9)
        stores.append(store)
        settings = {"partition_octets": 12, "fail_on_data_loss": True} | more
        ledger = DurableLedger(store, [("queue://q", "artemis", RECOGNITION)], **settings)
        if begin:
            ledger.begin(start)
        return store, ledger

    yield open_again
    for store in stores:
        store.close()


def bodies(store, start, end):
    found = []
    for parts in partitions_of(store, start, end):
        octets = b"".join(bytes(read_stretch(p.info.path, p.info.digest, p.first, p.last).octets) for p in parts)
        found.append([int(part[1:]) for part in octets.split(b";")[:-1]])
    return found


def secured(ledger, made, receipt=None):
    ledger.receive(0, made)
    ids = ledger.secure()
    if receipt and ids:
        ledger.acknowledging(0, receipt)
        ledger.acknowledged(0, receipt)
    return ids


def test_a_message_is_acknowledged_when_durable_and_offered_with_its_cut(opened):
    store, ledger = opened()
    ledger.receive(0, run(range(5)))
    assert (ledger.waiting_messages, store.position) == (5, Position(0, 0))
    assert ledger.secure() == {0: [b"1,%d" % n for n in range(5)]}
    assert store.position == Position(0, 5)
    assert ledger.offer(max_messages=None, max_octets=None) == 5
    assert bodies(store, 0, 5) == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize(("limits", "end"), [((3, None), 3), ((None, 13), 2), ((None, 1), 1), ((9, 99), 5)])
def test_a_batch_is_bounded_and_never_empty(opened, limits, end):
    _, ledger = opened()
    secured(ledger, run(range(5)))
    assert ledger.offer(max_messages=limits[0], max_octets=limits[1]) == end
    assert ledger.waiting_messages == 5 - end
    assert ledger.waiting_octets == 6 * (5 - end)


def test_a_replay_is_cut_as_it_was_whatever_todays_options_say(opened):
    store, ledger = opened()
    secured(ledger, run(range(3)))
    secured(ledger, run(range(3, 7)))
    ledger.offer(max_messages=6, max_octets=None)
    before = bodies(store, 0, 6)
    store, _ = opened(begin=False, partition_octets=1)
    assert bodies(store, 0, 6) == before == [[0, 1], [2, 3], [4, 5]]
    assert partitions_of(store, 0, 7) is None


def test_what_is_durable_and_not_offered_is_offered_by_the_next_process(opened):
    _, ledger = opened()
    secured(ledger, run(range(7)))
    ledger.offer(max_messages=2, max_octets=None)
    store, ledger = opened(2)
    assert (ledger.waiting_messages, ledger.waiting_octets) == (5, 30)
    assert ledger.offer(max_messages=None, max_octets=None) == 7
    assert bodies(store, 2, 7) == [[2, 3], [4, 5], [6]]


def test_done_is_deleted(opened):
    store, ledger = opened()
    secured(ledger, run(range(4)), "r1")
    ledger.offer(max_messages=None, max_octets=None)
    assert ledger.finish(4) == {}
    assert (store.position, store.segments(), list(store.unacknowledged())) == (Position(4, 4), [], [])
    with pytest.raises(IllegalStateError, match=r"finish\(9\)"):
        ledger.finish(9)


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize("crash", [False, True])
def test_what_has_no_receipt_is_known_again(opened, finished, crash):
    _, ledger = opened()
    ids = secured(ledger, run(range(4)))
    ledger.acknowledging(0, "r1")
    assert ids
    end = ledger.offer(max_messages=None, max_octets=None)
    if finished:
        ledger.finish(end)
    if crash:
        _, ledger = opened(end)
    else:
        ledger.lost(0)
    ledger.receive(0, run(range(6), session=2))
    assert ledger.on_sight(0) == [b"2,%d" % n for n in range(4)]
    assert ledger.secure() == {0: [b"2,4", b"2,5"]}
    assert ledger.recognised == 4
    ledger.acknowledging(0, "r2")
    assert ledger.acknowledged(0, "r2") == 6
    assert not ledger.expects(0)
    _, ledger = opened(end)
    assert not ledger.expects(0)
    assert ledger.waiting_messages == 2


def test_a_receipt_ends_the_waiting(opened):
    _, ledger = opened()
    secured(ledger, run(range(4)), "r1")
    assert ledger.in_flight_messages == 0
    ledger.lost(0)
    assert not ledger.expects(0)


def test_what_was_not_durable_is_forgotten_with_its_connection(opened):
    store, ledger = opened()
    ledger.receive(0, run(range(4)))
    ledger.lost(0)
    assert (ledger.waiting_messages, ledger.secure(), store.position) == (0, {}, Position(0, 0))


def test_a_known_id_with_other_content_is_another_broker(opened):
    _, ledger = opened()
    secured(ledger, run(range(4)))
    _, ledger = opened(0)
    with pytest.raises(OtherBrokerError):
        ledger.receive(0, run(range(4), session=2, prefix=b"x"))


@pytest.mark.parametrize("start", [3, 50])
def test_a_checkpoint_the_journal_does_not_reach(opened, start):
    _, ledger = opened()
    secured(ledger, run(range(10)), "r1")
    ledger.offer(max_messages=5, max_octets=None)
    ledger.finish(5)
    with pytest.raises(DataLossError, match=rf"ends at {start}, .*5 to 10"):
        opened(start)
    store, ledger = opened(start, fail_on_data_loss=False)
    assert ledger.offered == max(5, start)
    assert ledger.waiting_messages == (5 if start < 5 else 0)
    secured(ledger, run(range(90, 92)))
    end = ledger.offer(max_messages=None, max_octets=None)
    assert bodies(store, ledger.done, end)[-1][-1] == 91
