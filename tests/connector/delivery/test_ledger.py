"""Every transition by example, every illegal move; then any life at all against a model broker."""

from collections import Counter, deque

import acks
import pytest
from generated import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from model_broker import BY_PRODUCER, RECOGNITION, UNNAMED, ModelBroker, block_of, numbers, run, share_queue

from pyspark_jms.delivery import ledger as ledger_module
from pyspark_jms.delivery.ledger import Ledger
from pyspark_jms.errors import IllegalStateError, OtherBrokerError


def begun(*recognitions, at=0, connections=1):
    return Ledger(recognitions or [RECOGNITION], at, connections)


def sent(ledger, receipt="r"):
    """What is due is acknowledged: the ids by subscription."""
    found = {
        subscription: acks.due_ids(ledger, subscription)
        for subscription in range(ledger.subscriptions)
        if ledger.due(subscription)
    }
    for subscription in found:
        acks.send(ledger, receipt, subscription)
    return found


def settled(ledger, sequence, receipt="r"):
    ledger.finish(sequence)
    return sent(ledger, receipt)


def offer(ledger, max_messages=None, max_bytes=None):
    return ledger.offer(max_messages=max_messages, max_bytes=max_bytes)


def lost_after_an_offer(*messages):
    """A ledger whose one connection is lost when a batch has these messages."""
    ledger = begun()
    ledger.receive(0, run(1, *messages))
    offer(ledger)
    ledger.lost(0)
    return ledger


def contents(batch):
    return [number for range_ in batch.ranges for number in numbers(range_.messages().data)]


def flight(ledger):
    return ledger.in_flight_messages, ledger.in_flight_bytes


# --- received, offered, done, acknowledged -----------------------------------------------------------


def test_a_message_s_life():
    ledger = begun(at=100)
    ledger.receive(0, run(1, 5, 6))
    assert (ledger.waiting_messages, ledger.waiting_bytes, ledger.offered) == (2, 20, 100)
    assert offer(ledger) == 102
    assert (ledger.waiting_messages, ledger.waiting_bytes) == (0, 0)
    assert contents(ledger.batch(100, 102)) == [5, 6]
    assert flight(ledger) == (2, 20)
    assert acks.unconfirmed(ledger, 0) is None
    assert settled(ledger, 102, "r1") == {0: [b"1,5", b"1,6"]}
    assert ledger.done == 102
    assert acks.unconfirmed(ledger, 0) == "r1"
    assert flight(ledger) == (2, 20)
    assert acks.confirm(ledger, "r1", 0) == 2
    assert acks.unconfirmed(ledger, 0) is None
    assert flight(ledger) == (0, 0)


def test_nothing_waits_nothing_is_offered():
    ledger = begun(at=7)
    assert offer(ledger) == 7
    ledger.receive(0, run(1))
    assert offer(ledger) == 7
    assert settled(ledger, 7) == {}


def test_a_batch_of_an_earlier_process_is_empty():
    ledger = begun(at=10)
    ledger.receive(0, run(1, 5))
    offer(ledger)
    assert ledger.batch(0, 10) is None
    assert ledger.batch(10, 11).end == 11
    assert settled(ledger, 10) == {}


@pytest.mark.parametrize(("start", "end"), [(10, 12), (9, 11), (10, 14), (12, 15)])
def test_a_batch_that_was_never_offered_is_an_error_and_not_empty(start, end):
    """Its messages would be acknowledged, and never read."""
    ledger = begun(at=10)
    ledger.receive(0, run(1, 5, 6, 7, 8))
    assert [offer(ledger, max_messages=most) for most in (1, 3)] == [11, 14]
    with pytest.raises(IllegalStateError, match=rf"\[{start}, {end}\)"):
        ledger.batch(start, end)


def test_finishing_again_or_less_acknowledges_nothing_more():
    ledger = begun()
    ledger.receive(0, run(1, 5))
    offer(ledger)
    assert settled(ledger, 1) == {0: [b"1,5"]}
    assert settled(ledger, 1) == {}
    assert settled(ledger, 0) == {}
    assert ledger.done == 1


def test_a_sequence_within_a_batch_finishes_none_of_it():
    ledger = begun()
    ledger.receive(0, run(1, 5, 6))
    offer(ledger)
    assert settled(ledger, 1) == {}
    assert settled(ledger, 2) == {0: [b"1,5", b"1,6"]}


def test_receipts_confirm_their_own():
    ledger = begun()
    for message in (5, 6):
        ledger.receive(0, run(1, message))
        settled(ledger, offer(ledger), f"r{message}")
    assert acks.unconfirmed(ledger, 0) == "r5"
    assert acks.confirm(ledger, "r6", 0) == 1
    assert acks.unconfirmed(ledger, 0) == "r5"
    assert acks.confirm(ledger, "r5", 0) == 1
    assert flight(ledger) == (0, 0)


# --- limits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "batches"),
    [
        ({}, [[1, 2, 3, 4, 5]]),
        ({"max_messages": 2}, [[1, 2], [3, 4], [5]]),
        ({"max_messages": 5}, [[1, 2, 3, 4, 5]]),
        ({"max_messages": 4}, [[1, 2, 3, 4], [5]]),
        ({"max_bytes": 29}, [[1, 2], [3, 4], [5]]),
        ({"max_bytes": 30}, [[1, 2, 3], [4, 5]]),
        ({"max_bytes": 1}, [[1], [2], [3], [4], [5]]),
        ({"max_bytes": 1 << 70}, [[1, 2, 3, 4, 5]]),
        ({"max_messages": 3, "max_bytes": 20}, [[1, 2], [3, 4], [5]]),
        ({"max_messages": 1, "max_bytes": 50}, [[1], [2], [3], [4], [5]]),
    ],
)
@pytest.mark.parametrize("cut", [[5], [2, 3], [1, 1, 1, 1, 1]], ids=["one run", "two runs", "five runs"])
def test_limits_hold_over_runs(limits, batches, cut):
    ledger, rest = begun(), [1, 2, 3, 4, 5]
    for length in cut:
        ledger.receive(0, run(1, *rest[:length]))
        rest = rest[length:]
    found, start = [], 0
    while (end := offer(ledger, **limits)) > start:
        found.append(contents(ledger.batch(start, end)))
        start = end
    assert found == batches


# --- illegal moves -----------------------------------------------------------------------------------


def test_nothing_is_done_that_was_not_offered():
    ledger = begun()
    ledger.receive(0, run(1, 5, 6))
    offer(ledger, max_messages=1)
    with pytest.raises(IllegalStateError, match=r"'finish' .*'received' .*sequence 1\b"):
        ledger.finish(2)
    assert ledger.done == 0


def test_an_ack_is_sent_once_and_confirmed_once():
    ledger = begun()
    ledger.receive(0, run(1, 5))
    ledger.finish(offer(ledger))
    [ack] = ledger.due(0)
    with pytest.raises(IllegalStateError, match=r"'receipt' .*'done'"):
        ack.confirmed()
    ack.sent("r1")
    with pytest.raises(IllegalStateError, match=r"'ack' .*'acknowledging'"):
        ack.sent("r2")
    assert ack.confirmed() == 1
    with pytest.raises(IllegalStateError, match=r"'receipt' .*'acknowledged'"):
        ack.confirmed()


# --- lost connections --------------------------------------------------------------------------------


def test_what_was_not_offered_is_forgotten_and_read_anew():
    ledger = begun()
    ledger.receive(0, run(1, 5, 6))
    ledger.lost(0)
    assert (ledger.waiting_messages, ledger.waiting_bytes, flight(ledger)) == (0, 0, (0, 0))
    assert not ledger.expects(0)
    ledger.receive(0, run(2, 5, 6))
    assert contents(ledger.batch(0, offer(ledger))) == [5, 6]
    assert settled(ledger, 2) == {0: [b"2,5", b"2,6"]}
    assert ledger.recognised == 0


def test_what_was_offered_is_recognised_and_bound_to_its_new_id():
    ledger = begun()
    ledger.receive(0, run(1, 5, 6, 7))
    offer(ledger, max_messages=2)
    ledger.lost(0)
    assert ledger.expects(0)
    ledger.receive(0, run(2, 5, 6, 7, 8))
    assert not ledger.expects(0)
    assert ledger.recognised == 2
    assert ledger.due(0) == []
    assert contents(ledger.batch(2, offer(ledger))) == [7, 8]
    assert settled(ledger, 2) == {0: [b"2,5", b"2,6"]}
    assert settled(ledger, 4) == {0: [b"2,7", b"2,8"]}


def test_what_comes_after_its_batch_is_acknowledged_on_sight():
    ledger = lost_after_an_offer(5, 6)
    assert settled(ledger, 2) == {}
    assert flight(ledger) == (0, 0)
    assert ledger.expects(0)
    ledger.receive(0, run(2, 5))
    assert ledger.waiting_messages == 0
    assert sent(ledger, "r1") == {0: [b"2,5"]}
    assert ledger.due(0) == []
    assert acks.confirm(ledger, "r1", 0) == 1
    assert ledger.expects(0)  # 6 may still come
    assert flight(ledger) == (0, 0)


def test_a_batch_of_which_half_came_back():
    ledger = lost_after_an_offer(5, 6)
    ledger.receive(0, run(2, 5))
    assert settled(ledger, 2, "r1") == {0: [b"2,5"]}
    assert acks.confirm(ledger, "r1", 0) == 1
    assert flight(ledger) == (0, 0)
    ledger.receive(0, run(2, 6))
    assert acks.due_ids(ledger, 0) == [b"2,6"]


def test_acks_without_receipt_are_awaited_again():
    """Whether the broker took them nobody knows: what comes again is acknowledged ack on redelivery."""
    ledger = begun()
    ledger.receive(0, run(1, 5, 6))
    settled(ledger, offer(ledger), "r1")
    ledger.lost(0)
    assert (acks.unconfirmed(ledger, 0), flight(ledger)) == (None, (0, 0))
    ledger.receive(0, run(2, 6, 7))
    assert acks.due_ids(ledger, 0) == [b"2,6"]
    assert contents(ledger.batch(2, offer(ledger))) == [7]


@pytest.mark.parametrize("moment", ["due", "sent"])
def test_a_copy_on_sight_is_lost_again(moment):
    ledger = begun()
    ledger.receive(0, run(1, 5))
    ledger.finish(offer(ledger))
    ledger.lost(0)
    ledger.receive(0, run(2, 5))
    assert acks.due_ids(ledger, 0) == [b"2,5"]
    if moment == "sent":
        acks.send(ledger, "r1", 0)
    ledger.lost(0)
    assert acks.unconfirmed(ledger, 0) is None
    ledger.receive(0, run(3, 5))
    assert acks.due_ids(ledger, 0) == [b"3,5"]


def test_a_lost_subscription_leaves_the_others_alone():
    ledger = begun(RECOGNITION, RECOGNITION)
    ledger.receive(0, run(1, 5))
    ledger.receive(1, run(2, 5))
    offer(ledger)
    ledger.receive(1, run(2, 6))
    ledger.lost(0)
    assert [ledger.expects(subscription) for subscription in (0, 1)] == [True, False]
    assert ledger.waiting_messages == 1
    ledger.receive(1, run(2, 5))  # another queue may count alike: not a copy of subscription 0's
    assert ledger.waiting_messages == 2
    assert settled(ledger, 2) == {1: [b"2,5"]}


def test_known_id_with_other_content_is_another_broker():
    ledger = lost_after_an_offer(5, 6)
    with pytest.raises(OtherBrokerError, match=r"JMS_OTHER_BROKER") as error:
        ledger.receive(0, block_of([b"2,4", b"2,6"], [b"new", b"SECRET"]))
    assert "SECRET" not in f"{error.value} {error.value!r}"
    assert ledger.waiting_messages == 0
    assert ledger.due(0) == []


def test_without_stable_ids_nothing_is_recognised():
    ledger = begun(None)
    ledger.receive(0, run(1, 5, 6))
    offer(ledger, max_messages=1)
    ledger.lost(0)
    assert not ledger.expects(0)
    assert settled(ledger, 1) == {}
    assert flight(ledger) == (0, 0)
    ledger.receive(0, run(2, 6))
    assert settled(ledger, offer(ledger)) == {0: [b"2,6"]}


@pytest.mark.parametrize(("upto", "new"), [(0, []), (2, [90]), (4, [90, 91]), (6, [90, 91, 92])])
def test_second_copies_are_known_in_all_of_a_run_whose_rest_is_not_taken(upto, new):
    ledger = begun()
    ledger.receive(0, run(1, 5, 6, 7))
    end = offer(ledger)
    ledger.lost(0)
    ledger.receive(0, run(2, 5, 90, 6, 91, 7, 92), upto=upto)
    assert not ledger.expects(0)
    assert settled(ledger, end) == {0: [b"2,5", b"2,6", b"2,7"]}
    after = offer(ledger)
    assert (contents(ledger.batch(end, after)) if after > end else []) == new


def awaited_on_sight(ledger):
    return [int(identity) for identity in ledger._ledgers[0].source.expected]


def done_and_never_heard_of_again(ledger, *messages):
    ledger.receive(0, run(1, *messages))
    ledger.finish(offer(ledger))
    ledger.lost(0)


def test_what_never_comes_again_is_forgotten_in_the_end_the_oldest_first(monkeypatch):
    monkeypatch.setattr(ledger_module, "MAX_EXPECTED", 3)
    ledger = begun()
    done_and_never_heard_of_again(ledger, 1, 2, 3)
    done_and_never_heard_of_again(ledger, 4)
    assert awaited_on_sight(ledger) == [2, 3, 4]
    done_and_never_heard_of_again(ledger, 5, 6, 7, 8)
    assert awaited_on_sight(ledger) == [5, 6, 7, 8]  # all of the last loss, though it is more
    ledger.receive(0, run(2, 1, 8))
    assert acks.due_ids(ledger, 0) == [b"2,8"]
    assert contents(ledger.batch(8, offer(ledger))) == [1]  # forgotten: a new message


def test_what_is_in_an_open_batch_is_not_forgotten(monkeypatch):
    monkeypatch.setattr(ledger_module, "MAX_EXPECTED", 2)
    ledger = begun()
    done_and_never_heard_of_again(ledger, 1, 2)
    ledger.receive(0, run(1, 3, 4, 5))
    end = offer(ledger)
    ledger.lost(0)
    ledger.lost(0)
    assert awaited_on_sight(ledger) == [3, 4, 5]
    ledger.receive(0, run(2, 3, 4, 5))
    assert settled(ledger, end) == {0: [b"2,3", b"2,4", b"2,5"]}


# --- several connections on one queue ----------------------------------------------------------------------


def test_another_connection_may_redeliver_and_then_acknowledges():
    ledger = begun(connections=3)
    ledger.receive(0, run(1, 5, 6, 7))
    ledger.receive(1, run(2, 8))
    offer(ledger)
    ledger.lost(0)
    assert all(ledger.expects(subscription) for subscription in range(3))
    ledger.receive(1, run(2, 9, 6))
    ledger.receive(2, run(3, 5))
    ledger.receive(0, run(4, 7))
    assert (ledger.recognised, ledger.waiting_messages, ledger.expects(0)) == (3, 1, False)
    assert settled(ledger, 4, "r") == {0: [b"4,7"], 1: [b"2,8", b"2,6"], 2: [b"3,5"]}
    assert [acks.confirm(ledger, "r", subscription) for subscription in range(3)] == [1, 2, 1]
    assert flight(ledger) == (1, 10)


def test_a_message_that_moved_is_lost_with_the_connection_that_has_it():
    ledger = begun(connections=3)
    ledger.receive(0, run(1, 5, 6))
    end = offer(ledger)
    ledger.lost(0)
    ledger.receive(1, run(2, 5, 6))
    ledger.lost(0)
    assert not ledger.expects(0)  # nothing was in flight on it
    ledger.lost(1)
    ledger.receive(2, run(3, 6))
    ledger.receive(0, run(4, 5))
    assert settled(ledger, end) == {0: [b"4,5"], 2: [b"3,6"]}


@pytest.mark.parametrize("finished", [False, True], ids=["before its batch is done", "after it"])
def test_what_moved_and_was_acknowledged_without_a_receipt_is_expected_again(finished):
    ledger = begun(connections=2)
    ledger.receive(0, run(1, 5, 6))
    end = offer(ledger)
    ledger.lost(0)
    if finished:
        ledger.finish(end)
    ledger.receive(1, run(2, 5))
    ledger.finish(end)
    assert sent(ledger, "r1") == {1: [b"2,5"]}
    ledger.lost(1)
    ledger.receive(0, run(3, 5, 6, 7))
    assert sent(ledger, "r2") == {0: [b"3,5", b"3,6"]}
    assert ledger.waiting_messages == 1


def test_equal_messages_of_several_connections_are_counted_together():
    ledger = begun(BY_PRODUCER, connections=2)
    ledger.receive(0, equal(1, b"-a;", b"named;"))
    ledger.receive(1, equal(2, b"-a;"))
    end = offer(ledger)
    ledger.lost(0)
    ledger.receive(1, equal(2, b"-a;", b"-a;", b"named;", first=1))
    assert (ledger.recognised, ledger.waiting_messages) == (2, 1)
    assert settled(ledger, end) == {1: [b"2,0", b"2,1", b"2,3"]}
    assert settled(ledger, offer(ledger)) == {1: [b"2,2"]}


def test_all_connections_that_are_lost_together_are_remembered(monkeypatch):
    monkeypatch.setattr(ledger_module, "MAX_EXPECTED", 1)
    ledger = begun(connections=2)
    ledger.receive(0, run(1, 1, 2, 3))
    ledger.receive(1, run(2, 4, 5))
    ledger.finish(offer(ledger))
    ledger.lost(0)
    ledger.lost(1)
    assert awaited_on_sight(ledger) == [1, 2, 3, 4, 5]


# --- messages to which producers gave one identity, or none ------------------------------------------------


def equal(consumer, *contents, first=0):
    return block_of([b"%d,%d" % (consumer, first + index) for index in range(len(contents))], contents)


@pytest.mark.parametrize("content", [b"with an id;", b"-without;"])
def test_equal_messages_are_each_bound_to_a_delivery_of_their_own(content):
    ledger = begun(BY_PRODUCER)
    ledger.receive(0, equal(1, content, content, content))
    end = offer(ledger)
    ledger.lost(0)
    ledger.receive(0, equal(2, content, content, content, content))
    assert ledger.recognised == 3
    assert ledger.waiting_messages == 1
    assert settled(ledger, end) == {0: [b"2,0", b"2,1", b"2,2"]}


def test_one_id_with_other_content_is_another_message():
    ledger = begun(BY_PRODUCER)
    ledger.receive(0, equal(1, b"id 5: a;", b"id 5: b;"))
    end = offer(ledger)
    ledger.lost(0)
    ledger.receive(0, equal(2, b"id 5: b;", b"id 5: c;", b"id 5: a;"))
    assert settled(ledger, end) == {0: [b"2,2", b"2,0"]}
    assert settled(ledger, offer(ledger)) == {0: [b"2,1"]}


@pytest.mark.parametrize("connections", [1, 2])
@pytest.mark.parametrize("where", ["in the ledger", "in the buffer", "not taken"])
def test_an_equal_message_that_waited_is_read_where_a_confirmation_is_lost(connections, where):
    """It may be the only one that the broker redelivers."""
    ledger, other = begun(BY_PRODUCER, connections=connections), connections - 1
    ledger.receive(0, equal(1, b"named;"))
    ledger.finish(offer(ledger))
    waits = equal(2, b"named;")
    if where != "in the buffer":
        ledger.receive(other, waits, upto=1 if where == "in the ledger" else 0)
    assert sent(ledger) == {0: [b"1,0"]}
    blocks = [waits] if where == "in the buffer" else []
    if other:
        ledger.lost(other, blocks)
    ledger.lost(0, [] if other else blocks)
    ledger.receive(0, equal(3, b"named;"))
    assert settled(ledger, offer(ledger)) == {0: [b"3,0"]}
    ledger.receive(0, equal(4, b"named;"))  # had the broker not carried out the acknowledgement
    assert sent(ledger) == {0: [b"4,0"]}


@pytest.mark.parametrize("again", [False, True], ids=["a batch", "what was redelivered after its batch"])
def test_an_equal_message_without_an_id_is_read_where_the_broker_may_have_the_acknowledgement(again):
    """The first one may be acknowledged, and this one a later message: an acknowledgement would lose it."""
    ledger = begun(BY_PRODUCER)
    ledger.receive(0, equal(1, b"-a;", b"named;"))
    ledger.finish(offer(ledger))
    consumer = 1
    if again:
        ledger.lost(0)
        consumer = 2
        ledger.receive(0, equal(2, b"-a;", b"named;"))
    assert sent(ledger) == {0: [b"%d,0" % consumer, b"%d,1" % consumer]}
    ledger.lost(0)
    ledger.receive(0, equal(3, b"-a;", b"named;"))
    assert sent(ledger) == {0: [b"3,1"]}
    assert settled(ledger, offer(ledger)) == {0: [b"3,0"]}


def test_of_equal_messages_the_oldest_are_forgotten_first(monkeypatch):
    monkeypatch.setattr(ledger_module, "MAX_EXPECTED", 3)
    ledger = begun(BY_PRODUCER)
    for content in (b"a;", b"b;"):
        ledger.receive(0, equal(1, content, content))
        ledger.finish(offer(ledger))
        ledger.lost(0)
    assert ledger._ledgers[0].source.expected_messages == 3
    ledger.receive(0, equal(2, b"a;", b"a;", b"b;", b"b;"))
    assert acks.due_ids(ledger, 0) == [b"2,0", b"2,2", b"2,3"]
    assert ledger.waiting_messages == 1


# --- any life ----------------------------------------------------------------------------------------

SUBSCRIPTIONS = st.integers(0, 1)


class AnyLife(RuleBasedStateMachine):
    """Two queues, the ledger, and Spark's log, in which the batches up to ``done`` are."""

    def __init__(self):
        super().__init__()
        self.brokers = [
            ModelBroker(lambda m, subscription=subscription: self._gone(subscription, m)) for subscription in (0, 1)
        ]
        self.ledger = self.new_ledger(1000)
        self.batches = deque()  # ends that are not done
        self.read = [{}, {}]  # message -> its sequence, of the batches that this process made
        self.done = [set(), set()]  # messages of batches in Spark's log
        self.may_repeat = [set(), set()]
        self.gone = [set(), set()]
        self.receipts = 0
        self.in_order = [True, True]

    def new_ledger(self, start):
        return begun(RECOGNITION, RECOGNITION, at=start)

    def _gone(self, subscription, message):
        assert message in self.done[subscription], "acknowledged before its batch was done"
        self.gone[subscription].add(message)

    # the brokers

    @rule(subscription=SUBSCRIPTIONS, sizes=st.lists(st.integers(3, 30), min_size=1, max_size=5), ahead=st.booleans())
    def send(self, subscription, sizes, ahead):
        for size in sizes:
            self.brokers[subscription].send(size)
        self.brokers[subscription].deliver(100 if ahead else 2)

    @rule(subscription=SUBSCRIPTIONS)
    def process_ack(self, subscription):
        self.brokers[subscription].process_ack()

    @rule(subscription=SUBSCRIPTIONS, half_way=st.integers(0, 6), noticed=st.booleans())
    def lose_link(self, subscription, half_way, noticed):
        self.brokers[subscription].lose_link(half_way, noticed=noticed)
        self.in_order[subscription] &= noticed
        self.ledger.lost(subscription)

    @rule(subscription=SUBSCRIPTIONS, half_way=st.integers(0, 6))
    def notice(self, subscription, half_way):
        self.brokers[subscription].notice(half_way)

    @rule(subscription=SUBSCRIPTIONS, count=st.integers(1, 6))
    def compete(self, subscription, count):
        self.brokers[subscription].compete(count)
        self.in_order[subscription] = False

    @rule(subscription=SUBSCRIPTIONS, acknowledge=st.booleans())
    def others_end(self, subscription, acknowledge):
        broker = self.brokers[subscription]
        broker.others_acknowledge() if acknowledge else broker.others_give_back()

    # the receiver

    @rule(subscription=SUBSCRIPTIONS, count=st.integers(1, 8))
    def take(self, subscription, count):
        self.brokers[subscription].deliver(count)
        self.ledger.receive(subscription, self.brokers[subscription].take(count))

    @rule(subscription=SUBSCRIPTIONS)
    def acknowledge(self, subscription):
        for ack in self.ledger.due(subscription):
            self.receipts += 1
            self.brokers[subscription].acknowledge(ack.ids, str(self.receipts))
            ack.sent(str(self.receipts))

    @rule(subscription=SUBSCRIPTIONS)
    def receive_receipt(self, subscription):
        if self.brokers[subscription].receipts:
            receipt = self.brokers[subscription].receipts.popleft()
            assert acks.unconfirmed(self.ledger, subscription) == receipt
            assert acks.confirm(self.ledger, receipt, subscription) > 0

    @rule(max_messages=st.none() | st.integers(1, 6), max_bytes=st.none() | st.integers(1, 60))
    def offer(self, max_messages, max_bytes):
        if not self.ledger.waiting_messages:
            self.take(0, 3)
            self.take(1, 3)
        start = self.ledger.offered
        end = self.ledger.offer(max_messages=max_messages, max_bytes=max_bytes)
        if end == start:
            assert self.ledger.waiting_messages == 0
            return
        batch = self.ledger.batch(start, end)
        assert max_messages is None or end - start <= max_messages
        assert max_bytes is None or end - start == 1 or sum(range_.size for range_ in batch.ranges) <= max_bytes
        self.batches.append(end)
        for range_ in batch.ranges:
            for message in numbers(range_.messages().data):
                self._in_a_batch(range_.subscription, message, start)
                start += 1
        assert start == end

    def _in_a_batch(self, subscription, message, sequence):
        assert message not in self.read[subscription], "in two batches of one process"
        assert message not in self.done[subscription] or message in self.may_repeat[subscription], "in a second batch"
        assert not self.in_order[subscription] or all(earlier < message for earlier in self.read[subscription]), (
            "out of order"
        )
        self.read[subscription][message] = sequence

    @precondition(lambda self: self.batches)
    @rule(count=st.integers(1, 3))
    def finish(self, count):
        for _ in range(min(count, len(self.batches))):
            end = self.batches.popleft()
        for subscription, messages in enumerate(self.read):
            self.done[subscription] |= {message for message, sequence in messages.items() if sequence < end}
        self.ledger.finish(end)

    @rule(planned=st.integers(0, 3), noticed=st.booleans())
    def process_dies(self, planned, noticed):
        """Of its batches so many are in Spark's offset log; the next process reads them empty."""
        start = ([self.ledger.done, *self.batches])[min(planned, len(self.batches))]
        for subscription, broker in enumerate(self.brokers):
            broker.lose_link(noticed=noticed)
            self.in_order[subscription] &= noticed
            self.may_repeat[subscription] |= self.done[subscription]
            self.read[subscription].clear()
        self.batches.clear()
        self.ledger = self.new_ledger(start)

    # what always holds

    @invariant()
    def counts_are_right(self):
        ledger = self.ledger
        assert ledger.done <= ledger.offered
        assert 0 <= ledger.waiting_messages <= ledger.in_flight_messages
        assert 0 <= ledger.waiting_bytes <= ledger.in_flight_bytes

    def teardown(self):
        """The brokers have their way and the reading goes on: then nothing is left anywhere."""
        quiet = 0
        while quiet < 3:
            quiet = quiet + 1 if all(broker.idle for broker in self.brokers) and not self.batches else 0
            for subscription in (0, 1):
                self.notice(subscription, 0)
                self.others_end(subscription, acknowledge=False)
                self.take(subscription, 100)
                self.acknowledge(subscription)
                self.process_ack(subscription)
                self.receive_receipt(subscription)
            self.offer(None, None)
            if self.batches:
                self.finish(len(self.batches))
        for broker, done, gone in zip(self.brokers, self.done, self.gone, strict=True):
            assert done | broker.taken_by_others == set(broker.sizes), "lost"
            assert gone | broker.taken_by_others == set(broker.sizes), "left unacknowledged"
        assert (self.ledger.waiting_messages, self.ledger.waiting_bytes) == (0, 0)
        assert flight(self.ledger) == (0, 0)
        super().teardown()


class AnyLifeOfTwoConnections(AnyLife):
    """Both read one queue, so what one of them loses comes on any of them."""

    def __init__(self):
        super().__init__()
        share_queue(self.brokers)
        for each in (self.read, self.done, self.may_repeat, self.gone):
            each[1] = each[0]
        self.in_order = [False, False]

    def new_ledger(self, start):
        return begun(RECOGNITION, at=start, connections=2)


TestAnyLife = AnyLife.TestCase
TestAnyLife.settings = settings(max_examples=examples(50), stateful_step_count=60)
TestAnyLifeOfTwoConnections = AnyLifeOfTwoConnections.TestCase
TestAnyLifeOfTwoConnections.settings = settings(max_examples=examples(50), stateful_step_count=60)


# --- any life of equal messages ------------------------------------------------------------------------

KINDS = (b"-a;", b"-b;", b"named;")
"""Contents of messages. Those of the last kind have one id."""


class AnyLifeOfEqualMessages(RuleBasedStateMachine):
    """One queue whose messages are equal to others. None of those without an id may be lost; some may be read twice.

    Of those with an id, none is read twice. None is lost, save for a message that arrives after a connection was lost
    with the acknowledgement of an equal one, or that was not in the ledger then and came on another connection. And a
    connection that the broker thinks alive has messages that come behind later ones.
    """

    connections = 1

    def __init__(self):
        super().__init__()
        self.brokers = [ModelBroker(self._gone) for _ in range(self.connections)]
        share_queue(self.brokers)
        self.ledger = begun(BY_PRODUCER, connections=self.connections)
        self.batches = deque()
        self.buffers = [[] for _ in self.brokers]  # blocks that the client has, and not the ledger
        self.kinds = {}
        self.seen = set()  # messages that the client got
        self.unconfirmed = [{} for _ in self.brokers]  # receipt -> how many messages with an id
        self.in_doubt = 0  # how many of them, on lost connections
        self.may_be_lost = 0
        self.read = Counter()
        self.gone = Counter()
        self.receipts = 0

    def _gone(self, message):
        kind = self.kinds[message]
        self.gone[kind] += 1
        assert self.gone[kind] <= self.read[kind] or not kind.startswith(UNNAMED), "acknowledged unread"

    def _contents(self, block):
        """The block of the broker's model with the contents of this machine."""
        return block_of(block.ids, [self.kinds[int(each.partition(b",")[2])] for each in block.ids])

    @rule(kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=5))
    def send(self, kinds):
        for kind in kinds:
            self.brokers[0].send(len(kind))
            self.kinds[self.brokers[0].sent] = kind

    @rule(subscription=SUBSCRIPTIONS)
    def process_ack(self, subscription):
        self._at(subscription).process_ack()

    @rule(subscription=SUBSCRIPTIONS, half_way=st.integers(0, 6), noticed=st.booleans())
    def lose_link(self, subscription, half_way, noticed):
        self._at(subscription).lose_link(half_way, noticed=noticed)
        subscription %= self.connections
        self.in_doubt += sum(self.unconfirmed[subscription].values())
        self.unconfirmed[subscription].clear()
        if self.in_doubt:
            beside = [each for number, blocks in enumerate(self.buffers) if number != subscription for each in blocks]
            self.may_be_lost += sum(bytes(each.data).count(b"named;") for each in beside)
        self.ledger.lost(subscription, self.buffers[subscription])
        self.buffers[subscription] = []

    @rule(subscription=SUBSCRIPTIONS, half_way=st.integers(0, 6))
    def notice(self, subscription, half_way):
        self._at(subscription).notice(half_way)

    @rule(subscription=SUBSCRIPTIONS, count=st.integers(1, 8))
    def arrive(self, subscription, count):
        self._at(subscription).deliver(count)
        subscription %= self.connections
        block = self._contents(self.brokers[subscription].take(count))
        self.buffers[subscription].append(block)
        new = {int(each.partition(b",")[2]) for each in block.ids} - self.seen
        self.seen |= new
        named = sum(self.kinds[message] == b"named;" for message in new)
        if not any(each.ghosts for each in self.brokers):
            named = min(named, self.in_doubt)
            self.in_doubt -= named
        self.may_be_lost += named

    @rule(subscription=SUBSCRIPTIONS, count=st.integers(1, 8), upto=st.integers(0, 20))
    def take(self, subscription, count, upto=1000):
        """Of the last block, the first ``upto`` messages; what is left is not taken before the connection is lost."""
        self.arrive(subscription, count)
        self._take_buffer(subscription % self.connections, upto)

    def _take_buffer(self, number, upto=1000):
        for block in self.buffers[number]:
            self.ledger.receive(number, block, min(upto, len(block)) if block is self.buffers[number][-1] else None)
        self.buffers[number] = []

    @rule(subscription=SUBSCRIPTIONS)
    def acknowledge(self, subscription):
        if self.connections > 1:
            for number in range(self.connections):
                self._take_buffer(number)
        for ack in self.ledger.due(subscription % self.connections):
            self.receipts += 1
            self._at(subscription).acknowledge(ack.ids, str(self.receipts))
            ack.sent(str(self.receipts))
            kinds = [self.kinds[int(each.partition(b",")[2])] for each in ack.ids]
            self.unconfirmed[subscription % self.connections][str(self.receipts)] = kinds.count(b"named;")

    @rule(subscription=SUBSCRIPTIONS)
    def receive_receipt(self, subscription):
        if self._at(subscription).receipts:
            receipt = self._at(subscription).receipts.popleft()
            assert acks.confirm(self.ledger, receipt, subscription % self.connections) > 0
            del self.unconfirmed[subscription % self.connections][receipt]

    def _at(self, subscription):
        return self.brokers[subscription % self.connections]

    @rule(max_messages=st.none() | st.integers(1, 6))
    def offer(self, max_messages):
        start = self.ledger.offered
        end = self.ledger.offer(max_messages=max_messages, max_bytes=None)
        if end > start:
            self.batches.append(end)
            for range_ in self.ledger.batch(start, end).ranges:
                block = range_.messages()
                self.read.update(bytes(block.message(index)) for index in range(len(block)))

    @precondition(lambda self: self.batches)
    @rule(count=st.integers(1, 3))
    def finish(self, count):
        for _ in range(min(count, len(self.batches))):
            end = self.batches.popleft()
        self.ledger.finish(end)

    @rule(
        subscription=SUBSCRIPTIONS,
        kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3),
        half_way=st.integers(0, 6),
    )
    def lose_confirmation(self, subscription, kinds, half_way):
        """A batch is read and acknowledged. Some or all of it arrives, and no confirmation comes back. Equal messages
        have arrived meanwhile.
        """
        self.send(kinds)
        self.take(subscription, 100)
        self._read_all()
        self.acknowledge(subscription)
        self.send(kinds)
        for number in range(self.connections):
            self.arrive(number, 1)
        self.lose_link(subscription, half_way, noticed=True)

    def _read_all(self):
        self.offer(None)
        if self.batches:
            self.finish(len(self.batches))

    def teardown(self):
        for subscription in range(self.connections):  # what was not taken comes again
            self.lose_link(subscription, 0, noticed=True)
        quiet = 0
        while quiet < 3:
            quiet = quiet + 1 if all(each.idle for each in self.brokers) and not self.batches else 0
            for subscription in range(self.connections):
                self.notice(subscription, 0)
                self.take(subscription, 100)
                self.acknowledge(subscription)
                self.process_ack(subscription)
                self.receive_receipt(subscription)
            self._read_all()
        sent = Counter(self.kinds.values())
        assert all(self.read[kind] <= sent[kind] for kind in KINDS if not kind.startswith(UNNAMED)), "read twice"
        read = Counter({kind: self.may_be_lost * (not kind.startswith(UNNAMED)) for kind in KINDS}) + self.read
        assert all(read[kind] >= sent[kind] for kind in KINDS), "lost"
        assert self.gone == sent, "left unacknowledged"
        assert flight(self.ledger) == (0, 0)
        super().teardown()


class AnyLifeOfEqualMessagesOfTwoConnections(AnyLifeOfEqualMessages):
    connections = 2


TestAnyLifeOfEqualMessages = AnyLifeOfEqualMessages.TestCase
TestAnyLifeOfEqualMessages.settings = settings(max_examples=examples(50), stateful_step_count=60)
TestAnyLifeOfEqualMessagesOfTwoConnections = AnyLifeOfEqualMessagesOfTwoConnections.TestCase
TestAnyLifeOfEqualMessagesOfTwoConnections.settings = settings(max_examples=examples(50), stateful_step_count=60)
