import pytest

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.source.commit_order import CommitOrder


def begun(at):
    order = CommitOrder("Reason.", "or do that")
    order.require(at - 3)  # a batch that Spark repeats when it starts: nothing was requested yet
    order.requested(at)
    return order


def test_a_commit_before_the_next_batch_is_planned_is_the_usual_order():
    order = begun(10)
    assert order.is_first(10)
    order.committed(10)
    order.require(10)
    assert not order.synchronous  # offset 10 is from the log: that it was committed tells nothing
    order.requested(15)
    assert not order.is_first(15)
    order.committed(15)
    order.require(15)
    assert order.synchronous


@pytest.mark.parametrize("committed", [None, 10])
def test_a_batch_that_is_planned_before_the_commit_is_refused(committed):
    order = begun(10)
    order.require(10)
    order.requested(15)
    if committed:
        order.committed(committed)
    with pytest.raises(UnsupportedError, match=r"asyncProgressTrackingEnabled is on\. Reason\. .* or do that"):
        order.require(15)
    assert not order.synchronous
