"""One subscription in the books: what is due, what is awaited. The ledgers' tests show what follows from it."""

import pytest
from model_broker import RECOGNITION, Run, run, text

from pyspark_jms.delivery.lane import Awaited, Lane, Lanes
from pyspark_jms.delivery.states import WITH_JOURNAL, WITHOUT_JOURNAL, State
from pyspark_jms.errors import IllegalStateError, OtherBrokerError


def awaiting(*messages, table=WITHOUT_JOURNAL, state=State.ON_SIGHT):
    lane = Lane(table, RECOGNITION)
    for index, message in enumerate(messages):
        known = run(1, message)
        lane.awaited[b"%d" % message] = Awaited(RECOGNITION.fingerprint(known, 0), state, known, index)
    return lane


def test_ids_are_due_until_their_acks_are_sent_and_unconfirmed_until_the_receipt():
    lane = Lane(WITHOUT_JOURNAL, RECOGNITION)
    lane.allow([b"1,5"], "a batch", State.DONE)
    lane.allow([b"1,6"], "another", State.DONE)
    assert [due.ids for due in lane.due] == [[b"1,5"], [b"1,6"]]
    lane.acknowledging("r1")
    lane.allow([b"1,7"], "a third", State.DONE)
    assert [due.what for due in lane.due] == ["a third"]
    assert [due.state for due in lane.unconfirmed] == [State.ACKNOWLEDGING, State.ACKNOWLEDGING, State.DONE]
    confirmed = lane.acknowledged("r1")
    assert [(due.what, due.state) for due in confirmed] == [
        ("a batch", State.ACKNOWLEDGED),
        ("another", State.ACKNOWLEDGED),
    ]
    assert [due.what for due in lane.unconfirmed] == ["a third"]


@pytest.mark.parametrize(
    ("table", "allowed", "after"),
    [(WITHOUT_JOURNAL, State.DONE, State.ON_SIGHT), (WITH_JOURNAL, State.DURABLE, State.LOST)],
)
def test_a_lost_connection_ends_what_has_no_receipt(table, allowed, after):
    lane = Lane(table, RECOGNITION)
    lane.allow([b"1,5"], "sent", allowed)
    lane.acknowledging("r1")
    lane.allow([b"1,6"], "due", allowed)
    assert [(due.what, due.state) for due in lane.lose()] == [("sent", after), ("due", after)]
    assert lane.unconfirmed == []
    with pytest.raises(IllegalStateError, match=r"'receipt', and no message .* is 'acknowledging' \(r1\)"):
        lane.acknowledged("r1")


def test_no_ack_for_what_may_not_be_acknowledged():
    lane = Lane(WITHOUT_JOURNAL, RECOGNITION)
    with pytest.raises(IllegalStateError, match="'ack', and no message without a journal is 'done'"):
        lane.acknowledging("r1")
    lane.allow([b"1,5"], None, State.OFFERED)
    with pytest.raises(IllegalStateError, match="'ack' for a message without a journal that is 'offered'"):
        lane.acknowledging("r1")


@pytest.mark.parametrize(
    ("awaited", "upto", "new", "again"),
    [
        ([], 5, [(0, 5)], []),
        ([], 0, [], []),
        ([99], 5, [(0, 5)], []),
        ([10], 5, [(1, 5)], [0]),
        ([12], 5, [(0, 2), (3, 5)], [2]),
        ([14, 99], 5, [(0, 4)], [4]),
        ([11, 12], 5, [(0, 1), (3, 5)], [1, 2]),
        ([10, 11, 12, 13, 14], 5, [], [0, 1, 2, 3, 4]),
        ([11, 13], 3, [(0, 1), (2, 3)], [1, 3]),
        ([11, 13], 0, [], [1, 3]),
    ],
)
def test_sifts_what_is_new_from_what_came_again(awaited, upto, new, again):
    lane = awaiting(*awaited)
    found = lane.sift(run(2, 10, 11, 12, 13, 14), upto)
    assert found[0] == new
    assert [index for index, _ in found[1]] == again
    assert all(one.state is State.DONE for _, one in found[1])
    assert set(lane.awaited) == {b"%d" % message for message in awaited} - {b"%d" % (10 + index) for index in again}


def test_another_content_is_another_broker_and_nothing_has_changed():
    lane = awaiting(10, 11)
    with pytest.raises(OtherBrokerError):
        lane.sift(Run([b"2,10", b"2,11"], [text(10), b"other"]), 2)
    assert [one.state for one in lane.awaited.values()] == [State.ON_SIGHT, State.ON_SIGHT]


def test_a_broker_that_sends_a_message_twice_on_one_connection_is_named():
    lane = awaiting(10)
    with pytest.raises(IllegalStateError, match="'recognise' for a message without a journal that is 'done'"):
        lane.sift(run(2, 10, 10), 2)


def test_gives_up():
    lane = awaiting(10, 11)
    lane.give_up([b"10"])
    assert lane.sift(run(2, 10, 11), 2)[0] == [(0, 1)]
    with pytest.raises(IllegalStateError, match=r"'give up' .* 'lost'"):
        awaiting(10, state=State.LOST).give_up([b"10"])


def test_lanes_are_apart():
    lanes = Lanes([awaiting(10), Lane(WITHOUT_JOURNAL, None)])
    lanes._lanes[1].allow([b"1,5", b"1,6"], None, State.DONE)
    assert [lanes.expects(lane) for lane in (0, 1)] == [True, False]
    assert [lanes.due(lane) for lane in (0, 1)] == [0, 2]
    assert lanes.due_ids(1) == [b"1,5", b"1,6"]
    assert lanes.unconfirmed(1) is None
    lanes.acknowledging(1, "r1")
    assert [lanes.unconfirmed(lane) for lane in (0, 1)] == [None, "r1"]
    assert lanes.due(1) == 0
