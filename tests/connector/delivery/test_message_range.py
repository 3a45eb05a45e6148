import pytest
from model_broker import numbers, run

from pyspark_jms.delivery.message_range import Batch, MessageRange
from pyspark_jms.delivery.states import MessageState


def test_a_range_knows_its_part_of_the_block():
    range_ = MessageRange(3, run(1, 4, 5, 6), 1, 3)
    assert (len(range_), range_.size, numbers(range_.messages().data)) == (2, 20, [5, 6])
    assert range_.ids == [b"1,5", b"1,6"]
    assert MessageRange(3, run(1, 4, 5, 6), 0, 1).messages().data == run(1, 4).data


def test_an_id_that_is_written_into_the_block_is_the_ranges():
    range_ = MessageRange(3, run(1, 4, 5, 6), 1, 3)
    range_.block.ids[2] = b"2,6"
    assert range_.split(1)[1].ids == [b"2,6"]


@pytest.mark.parametrize(("size", "messages", "fits"), [(9, None, 1), (19, None, 1), (20, None, 2), (99, 1, 1)])
def test_fits_its_own_messages_and_no_others(size, messages, fits):
    assert MessageRange(3, run(1, 4, 5, 6, 7), 1, 3).fit(size=size, messages=messages, at_least_one=True) == fits


def test_what_is_split_stays_in_the_same_state():
    one, two = MessageRange(3, run(1, 4, 5, 6), 1, 3, MessageState.OFFERED).split(1)
    assert (one.first, one.last, two.first, two.last) == (1, 2, 2, 3)
    assert (one.subscription, two.subscription) == (3, 3)
    assert one.state is two.state is MessageState.OFFERED
    assert MessageRange(0, run(1, 4), 0, 1).state is MessageState.RECEIVED


def test_a_batch_is_its_ranges():
    range_ = MessageRange(0, run(1, 4, 5), 0, 2)
    assert Batch(10, 12, (range_,)).ranges == (range_,)


def test_a_message_that_moved_is_another_subscription_s():
    range_ = MessageRange(0, run(1, 4, 5, 6), 1, 3)
    assert (list(range_.of_subscription(0)), list(range_.of_subscription(2))) == ([1, 2], [])
    range_.bind(2, b"9,6", 2)
    assert (list(range_.of_subscription(0)), list(range_.of_subscription(2)), range_.own_ids) == ([1], [2], [b"1,5"])
    range_.bind(2, b"1,7", 0)
    assert (list(range_.of_subscription(0)), list(range_.of_subscription(2)), range_.own_ids) == (
        [1, 2],
        [],
        [b"1,5", b"1,7"],
    )
