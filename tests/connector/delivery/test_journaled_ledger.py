"""The ledger with a journal, in a real folder: what is durable, offered, known again, deleted. Then any life at all."""

import tempfile
from pathlib import Path

import acks
import pytest
from disk import Died, Disk
from generated import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from model_broker import RECOGNITION, ModelBroker, numbers, open_journal, run

from pyspark_jms.delivery.journal.journal_log import Position
from pyspark_jms.delivery.journaled_ledger import JournaledLedger, partitions_of
from pyspark_jms.errors import DataLossError, IllegalStateError, JournalLockedError, OtherBrokerError


@pytest.fixture
def opened(tmp_path):
    """``opened(start)`` → store and ledger on the same folder; the ones before are closed, as by a crash."""
    stores = []

    def open_again(start=0, begin=True, now=1e9, **more):
        if stores:
            stores.pop().close()
        store = open_journal(tmp_path, clock=lambda: now)
        stores.append(store)
        settings = {"partition_bytes": 12, "fail_on_data_loss": True} | more
        if not begin:
            return store, None
        return store, JournaledLedger(store, [("queue://q", "artemis", RECOGNITION)], start, **settings)

    yield open_again
    for store in stores:
        store.close()


def bodies(store, start, end, **more):
    partitions = partitions_of(store, start, end, **more)
    return [[number for part in parts for number in numbers(part.place.load().data)] for parts in partitions]


def stored(ledger, made, receipt=None):
    """Durable; with a receipt, acknowledged too."""
    ledger.receive(0, made)
    ledger.store_received()
    ids = acks.due_ids(ledger, 0)
    if receipt:
        acks.send(ledger, receipt, 0)
        acks.confirm(ledger, receipt, 0)
    return ids


def test_a_message_is_acknowledged_when_durable_and_offered_with_its_cut(opened):
    store, ledger = opened()
    ledger.receive(0, run(1, *range(5), size=6))
    assert (ledger.waiting_messages, store.position) == (5, Position(0, 0))
    assert ledger.due(0) == []
    ledger.store_received()
    assert acks.due_ids(ledger, 0) == [b"1,%d" % n for n in range(5)]
    assert store.position == Position(0, 5)
    assert ledger.offer(max_messages=None, max_bytes=None) == 5
    assert bodies(store, 0, 5) == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize(("limits", "end"), [((3, None), 3), ((None, 13), 2), ((None, 1), 1), ((9, 99), 5)])
def test_a_batch_is_bounded_and_never_empty(opened, limits, end):
    _, ledger = opened()
    stored(ledger, run(1, *range(5), size=6))
    assert ledger.offer(max_messages=limits[0], max_bytes=limits[1]) == end
    assert ledger.waiting_messages == 5 - end
    assert ledger.waiting_bytes == 6 * (5 - end)


def test_a_replay_is_cut_as_it_was_whatever_todays_options_say(opened):
    store, ledger = opened()
    stored(ledger, run(1, *range(3), size=6))
    stored(ledger, run(1, *range(3, 7), size=6))
    ledger.offer(max_messages=6, max_bytes=None)
    before = bodies(store, 0, 6)
    store, _ = opened(begin=False, partition_bytes=1)
    assert bodies(store, 0, 6) == before == [[0, 1], [2, 3], [4, 5]]
    assert partitions_of(store, 0, 7) is None


def test_what_is_durable_and_not_offered_is_offered_by_the_next_process(opened):
    _, ledger = opened()
    stored(ledger, run(1, *range(7), size=6))
    ledger.offer(max_messages=2, max_bytes=None)
    store, ledger = opened(2)
    assert (ledger.waiting_messages, ledger.waiting_bytes) == (5, 30)
    assert ledger.offer(max_messages=None, max_bytes=None) == 7
    assert bodies(store, 2, 7) == [[2, 3], [4, 5], [6]]


def test_done_is_deleted(opened):
    store, ledger = opened()
    stored(ledger, run(1, *range(4), size=6), "r1")
    ledger.offer(max_messages=None, max_bytes=None)
    ledger.finish(4)
    assert ledger.due(0) == []
    assert (store.position, store.segments(), list(store.receipts.unacknowledged())) == (Position(4, 4), [], [])
    with pytest.raises(IllegalStateError, match=r"'finish' .*'durable' .*sequence 8\b.*\b4\b"):
        ledger.finish(9)


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize("crash", [False, True])
def test_what_has_no_receipt_is_known_again(opened, finished, crash):
    _, ledger = opened()
    ids = stored(ledger, run(1, *range(4), size=6))
    acks.send(ledger, "r1", 0)
    assert ids
    end = ledger.offer(max_messages=None, max_bytes=None)
    if finished:
        ledger.finish(end)
    if crash:
        _, ledger = opened(end)
    else:
        ledger.lost(0)
    ledger.receive(0, run(2, *range(6), size=6))
    assert acks.due_ids(ledger, 0) == [b"2,%d" % n for n in range(4)]
    ledger.store_received()
    assert acks.due_ids(ledger, 0) == [b"2,%d" % n for n in range(6)]
    assert ledger.recognised == 4
    acks.send(ledger, "r2", 0)
    assert acks.confirm(ledger, "r2", 0) == 6
    assert not ledger.expects(0)
    _, ledger = opened(end)
    assert not ledger.expects(0)
    assert ledger.waiting_messages == 2


def test_what_was_not_durable_is_forgotten_with_its_connection(opened):
    store, ledger = opened()
    ledger.receive(0, run(1, *range(4), size=6))
    ledger.lost(0)
    ledger.store_received()
    assert (ledger.waiting_messages, ledger.due(0), store.position) == (0, [], Position(0, 0))


def test_a_known_id_with_other_content_is_another_broker(opened):
    _, ledger = opened()
    stored(ledger, run(1, *range(4), size=6))
    _, ledger = opened(0)
    with pytest.raises(OtherBrokerError):
        ledger.receive(0, run(2, *range(4), size=6, prefix=b"x"))


@pytest.mark.parametrize("start", [3, 50])
def test_a_checkpoint_the_journal_does_not_reach(opened, start):
    _, ledger = opened()
    stored(ledger, run(1, *range(10), size=6), "r1")
    ledger.offer(max_messages=5, max_bytes=None)
    ledger.finish(5)
    with pytest.raises(DataLossError, match=rf"\b{start}, .*5 to 10"):
        opened(start)
    store, ledger = opened(start, fail_on_data_loss=False)
    assert ledger.offered == max(5, start)
    assert ledger.waiting_messages == (5 if start < 5 else 0)
    stored(ledger, run(1, *range(90, 92), size=6))
    end = ledger.offer(max_messages=None, max_bytes=None)
    assert partitions_of(store, start, end) is None or start == ledger.done
    seen = [number for part in bodies(store, start, end, after_loss=True) for number in part]
    assert seen == [*range(max(5, start), 10), 90, 91]  # of the batch that Spark asks for, all that there is
    assert bodies(opened(begin=False)[0], start, end, after_loss=True)  # and again, should this process die


def test_what_is_in_flight_is_counted_until_its_receipt(opened):
    _, ledger = opened()
    ledger.receive(0, run(1, 5, 6))
    assert (ledger.in_flight_messages, ledger.in_flight_bytes) == (2, 20)
    ledger.store_received()
    acks.send(ledger, "r1", 0)
    ledger.offer(max_messages=None, max_bytes=None)
    assert (ledger.in_flight_messages, ledger.in_flight_bytes) == (2, 20)
    ledger.lost(0)
    assert (ledger.in_flight_messages, ledger.in_flight_bytes) == (0, 0)
    ledger.receive(0, run(2, 5, 6, 7))
    assert (ledger.in_flight_messages, ledger.in_flight_bytes) == (3, 30)
    ledger.store_received()
    acks.send(ledger, "r2", 0)
    acks.confirm(ledger, "r2", 0)
    assert (ledger.in_flight_messages, ledger.in_flight_bytes) == (0, 0)


def test_an_offer_that_spark_never_heard_of_is_made_again_as_it_was(opened):
    """The process died between the record of a batch and Spark's; the next one has other options."""
    store, ledger = opened(partition_bytes=12)
    stored(ledger, run(1, *range(4), size=6))
    assert ledger.offer(max_messages=None, max_bytes=None) == 4
    before = bodies(store, 0, 4)
    store, ledger = opened(0, partition_bytes=100)
    assert ledger.offer(max_messages=None, max_bytes=None) == 4
    assert bodies(store, 0, 4) == before == [[0, 1], [2, 3]]


@pytest.mark.parametrize("crash", [False, True])
def test_what_did_not_come_again_within_a_day_is_forgotten(opened, crash):
    store, ledger = opened()
    stored(ledger, run(1, 5, 6))
    acks.send(ledger, "never comes", 0)
    ledger.finish(ledger.offer(max_messages=None, max_bytes=None))
    ledger.lost(0)
    assert ledger.expects(0)
    for _ in range(24 * 60):
        store.note_subscribed(60)
    if crash:
        store, ledger = opened(2)
    else:
        stored(ledger, run(2, 7), "r2")
        ledger.finish(ledger.offer(max_messages=None, max_bytes=None))
    assert not ledger.expects(0)
    assert list(store.receipts.unacknowledged()) == []


def test_time_without_a_subscription_does_not_age_what_may_be_redelivered(opened):
    """A weekend without the query: the broker redelivers on Monday what was in flight on Friday."""
    store, ledger = opened()
    stored(ledger, run(1, 5, 6))
    ledger.finish(ledger.offer(max_messages=None, max_bytes=None))
    store.note_subscribed(23 * 3600)
    store, ledger = opened(2, now=1e9 + 3 * DAY)
    assert ledger.expects(0)
    ledger.receive(0, run(2, 5, 6))
    assert (ledger.waiting_messages, ledger.recognised) == (0, 2)


# --- any life ----------------------------------------------------------------------------------------

SUBSCRIPTIONS = st.integers(0, 1)
SOURCES = [("queue://a", "artemis", RECOGNITION), ("queue://b", "artemis", RECOGNITION)]
POWER = st.none() | st.randoms(use_true_random=False)  # it fails too: what survives
CRASHES = st.none() | st.tuples(
    st.integers(0, 8),  # steps of the disk that are still carried out
    st.sampled_from([0.0, 0.5, 1.0]),  # of a write that is cut short
    POWER,
)
DAY = 24 * 3600


class AnyLife(RuleBasedStateMachine):
    """Two queues, a disk, and Spark's logs: ``done`` is the end of the last batch in its commit log."""

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        shared_memory = Path("/dev/shm")  # synced in no time, where the system has it
        self.temporary = tempfile.TemporaryDirectory(dir=shared_memory if shared_memory.is_dir() else None)
        self.disk = Disk(self.temporary.name).install(self.patch)
        self.brokers = [
            ModelBroker(lambda m, subscription=subscription: self._gone(subscription, m)) for subscription in (0, 1)
        ]
        self.now = 1e9
        self.store = self.ledger = None
        self.done, self.planned, self.rows = 0, None, {}
        self.journal = {}  # sequence -> (subscription, message), of everything that ever was durable
        self.gone = set()
        self.receipts = 0

    def _gone(self, subscription, message):
        assert (subscription, message) in self.journal.values(), "acknowledged before it was durable"
        self.gone.add((subscription, message))

    # the process, and the machine it runs on

    def _perform(self, crash, action):
        """The result; None when the process died of it."""
        steps, torn, power = crash or (None, 0.0, None)
        try:
            with self.disk.dying_at(steps, torn=torn):
                return action()
        except Died:
            self._die(power)
            return None

    def _die(self, power):
        if self.store is not None:  # nothing is written: a process that is killed writes nothing
            self.store._log.close()
            self.store._lock.release()
        self.store = self.ledger = None
        if power is not None:
            self.disk.lose_power(lambda most: power.randint(0, most))

    @rule(power=POWER, notice=st.integers(0, 3), days=st.integers(0, 3))
    def die(self, power=None, notice=0, days=0):
        """And stay dead for some days: that makes nobody forget anything."""
        self._die(power)
        self.now += days * DAY
        for subscription, broker in enumerate(self.brokers):
            broker.lose_link(noticed=bool(notice & 1 << subscription))

    @precondition(lambda self: self.ledger and self._nothing_can_come_again())
    @rule(crash=CRASHES)
    def stay_subscribed_for_a_day(self, crash):
        self._perform(crash, lambda: self.store.note_subscribed(DAY))

    @precondition(lambda self: not self.ledger)
    @rule(crash=CRASHES, partition_bytes=st.integers(1, 60))
    def start(self, crash=None, partition_bytes=20):
        """Spark repeats the batch that is not in its commit log, and goes on."""
        self.store = self._perform(crash, self._open)
        if self.store is None:
            return
        self._learn()
        held = {self.journal[sequence] for sequence in range(self.done, self.store.position.next)}
        assert self.gone <= held | {self.journal[sequence] for sequence in range(self.done)}, "lost"
        if self.planned is not None:
            rows = self._read(self.done, self.planned)
            assert self.rows.setdefault((self.done, self.planned), rows) == rows, "another batch than the first time"
            self.commit()
        self.ledger = self._perform(crash, lambda: self._begin(partition_bytes))

    def _alive(self):
        if self.ledger is None:
            self.start()

    def _open(self):
        return open_journal(self.temporary.name, clock=lambda: self.now)

    def _begin(self, partition_bytes):
        for broker in self.brokers:
            broker.lose_link(noticed=not broker.ghosts)  # the subscriptions of a process that died at some step
        settings = {"partition_bytes": partition_bytes, "fail_on_data_loss": True}
        return JournaledLedger(self.store, SOURCES, self.done, **settings)

    def _learn(self):
        """What the journal holds now, it has always held there."""
        known = {message: sequence for sequence, message in self.journal.items()}
        for info in self.store.segments():
            subscription = [source for source, _, _ in SOURCES].index(info.source)
            found = enumerate(numbers(self.store.read(info.first).block.data), info.first)
            for sequence, message in found:
                assert self.journal.setdefault(sequence, (subscription, message)) == (subscription, message), (
                    "another message there"
                )
                assert known.get((subscription, message), sequence) == sequence, "twice"
        assert self.store.position.oldest <= self.done

    def _read(self, start, end):
        return [
            [(part.first_sequence, part.source, numbers(part.place.load().data)) for part in parts]
            for parts in partitions_of(self.store, start, end)
        ]

    # the brokers

    @rule(subscription=SUBSCRIPTIONS, sizes=st.lists(st.integers(3, 30), min_size=1, max_size=5))
    def send(self, subscription, sizes):
        for size in sizes:
            self.brokers[subscription].send(size)

    @rule(subscription=SUBSCRIPTIONS, half_way=st.integers(0, 6), noticed=st.booleans())
    def lose_link(self, subscription, half_way, noticed):
        self._alive()
        self.brokers[subscription].lose_link(half_way, noticed=noticed)
        self.ledger.lost(subscription)

    @rule(subscription=SUBSCRIPTIONS, half_way=st.integers(0, 6))
    def notice(self, subscription, half_way):
        self.brokers[subscription].notice(half_way)

    @rule(subscription=SUBSCRIPTIONS, count=st.integers(0, 6), acknowledge=st.booleans())
    def compete(self, subscription, count, acknowledge):
        broker = self.brokers[subscription]
        broker.others_acknowledge() if acknowledge else broker.others_give_back()
        broker.compete(count)

    # the receiver

    @rule(counts=st.tuples(st.integers(0, 5), st.integers(0, 5)), crash=CRASHES, acknowledge=st.integers(0, 3))
    def receive(self, counts, crash, acknowledge):
        """What arrived becomes durable; then ACKs are sent, on one subscription, the other, both or none."""
        self._alive()
        for subscription, count in enumerate(counts):
            self.brokers[subscription].deliver(count)
            self.ledger.receive(subscription, self.brokers[subscription].take(count))
        self._perform(crash, self.ledger.store_received)
        if self.ledger is not None:
            self._learn()
            for subscription in range(2):
                if acknowledge & 1 << subscription:
                    self._acknowledge(subscription)

    def _acknowledge(self, subscription):
        for ack in self.ledger.due(subscription):
            self.receipts += 1
            self.brokers[subscription].acknowledge(ack.ids, str(self.receipts))
            ack.sent(str(self.receipts))

    @rule(subscription=SUBSCRIPTIONS, crash=CRASHES)
    def confirm(self, subscription, crash):
        """The oldest ACKs arrive at the broker; when nothing is on its way there, a receipt arrives here."""
        self._alive()
        broker = self.brokers[subscription]
        if broker.session.acks:
            broker.process_ack()
        elif broker.receipts:
            receipt = broker.receipts.popleft()
            assert acks.unconfirmed(self.ledger, subscription) == receipt
            self._perform(crash, lambda: acks.confirm(self.ledger, receipt, subscription))

    @rule(
        limits=st.tuples(st.none() | st.integers(1, 6), st.none() | st.integers(1, 60)),
        crash=CRASHES,
        spark_hears=st.sampled_from([True, True, False]),
        commit=st.booleans(),
    )
    def trigger(self, limits=(None, None), crash=None, spark_hears=True, commit=False):
        """``spark_hears`` false: the process dies between the journal's record of the batch and Spark's."""
        self._alive()
        if self.planned is not None:
            return
        self._perform(crash, lambda: self.ledger.finish(self.done))
        if self.ledger is None:
            return
        end = self._perform(crash, lambda: self.ledger.offer(max_messages=limits[0], max_bytes=limits[1]))
        if end is None or end == self.done:
            return
        assert limits[0] is None or end - self.done <= limits[0]
        if not spark_hears:
            self.die()
            return
        self.planned = end
        self.rows[self.done, end] = self._read(self.done, end)
        if commit:
            self.commit()

    @precondition(lambda self: self.planned is not None)
    @rule()
    def commit(self):
        rows = [row for partition in self.rows.get((self.done, self.planned), []) for row in partition]
        sequences = [(first + n, message) for first, _, messages in rows for n, message in enumerate(messages)]
        assert [sequence for sequence, _ in sequences] == list(range(self.done, self.planned))
        assert all(self.journal[sequence][1] == message for sequence, message in sequences)
        self.done, self.planned = self.planned, None

    def _nothing_can_come_again(self):
        for subscription, broker in enumerate(self.brokers):
            for held, message in self.journal.values():
                if (
                    held == subscription
                    and (subscription, message) not in self.gone
                    and message not in broker.taken_by_others
                ):
                    return False
        return True

    @invariant()
    def counts_are_right(self):
        if self.ledger is not None:
            assert self.ledger.done <= self.ledger.offered <= self.store.position.next
            assert self.ledger.in_flight_messages >= 0

    def teardown(self):
        try:
            self._live_on()
        finally:
            self._die(None)
            self.patch.undo()
            self.temporary.cleanup()
        super().teardown()

    def _live_on(self):
        """No more crashes, and nobody else: then every message was read once, and nothing is left anywhere."""
        quiet = 0
        while quiet < 3:
            for subscription, broker in enumerate(self.brokers):
                broker.notice()
                broker.others_give_back()
                self.receive((100, 100), None, 3)
                self.confirm(subscription, None)
                self.confirm(subscription, None)
            if self.planned is not None:
                self.commit()
            self.trigger(commit=True)
            quiet = quiet + 1 if all(broker.idle for broker in self.brokers) else 0
        assert len(set(self.journal.values())) == self.done == self.store.position.next
        for subscription, broker in enumerate(self.brokers):
            read = {message for held, message in self.journal.values() if held == subscription}
            assert read | broker.taken_by_others == set(broker.sizes), "lost"
        assert self.ledger.in_flight_messages == self.ledger.waiting_messages == 0
        self.store.note_subscribed(DAY)
        self._die(None)
        self.start()
        assert set(self.store._folder.names()) == {"log", "journal", "lock"}
        assert not any(self.ledger.expects(subscription) for subscription in (0, 1))


TestAnyLife = AnyLife.TestCase
TestAnyLife.settings = settings(max_examples=examples(50), stateful_step_count=60)


def test_two_writers_do_not_replace_each_others_messages(tmp_path):
    """The lock file is gone, as after a cleaner of old files: the second query gets a lock of its own."""

    def open_again():
        store = open_journal(tmp_path)
        sources = [("queue://q", "artemis", RECOGNITION)]
        return store, JournaledLedger(store, sources, 0, partition_bytes=99, fail_on_data_loss=True)

    first_store, first = open_again()
    (tmp_path / "lock").unlink()
    second_store, second = open_again()
    stored(second, run(2, 11, 12), "r")
    first.receive(0, run(1, 5, 6))
    with pytest.raises(JournalLockedError, match="removed or replaced"):
        first.store_received()
    assert first.due(0) == []
    assert [numbers(second_store.read(0).block.data)] == [[11, 12]]
    first_store.close()
    second_store.close()


def test_what_is_in_the_journal_is_recognised_on_any_connection_of_the_queue(tmp_path):
    store = open_journal(tmp_path)
    sources = [("queue://q", "artemis", RECOGNITION)] * 2 + [("queue://other", "artemis", RECOGNITION)]
    ledger = JournaledLedger(store, sources, 0, partition_bytes=99, fail_on_data_loss=True)
    stored(ledger, run(1, 5, 6))
    ledger.lost(0)
    assert [ledger.expects(subscription) for subscription in range(3)] == [True, True, False]
    ledger.receive(1, run(2, 6, 7))
    ledger.receive(2, run(3, 5))
    ledger.receive(0, run(4, 5))
    assert (ledger.recognised, ledger.expects(0), ledger.expects(1)) == (2, False, False)
    ledger.store_received()
    assert [acks.due_ids(ledger, subscription) for subscription in range(3)] == [[b"4,5"], [b"2,6", b"2,7"], [b"3,5"]]
    for subscription in range(3):
        acks.send(ledger, "r", subscription)
        acks.confirm(ledger, "r", subscription)
    assert list(store.receipts.unacknowledged()) == []
    store.close()


def test_nothing_is_acknowledged_for_a_journal_that_was_replaced(opened, tmp_path):
    store, ledger = opened()
    ledger.receive(0, run(1, 5, 6))
    ledger.store_received()
    (tmp_path / "journal").write_bytes((tmp_path / "journal").read_bytes())  # the same id, written by somebody else
    with pytest.raises(JournalLockedError, match="another journal"):
        acks.due_ids(ledger, 0)
    with pytest.raises(JournalLockedError, match="another journal"):
        store.release(0)
