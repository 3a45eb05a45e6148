"""Every transition by example, every illegal move; then any life at all against a model broker."""

from array import array
from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pyspark_jms.errors import IllegalStateError, OtherBrokerError
from pyspark_jms.journal.ledger import Ledger, Span
from pyspark_jms.journal.recognition import Recognition


@dataclass
class Run:
    """What a connection delivered: ids as ``consumer,message``, contents, and where each one ends."""

    ids: list
    contents: list
    ends: array = field(default_factory=lambda: array("q"))

    def __post_init__(self):
        for content in self.contents:
            self.ends.append((self.ends[-1] if self.ends else 0) + len(content))

    def __len__(self):
        return len(self.contents)


def run(consumer, *messages, size=10):
    """``run(1, 5, 6)``: messages 5 and 6 as consumer 1 gets them, ten octets each."""
    return Run([b"%d,%d" % (consumer, m) for m in messages], [b"%0*d" % (size, m) for m in messages])


BY_ID = Recognition(identity=lambda i: i.partition(b",")[2], fingerprint=lambda r, index: r.contents[index])


def begun(*recognitions, at=0):
    ledger = Ledger(recognitions or [BY_ID])
    ledger.begin(at)
    return ledger


def offer(ledger, max_messages=None, max_octets=None):
    return ledger.offer(max_messages=max_messages, max_octets=max_octets)


def contents(batch):
    return [int(span.run.contents[index]) for span in batch.spans for index in range(span.first, span.last)]


def flight(ledger):
    return ledger.in_flight_messages, ledger.in_flight_octets


# --- received, offered, done, acknowledged -----------------------------------------------------------


def test_a_message_s_life():
    ledger = begun(at=100)
    ledger.receive(0, run(1, 5, 6))
    assert (ledger.waiting_messages, ledger.waiting_octets, ledger.offered) == (2, 20, 100)
    assert offer(ledger) == 102
    assert (ledger.waiting_messages, ledger.waiting_octets) == (0, 0)
    assert contents(ledger.batch(100, 102)) == [5, 6]
    assert flight(ledger) == (2, 20)
    assert ledger.finish(102) == {0: [b"1,5", b"1,6"]}
    assert (ledger.done, ledger.batch(100, 102)) == (102, None)
    assert ledger.unconfirmed(0) is None
    ledger.acknowledging(0, "r1")
    assert ledger.unconfirmed(0) == "r1"
    assert flight(ledger) == (2, 20)
    assert ledger.acknowledged(0, "r1") == 2
    assert ledger.unconfirmed(0) is None
    assert flight(ledger) == (0, 0)


def test_nothing_waits_nothing_is_offered():
    ledger = begun(at=7)
    assert offer(ledger) == 7
    ledger.receive(0, run(1))
    assert offer(ledger) == 7
    assert ledger.finish(7) == {}


def test_a_batch_of_another_process_is_unknown():
    ledger = begun(at=10)
    ledger.receive(0, run(1, 5))
    offer(ledger)
    assert ledger.batch(0, 10) is None
    assert ledger.batch(10, 12) is None
    assert ledger.batch(10, 11).end == 11
    assert ledger.finish(10) == {}


def test_finishing_again_or_less_acknowledges_nothing_more():
    ledger = begun()
    ledger.receive(0, run(1, 5))
    offer(ledger)
    assert ledger.finish(1) == {0: [b"1,5"]}
    assert ledger.finish(1) == {}
    assert ledger.finish(0) == {}
    assert ledger.done == 1


def test_several_batches_are_finished_at_once():
    ledger = begun()
    ledger.receive(0, run(1, 5, 6, 7))
    ends = [offer(ledger, max_messages=1) for _ in range(3)]
    assert ends == [1, 2, 3]
    assert ledger.finish(2) == {0: [b"1,5", b"1,6"]}
    assert contents(ledger.batch(2, 3)) == [7]
    assert ledger.finish(3) == {0: [b"1,7"]}


def test_a_sequence_within_a_batch_finishes_none_of_it():
    ledger = begun()
    ledger.receive(0, run(1, 5, 6))
    offer(ledger)
    assert ledger.finish(1) == {}
    assert ledger.finish(2) == {0: [b"1,5", b"1,6"]}


def test_receipts_confirm_their_own():
    ledger = begun()
    for message in (5, 6):
        ledger.receive(0, run(1, message))
        ledger.finish(offer(ledger))
        ledger.acknowledging(0, f"r{message}")
    assert ledger.unconfirmed(0) == "r5"
    assert ledger.acknowledged(0, "r6") == 1
    assert ledger.unconfirmed(0) == "r5"
    assert ledger.acknowledged(0, "r5") == 1
    assert flight(ledger) == (0, 0)


def test_the_first_messages_of_a_run_only():
    ledger = begun()
    ledger.receive(0, run(1, 5, 6, 7), upto=2)
    assert contents(ledger.batch(0, offer(ledger))) == [5, 6]
    ledger.receive(0, run(1, 8), upto=0)
    assert offer(ledger) == 2
    assert flight(ledger) == (2, 20)


def test_lanes_are_acknowledged_apart():
    ledger = begun(BY_ID, BY_ID)
    ledger.receive(0, run(1, 5))
    ledger.receive(1, run(2, 5, 6))
    ledger.receive(0, run(1, 7))
    assert contents(ledger.batch(0, offer(ledger))) == [5, 5, 6, 7]
    assert ledger.finish(4) == {0: [b"1,5", b"1,7"], 1: [b"2,5", b"2,6"]}
    ledger.acknowledging(0, "r1")
    ledger.acknowledging(1, "r1")
    assert ledger.acknowledged(1, "r1") == 2
    assert ledger.unconfirmed(0) == "r1"
    assert flight(ledger) == (2, 20)


# --- limits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "batches"),
    [
        ({}, [[1, 2, 3, 4, 5]]),
        ({"max_messages": 2}, [[1, 2], [3, 4], [5]]),
        ({"max_messages": 5}, [[1, 2, 3, 4, 5]]),
        ({"max_messages": 4}, [[1, 2, 3, 4], [5]]),
        ({"max_octets": 29}, [[1, 2], [3, 4], [5]]),
        ({"max_octets": 30}, [[1, 2, 3], [4, 5]]),
        ({"max_octets": 1}, [[1], [2], [3], [4], [5]]),
        ({"max_octets": 1 << 70}, [[1, 2, 3, 4, 5]]),
        ({"max_messages": 3, "max_octets": 20}, [[1, 2], [3, 4], [5]]),
        ({"max_messages": 1, "max_octets": 50}, [[1], [2], [3], [4], [5]]),
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


def test_a_message_larger_than_the_limit_goes_alone():
    ledger = begun()
    ledger.receive(0, Run([b"1,1", b"1,2", b"1,3"], [b"1", b"2" * 1000, b"3"]))
    ends = [offer(ledger, max_octets=10) for _ in range(4)]
    assert ends == [1, 2, 3, 3]
    assert [ledger.batch(end - 1, end).spans[0].octets for end in (1, 2, 3)] == [1, 1000, 1]


def test_spans():
    span = Span(3, run(1, 4, 5, 6), 1, 3)
    assert (len(span), span.begin, span.end, span.octets) == (2, 10, 30, 20)
    one, two = span.cut(1)
    assert (one.first, one.last, two.first, two.last, two.lane) == (1, 2, 2, 3, 3)


# --- illegal moves -----------------------------------------------------------------------------------


def test_begin_comes_first_and_once():
    ledger = Ledger([BY_ID])
    for move in (lambda: offer(ledger), lambda: ledger.finish(0)):
        with pytest.raises(IllegalStateError, match=r"JMS_ILLEGAL_STATE.*has not begun"):
            move()
    ledger.begin(0)
    with pytest.raises(IllegalStateError, match=r"begin\(5\) in a ledger that has begun"):
        ledger.begin(5)


def test_nothing_is_done_that_was_not_offered():
    ledger = begun()
    ledger.receive(0, run(1, 5, 6))
    offer(ledger, max_messages=1)
    with pytest.raises(IllegalStateError, match=r"finish\(2\) beyond what was offered \(1\)"):
        ledger.finish(2)
    assert ledger.done == 0


def test_no_ack_without_messages_and_no_receipt_without_ack():
    ledger = begun()
    with pytest.raises(IllegalStateError, match="nothing to acknowledge"):
        ledger.acknowledging(0, "r1")
    ledger.receive(0, run(1, 5))
    ledger.finish(offer(ledger))
    ledger.acknowledging(0, "r1")
    with pytest.raises(IllegalStateError, match="confirms nothing"):
        ledger.acknowledged(0, "r2")
    with pytest.raises(IllegalStateError, match="nothing to acknowledge"):
        ledger.acknowledging(0, "r2")


# --- lost connections --------------------------------------------------------------------------------


def test_what_was_not_offered_is_forgotten_and_read_anew():
    ledger = begun()
    ledger.receive(0, run(1, 5, 6))
    ledger.lost(0)
    assert (ledger.waiting_messages, ledger.waiting_octets, flight(ledger)) == (0, 0, (0, 0))
    assert not ledger.expects(0)
    ledger.receive(0, run(2, 5, 6))
    assert contents(ledger.batch(0, offer(ledger))) == [5, 6]
    assert ledger.finish(2) == {0: [b"2,5", b"2,6"]}
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
    assert ledger.on_sight(0) == []
    assert contents(ledger.batch(2, offer(ledger))) == [7, 8]
    assert ledger.finish(2) == {0: [b"2,5", b"2,6"]}
    assert ledger.finish(4) == {0: [b"2,7", b"2,8"]}


def test_second_copies_in_the_middle_cut_the_run():
    ledger = begun()
    ledger.receive(0, run(1, 5, 6))
    offer(ledger)
    ledger.lost(0)
    ledger.receive(0, run(2, 3, 5, 4, 6, 8))
    batch = ledger.batch(2, offer(ledger))
    assert contents(batch) == [3, 4, 8]
    assert [(span.first, span.last) for span in batch.spans] == [(0, 1), (2, 3), (4, 5)]


def test_what_comes_after_its_batch_is_acknowledged_on_sight():
    ledger = begun()
    ledger.receive(0, run(1, 5, 6))
    offer(ledger)
    ledger.lost(0)
    assert ledger.finish(2) == {}
    assert flight(ledger) == (0, 0)
    assert ledger.expects(0)
    ledger.receive(0, run(2, 5))
    assert ledger.waiting_messages == 0
    assert ledger.on_sight(0) == [b"2,5"]
    assert ledger.on_sight(0) == []
    ledger.acknowledging(0, "r1")
    assert ledger.acknowledged(0, "r1") == 1
    assert ledger.expects(0)  # 6 may still come
    assert flight(ledger) == (0, 0)


def test_a_batch_of_which_half_came_back():
    ledger = begun()
    ledger.receive(0, run(1, 5, 6))
    offer(ledger)
    ledger.lost(0)
    ledger.receive(0, run(2, 5))
    assert ledger.finish(2) == {0: [b"2,5"]}
    ledger.acknowledging(0, "r1")
    assert ledger.acknowledged(0, "r1") == 1
    assert flight(ledger) == (0, 0)
    ledger.receive(0, run(2, 6))
    assert ledger.on_sight(0) == [b"2,6"]


def test_acks_without_receipt_are_awaited_again():
    """Whether the broker took them nobody knows: what comes again is acknowledged on sight."""
    ledger = begun()
    ledger.receive(0, run(1, 5, 6))
    ledger.finish(offer(ledger))
    ledger.acknowledging(0, "r1")
    ledger.lost(0)
    assert (ledger.unconfirmed(0), flight(ledger)) == (None, (0, 0))
    ledger.receive(0, run(2, 6, 7))
    assert ledger.on_sight(0) == [b"2,6"]
    assert contents(ledger.batch(2, offer(ledger))) == [7]


def test_a_connection_lost_between_finish_and_the_ack():
    ledger = begun()
    ledger.receive(0, run(1, 5))
    ledger.finish(offer(ledger))
    ledger.lost(0)
    ledger.receive(0, run(2, 5))
    assert ledger.on_sight(0) == [b"2,5"]


@pytest.mark.parametrize("moment", ["seen", "asked for", "sent"])
def test_a_copy_on_sight_is_lost_again(moment):
    ledger = begun()
    ledger.receive(0, run(1, 5))
    ledger.finish(offer(ledger))
    ledger.lost(0)
    ledger.receive(0, run(2, 5))
    if moment != "seen":
        assert ledger.on_sight(0) == [b"2,5"]
    if moment == "sent":
        ledger.acknowledging(0, "r1")
    ledger.lost(0)
    assert ledger.unconfirmed(0) is None
    ledger.receive(0, run(3, 5))
    assert ledger.on_sight(0) == [b"3,5"]


def test_lost_again_and_again():
    ledger = begun()
    ledger.receive(0, run(1, 5, 6))
    offer(ledger)
    ledger.lost(0)
    ledger.receive(0, run(2, 5))
    ledger.lost(0)
    ledger.lost(0)
    ledger.receive(0, run(4, 5, 6))
    assert ledger.recognised == 3
    assert ledger.finish(2) == {0: [b"4,5", b"4,6"]}


def test_a_lost_lane_leaves_the_others_alone():
    ledger = begun(BY_ID, BY_ID)
    ledger.receive(0, run(1, 5))
    ledger.receive(1, run(2, 5))
    offer(ledger)
    ledger.receive(1, run(2, 6))
    ledger.lost(0)
    assert [ledger.expects(lane) for lane in (0, 1)] == [True, False]
    assert ledger.waiting_messages == 1
    ledger.receive(1, run(2, 5))  # another queue may count alike: not a copy of lane 0's
    assert ledger.waiting_messages == 2
    assert ledger.finish(2) == {1: [b"2,5"]}


def test_known_id_with_other_content_is_another_broker():
    ledger = begun()
    ledger.receive(0, run(1, 5, 6))
    offer(ledger)
    ledger.lost(0)
    with pytest.raises(OtherBrokerError, match=r"JMS_OTHER_BROKER.*other content"):
        ledger.receive(0, Run([b"2,4", b"2,6"], [b"new", b"SECRET"]))
    assert ledger.waiting_messages == 0
    assert ledger.on_sight(0) == []


def test_the_error_shows_no_content():
    ledger = begun()
    ledger.receive(0, run(1, 5))
    offer(ledger)
    ledger.lost(0)
    with pytest.raises(OtherBrokerError) as error:
        ledger.receive(0, Run([b"2,5"], [b"SECRET"]))
    assert "SECRET" not in f"{error.value} {error.value!r}"


def test_without_stable_ids_nothing_is_recognised():
    ledger = begun(None)
    ledger.receive(0, run(1, 5, 6))
    offer(ledger, max_messages=1)
    ledger.lost(0)
    assert not ledger.expects(0)
    assert ledger.finish(1) == {}
    assert flight(ledger) == (0, 0)
    ledger.receive(0, run(2, 6))
    assert ledger.finish(offer(ledger)) == {0: [b"2,6"]}


# --- any life ----------------------------------------------------------------------------------------


class ModelBroker:
    """One queue and its one consumer, as Artemis has them: in order, and back at the head when the link dies."""

    def __init__(self):
        self.queue = deque()  # (broker's id, content)
        self.consumer = 1
        self.delivered = {}  # message-id -> (broker's id, content), in order
        self.wire = []  # on its way to the client
        self.acks = deque()  # on their way to the broker: ids, receipt
        self.receipts = deque()  # on their way to the client
        self.sent = 0

    def send(self, size):
        self.sent += 1
        self.queue.append((self.sent, b"%0*d" % (size, self.sent)))

    def deliver(self, count):
        for _ in range(min(count, len(self.queue))):
            message = self.queue.popleft()
            identifier = b"%d,%d" % (self.consumer, message[0])
            self.delivered[identifier] = message
            self.wire.append((identifier, message[1]))

    def take(self, count):
        taken, self.wire = self.wire[:count], self.wire[count:]
        return Run([identifier for identifier, _ in taken], [content for _, content in taken])

    def process_ack(self):
        """The oldest ACKs: those messages are gone. An ACK of what is not in delivery is an ERROR of Artemis."""
        ids, receipt = self.acks.popleft()
        gone = [self.delivered.pop(identifier)[0] for identifier in ids]
        self.receipts.append(receipt)
        return gone

    def lose_link(self, half_way):
        """``half_way``: so many of the oldest ACK's ids still arrive."""
        gone = []
        if self.acks:
            gone = [self.delivered.pop(identifier)[0] for identifier in self.acks[0][0][:half_way]]
        self.queue.extendleft(reversed(self.delivered.values()))
        self.consumer += 1
        self.delivered, self.wire = {}, []
        self.acks.clear()
        self.receipts.clear()
        return gone


LANES = st.integers(0, 1)


class AnyLife(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.brokers = [ModelBroker(), ModelBroker()]
        self.ledger = begun(BY_ID, BY_ID, at=1000)
        self.batches = deque()  # ends that are not finished
        self.sequences = [{}, {}]  # broker's id -> sequence
        self.acknowledged = 0
        self.next_receipt = 0

    # the broker

    @rule(lane=LANES, sizes=st.lists(st.integers(3, 30), min_size=1, max_size=5), ahead=st.booleans())
    def send(self, lane, sizes, ahead):
        for size in sizes:
            self.brokers[lane].send(size)
        self.brokers[lane].deliver(100 if ahead else 2)

    @rule(lane=LANES)
    def process_ack(self, lane):
        if self.brokers[lane].acks:
            self._gone(lane, self.brokers[lane].process_ack())

    @rule(lane=LANES, half_way=st.integers(0, 6))
    def lose_link(self, lane, half_way):
        self._gone(lane, self.brokers[lane].lose_link(half_way))
        self.ledger.lost(lane)

    def _gone(self, lane, messages):
        for message in messages:
            assert self.sequences[lane][message] < self.ledger.done, "acknowledged before its batch was done"
        self.acknowledged += len(messages)

    # the receiver

    @rule(lane=LANES, count=st.integers(1, 8))
    def take(self, lane, count):
        self.brokers[lane].deliver(count)
        self.ledger.receive(lane, self.brokers[lane].take(count))

    @rule(lane=LANES)
    def acknowledge_on_sight(self, lane):
        if sights := self.ledger.on_sight(lane):
            self._acknowledge(lane, sights)

    @rule(max_messages=st.none() | st.integers(1, 6), max_octets=st.none() | st.integers(1, 60))
    def offer(self, max_messages, max_octets):
        if not self.ledger.waiting_messages:
            self.take(0, 3)
            self.take(1, 3)
        start = self.ledger.offered
        end = self.ledger.offer(max_messages=max_messages, max_octets=max_octets)
        if end == start:
            assert self.ledger.waiting_messages == 0
            return
        spans = self.ledger.batch(start, end).spans
        assert max_messages is None or end - start <= max_messages
        assert max_octets is None or end - start == 1 or sum(span.octets for span in spans) <= max_octets
        self.batches.append(end)
        for span in spans:
            for index in range(span.first, span.last):
                self._in_a_batch(span.lane, int(span.run.contents[index]), start)
                start += 1
        assert start == end

    def _in_a_batch(self, lane, message, sequence):
        assert message not in self.sequences[lane], "in two batches"
        assert all(earlier < message for earlier in self.sequences[lane]), "out of the queue's order"
        self.sequences[lane][message] = sequence

    @precondition(lambda self: self.batches)
    @rule(count=st.integers(1, 3), link_dies=st.sampled_from([None, None, 0, 1]))
    def finish(self, count, link_dies):
        for _ in range(min(count, len(self.batches))):
            end = self.batches.popleft()
        for lane, ids in self.ledger.finish(end).items():
            if lane == link_dies:
                self.lose_link(lane, 0)
            else:
                self._acknowledge(lane, ids)

    def _acknowledge(self, lane, ids):
        assert ids
        assert len(set(ids)) == len(ids)
        self.next_receipt += 1
        self.brokers[lane].acks.append((ids, str(self.next_receipt)))
        self.ledger.acknowledging(lane, str(self.next_receipt))

    @rule(lane=LANES)
    def hear_receipt(self, lane):
        if self.brokers[lane].receipts:
            receipt = self.brokers[lane].receipts.popleft()
            assert self.ledger.unconfirmed(lane) == receipt
            assert self.ledger.acknowledged(lane, receipt) > 0

    # what always holds

    @invariant()
    def counts_are_right(self):
        ledger = self.ledger
        assert ledger.done <= ledger.offered
        assert 0 <= ledger.waiting_messages <= ledger.in_flight_messages
        assert 0 <= ledger.waiting_octets <= ledger.in_flight_octets

    def teardown(self):
        """The broker has its way and the reading goes on: then nothing is left anywhere."""
        quiet = 0
        while quiet < 3:
            quiet = 0 if any(b.queue or b.wire or b.acks or b.receipts for b in self.brokers) else quiet + 1
            for lane in (0, 1):
                self.take(lane, 100)
                self.acknowledge_on_sight(lane)
                self.process_ack(lane)
                self.hear_receipt(lane)
            self.offer(None, None)
            if self.batches:
                self.finish(len(self.batches), None)
        assert [len(sequences) for sequences in self.sequences] == [broker.sent for broker in self.brokers]
        assert self.acknowledged == sum(broker.sent for broker in self.brokers)
        assert not any(broker.delivered for broker in self.brokers), "left unacknowledged"
        assert (self.ledger.waiting_messages, self.ledger.waiting_octets) == (0, 0)
        assert flight(self.ledger) == (0, 0)
        super().teardown()


TestAnyLife = AnyLife.TestCase
TestAnyLife.settings = settings(deadline=None, max_examples=150, stateful_step_count=60)


@pytest.mark.parametrize(("upto", "new"), [(0, []), (2, [90]), (4, [90, 91]), (6, [90, 91, 92])])
def test_second_copies_are_known_in_all_of_a_run_whose_rest_is_not_taken(upto, new):
    ledger = begun()
    ledger.receive(0, run(1, 5, 6, 7))
    end = offer(ledger)
    ledger.lost(0)
    ledger.receive(0, run(2, 5, 90, 6, 91, 7, 92), upto=upto)
    assert not ledger.expects(0)
    assert ledger.finish(end) == {0: [b"2,5", b"2,6", b"2,7"]}
    after = offer(ledger)
    assert (contents(ledger.batch(end, after)) if after > end else []) == new
