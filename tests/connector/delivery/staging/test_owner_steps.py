"""The lock and the loss of a connection: what every rule of the owner begins with."""

import pytest

from pyspark_jms.delivery.staging.offset import Offset
from pyspark_jms.delivery.staging.owner import SourceOwner
from pyspark_jms.delivery.staging.owner_steps import OwnerState
from pyspark_jms.delivery.staging.owner_table import Phase, Plan, Read, Wait
from pyspark_jms.delivery.staging.steps import Drop, Dropped, FindTokens, Lock, Locked, LockHeld, Lost, Patience

FIRST = Offset(id="s", token="t", seq=3)
SECOND = Offset(id="s", token="u", seq=5)


def owner(*names):
    return SourceOwner(iter(names).__next__)


def test_a_new_stream_has_a_name_of_its_own_and_nobody_to_wait_for():
    machine = owner("a")
    assert machine.next(Plan(Offset())) == Lock("a")
    assert machine.next(LockHeld()) == Lock("a")
    assert machine.next(Locked()) == FindTokens(Patience.ONCE)


def test_a_plan_waits_for_the_token_of_its_start_and_a_batch_for_that_of_its_end():
    planning, reading = owner(), owner()
    assert planning.next(Plan(FIRST)) == Lock("s")
    assert planning.next(Locked()) == FindTokens(Patience.FULL, "t")
    assert reading.next(Read(FIRST, SECOND)) == Lock("s")
    assert reading.next(Locked()) == FindTokens(Patience.FULL, "u")


def test_a_connection_that_is_lost_before_the_lock_is_opened_again_for_the_same_stream():
    machine = owner("a", "b")
    machine.next(Plan(Offset()))
    assert machine.next(Lost()) == Lock("a")


def test_a_new_stream_whose_token_is_in_doubt_is_given_up():
    machine = owner("a", "b")
    machine.next(Plan(Offset()))
    machine.next(Locked())
    assert machine.next(Lost()) == Lock("b")


def test_a_lost_connection_without_a_request_is_opened_with_the_next_one():
    machine = owner()
    assert machine.next(Lost()) == Wait()
    assert machine.state == OwnerState()


@pytest.mark.parametrize("event", [Dropped(), Lost()])
def test_after_a_drop_the_lock_is_taken_again(event):
    machine = owner()
    machine.state = OwnerState(phase=Phase.OWNING, id="other")
    assert machine.next(Plan(FIRST)) == Drop()
    assert machine.next(event) == Lock("s")
