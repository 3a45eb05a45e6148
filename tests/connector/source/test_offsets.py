"""Offsets, and the order of Spark's calls with them."""

import json
from dataclasses import asdict

import pytest

from pyspark_jms.delivery.journal.binding import JournalMark
from pyspark_jms.delivery.register.token import Offset
from pyspark_jms.errors import IllegalStateError, OptionConflictError, UnsupportedError
from pyspark_jms.source.offsets import CommitOrder, ReceivedOffset, selector_digest


@pytest.mark.parametrize("count", [0, 1, 2**62])
def test_an_offset_survives_sparks_log(count):
    assert ReceivedOffset.parse(json.loads(json.dumps(ReceivedOffset(count).logged()))) == (count, None, None)


@pytest.mark.parametrize("foreign", [{}, {"offset": 3}, {"seq": None}, {"seq": "x"}, None])
def test_refuses_an_offset_of_another_source(foreign):
    with pytest.raises(IllegalStateError, match="checkpointLocation"):
        ReceivedOffset.parse(foreign)


def test_the_selector_of_a_durable_subscription_goes_with_the_offset():
    digest = selector_digest("colour = 'red'")
    made = ReceivedOffset(3, digest)
    assert json.dumps(made.logged()) == f'{{"seq": 3, "selector": "{digest}"}}'
    assert ReceivedOffset.parse(made.logged()) == made
    assert len({selector_digest(None), digest, selector_digest("colour = 'blue'")}) == 3


def test_the_journal_goes_with_the_offset():
    made = ReceivedOffset(3, journal=JournalMark("abc", 9))
    assert json.dumps(made.logged()) == '{"seq": 3, "journal": "abc", "next": 9}'
    assert ReceivedOffset.parse(made.logged()) == made


@pytest.mark.parametrize("foreign", [{"seq": 1, "journal": "abc"}, {"seq": 1, "journal": "abc", "next": "x"}])
def test_refuses_half_a_mark(foreign):
    with pytest.raises(IllegalStateError, match="checkpointLocation"):
        ReceivedOffset.parse(foreign)


def test_refuses_the_offset_of_a_staged_read():
    kept = Offset(stream="a", address="p", broker="b", batch=3, names=("n",), used=(3,))
    with pytest.raises(OptionConflictError, match=r"deliveryGuarantee=exactly-once over AMQP.* new output folder"):
        ReceivedOffset.parse(asdict(kept))


def begun(at):
    order = CommitOrder("Reason.", "or do that")
    order.require(at - 3)  # a batch that Spark repeats when it starts: nothing was requested yet
    order.requested(at)
    return order


def test_a_commit_before_the_next_batch_is_planned_is_the_usual_order():
    order = begun(10)
    assert order.began == 10
    order.committed(10)
    order.require(10)
    assert not order.synchronous  # offset 10 is from the log: that it was committed tells nothing
    order.requested(15)
    assert order.began == 10
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
