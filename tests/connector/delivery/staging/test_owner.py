"""The rules of the owner: in a model of a broker and Spark, whose worlds are explored to their end, and one by one.

``docs/internals-exactly-once.md`` has the worlds with their numbers of states, and the rules with what is found without
them; the tests compare the page with the model.
"""

import re
from functools import cache
from pathlib import Path

import pytest
from exploring import explore, walk
from staged_mutants import NeverRenews, TakesBlocksFirst, TriesOn
from staged_world import BROKER_LIMIT, Budget, Driver, StagedWorld, put
from staged_worlds import LARGER, SOURCE, SOURCE_MUTANTS

from pyspark_jms.delivery.staging.offset import Offset
from pyspark_jms.delivery.staging.owner import MAX_SOURCE_DELIVERIES, SourceOwner
from pyspark_jms.delivery.staging.owner_steps import OwnerState
from pyspark_jms.delivery.staging.owner_table import (
    OWNER,
    Deliver,
    Fenced,
    Loss,
    Phase,
    Plan,
    Planned,
    PoisonLoop,
    Read,
    Shared,
    Stop,
    Wait,
)
from pyspark_jms.delivery.staging.steps import (
    BlocksSeen,
    BrowseBlocks,
    Commit,
    Committed,
    CreateToken,
    Drop,
    FindTokens,
    FinishedTaken,
    Locked,
    Lost,
    Patience,
    Receive,
    Received,
    Renewed,
    RenewToken,
    TakeTokens,
    TokensSeen,
    TokensTaken,
)
from pyspark_jms.delivery.staging.tokens import MAX_TOKEN_DELIVERIES, Sighting, SourceToken

PAGE = Path(__file__).parents[4] / "docs" / "internals-exactly-once.md"
WALKS, PARTS = 70_000, 14


def explored(world):
    return explore(world.first, world.moves, world.fault, canonical=world.canonical)


@cache
def explored_world(name):
    """What was found in a world of the table, and the moves of the machine that were taken in it."""
    world = SOURCE[name]()
    return explored(world), frozenset(world.arrows)


def in_page(name):
    """The number of states that the page has for a world."""
    row = re.search(rf"^\| {re.escape(name)} \| ([\d,]+) \|", PAGE.read_text(), re.MULTILINE)
    return row and int(row[1].replace(",", ""))


# --- worlds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOURCE)
def test_nothing_is_lost_twice_different_stranded_or_falsely_reported(name):
    found, _ = explored_world(name)
    assert found.complete
    assert found.violations == {}
    assert found.states == in_page(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGER)
def test_nor_in_larger_worlds(name):
    found = explored(LARGER[name]())
    assert found.complete
    assert found.violations == {}
    assert found.states == in_page(name)


@pytest.mark.parametrize("rule", SOURCE_MUTANTS)
def test_without_a_rule_something_is(rule):
    name, how = SOURCE_MUTANTS[rule]
    found = explored({**SOURCE, **LARGER}[name](**how))
    assert found.violations
    what, path = next(iter(found.violations.items()))
    assert f"| {rule} | {what}, {len(path)} moves |" in PAGE.read_text()


@pytest.mark.parametrize("broken", [{"halves": True}, {"fifo": False}])
def test_the_order_of_a_source_is_that_of_a_broker_that_keeps_it(broken):
    """The lock is free when the messages of a connection are back, and the oldest message is delivered first."""
    found = explored(SOURCE["two sources in order: four messages, a death"](**broken))
    assert list(found.violations) == ["A message is overtaken"]


@pytest.mark.slow
def test_the_order_of_token_and_blocks_is_no_rule_because_browsing_is_patient():
    assert explored(LARGER["two messages, two runs, a closed connection"](owner=TakesBlocksFirst)).violations == {}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(PARTS))
def test_random_walks(part):
    """Larger worlds: many deaths, every fault, redelivery-delays, a durable subscription, two sources."""
    world = StagedWorld(
        messages=5,
        queues=1 + part % 2,
        drivers=3,
        budget=Budget(deaths=8, closed=5, restarts=2, lost_answers=3, rivals=1, lost_tokens=part % 2),
        delays=part % 3 == 0,
        durable_source=part % 5 == 0,
        lags=part % 7 == 0,
    )
    for seed in range(part, WALKS, PARTS):
        what, path = walk(world.first, world.moves, world.fault, seed)
        assert what is None, f"seed {seed}: {what}: {' | '.join(path)}"


# --- deaths in a row ----------------------------------------------------------------------------------

AFTER_A_RESTART = ["Lock", "FindTokens", "BrowseBlocks"]
HOLDING_MESSAGES = ["TakeTokens", "TakeFinished", "Commit"]
PLACES = [*AFTER_A_RESTART, *HOLDING_MESSAGES, "log", "sink", "commit"]


def die_again_and_again(world, dies, *, times=25):
    """The only driver dies each time that ``dies(world, place)``. Return how often, and how the world ends."""
    now, deaths = world.first, 0
    for _ in range(1500):
        driver = now.drivers[0]
        place = type(world.situations[driver.situation][1]).__name__ if driver.stage == "run" else driver.stage
        if deaths < times and dies(now, place):
            deaths += 1
            now = put(world.free(now, driver.connection), 0, Driver())
        moves = list(world.driver_moves(now, 0, now.drivers[0]))
        if not moves or now.violation:
            break
        now = moves[-1][1]
    return deaths, now


def at(wanted):
    """After the first batch. Where a run without deaths never comes, the first death is at the offset log."""
    waits = [wanted in AFTER_A_RESTART]

    def dies(now, place):
        if not now.logs[0].committed:
            return False
        if waits[0] and place == "log":
            waits[0] = False
            return True
        return place == wanted

    return dies


@pytest.mark.parametrize("place", PLACES)
def test_25_deaths_in_a_row_leave_nothing_in_a_dead_letter_queue(place):
    """Who holds source messages at each death stops in time: the broker counts these deliveries, and no client can
    prevent it.
    """
    deaths, end = die_again_and_again(StagedWorld(messages=3, counts=True, may_stop=(PoisonLoop,)), at(place))
    assert end.violation is None
    if place in HOLDING_MESSAGES:
        assert deaths == MAX_SOURCE_DELIVERIES
        assert end.drivers[0].stage == "stopped"
        assert max(message.deliveries for message in end.source) == MAX_SOURCE_DELIVERIES
    else:
        assert deaths == 25
        assert sorted(m for batch in end.logs[0].sink for part in batch for m in part) == [1, 2, 3]


def test_a_message_that_is_tried_on_becomes_a_dead_letter():
    _, end = die_again_and_again(StagedWorld(messages=3, counts=True, owner=TriesOn), at("TakeTokens"))
    assert end.violation == "A dead letter"


@pytest.mark.parametrize(
    ("owner", "violation", "times"), [(SourceOwner, None, 25), (NeverRenews, "A dead letter", BROKER_LIMIT)]
)
def test_a_worn_token_is_renewed(owner, violation, times):
    """When the source is empty, the transaction that deletes the last block holds the token only."""
    world = StagedWorld(messages=1, counts=True, owner=owner)
    deaths, end = die_again_and_again(world, lambda now, place: place == "Commit" and not now.source)
    assert (end.violation, deaths) == (violation, times)


# --- rule by rule -------------------------------------------------------------------------------------

TOKEN = SourceToken(id="s", name="t", next=5, floor=3)
START = Offset(id="s", token="t", seq=5)


def owner(*names, **how):
    return SourceOwner(iter(names).__next__, **how)


def owning(token=TOKEN, memory=(0, 0), **how):
    machine = owner("new", **how)
    machine.state = OwnerState(phase=Phase.OWNING, id="s", token=token, memory=memory)
    return machine


def looking(request, *, deliveries=0, token=TOKEN, **how):
    """The command after the token was seen."""
    machine = owner("new", **how)
    machine.next(request)
    machine.next(Locked())
    return machine, machine.next(TokensSeen((Sighting(token, deliveries),) if token else ()))


def test_r2_spark_asks_again_before_its_log_has_the_stream():
    machine = owner("a")
    for event in (Plan(Offset()), Locked(), TokensSeen(())):
        machine.next(event)
    machine.state = OwnerState(phase=Phase.OWNING, id="a", token=SourceToken(id="a", name="a", next=0, floor=0))
    assert machine.next(Plan(Offset())) == Planned(Offset(id="a", token="a"))


def test_r2_a_stream_that_was_used_is_not_given_to_a_new_query():
    assert owning().next(Plan(Offset())) == Drop()


def test_r3_a_token_that_spark_does_not_name_is_not_used():
    machine, command = looking(Plan(Offset(id="s", token="u", seq=3)))
    assert command == BrowseBlocks("s", 3, None)
    assert machine.next(BlocksSeen(((3, 5),))) == CreateToken(SourceToken(id="s", name="new", next=5, floor=3))


def test_r3_a_plan_for_another_token_reads_the_tokens_again():
    assert owning().next(Plan(Offset(id="s", token="u", seq=5))) == FindTokens(Patience.FULL, "u")


@pytest.mark.parametrize("taken", [(), (SourceToken(id="s", name="t", next=6, floor=3),)])
def test_r4_another_token_than_the_one_that_was_read_is_a_reason_to_lock_again(taken):
    machine = owning()
    assert machine.next(Plan(START)) == Receive(5, 5)
    assert machine.next(Received(2)) == TakeTokens()
    assert machine.next(TokensTaken(taken)) == Drop()


def test_r7_what_is_in_memory_is_not_read_again_and_not_asked_for_without_a_lock():
    machine = owner()
    machine.state = OwnerState(memory=(3, 9))
    assert machine.next(Read(Offset(id="s", token="t", seq=4), Offset(id="s", token="t", seq=6, cuts=(5,)))) == Deliver(
        4, 6, (5,)
    )
    assert machine.state.phase is Phase.APART


def test_r7_what_is_not_in_memory_is_browsed():
    batch = Read(Offset(id="s", token="t", seq=3), START)
    assert owning().next(batch) == BrowseBlocks("s", 3, 5)
    other = Read(Offset(id="z", token="t", seq=3), Offset(id="z", token="t", seq=5))
    assert owning().next(other) == Drop()


def test_r7_a_plan_is_repeated_with_what_is_staged():
    start = Offset(id="s", token="t", seq=3)
    machine = owning()
    assert machine.next(Plan(start)) == BrowseBlocks("s", 3, 5)
    assert machine.next(BlocksSeen(((3, 4), (4, 5)))) == Planned(Offset(id="s", token="t", seq=5, cuts=(4,)))


def test_r8_a_start_below_the_floor_is_fenced():
    stale = Offset(id="s", token="t", seq=2)
    assert owning().next(Plan(stale)) == Stop(Fenced(3, 2))
    assert looking(Plan(stale))[1] == Stop(Fenced(3, 2))


@pytest.mark.parametrize("fails", [True, False])
def test_missing_blocks_stop_the_query_with_their_numbers_or_are_left_out(fails):
    machine, command = looking(Read(Offset(id="s", token="t", seq=3), START), fail_on_data_loss=fails)
    assert command == BrowseBlocks("s", 3, 5)
    machine.next(BlocksSeen(((4, 5),)))
    answer = machine.next(TokensSeen((Sighting(TOKEN),)))
    assert answer == (Stop(Loss(((3, 4),), 3, 5)) if fails else Deliver(3, 5, (), ((3, 4),)))


def test_r12_a_token_behind_spark_is_a_loss():
    ahead = Plan(Offset(id="s", token="t", seq=8))
    assert looking(ahead)[1] == Stop(Loss(((5, 8),), 5, 8))
    machine, command = looking(ahead, fail_on_data_loss=False)
    assert command == Receive(8, 8)
    machine.next(Received(1))
    machine.next(TokensTaken((TOKEN,)))
    assert machine.next(FinishedTaken()) == Commit(SourceToken(id="s", name="t", next=9, floor=8), 8)


def test_a_message_near_its_limit_is_given_back():
    machine = owning()
    machine.next(Plan(START))
    assert machine.next(Received(2, MAX_SOURCE_DELIVERIES)) == Stop(PoisonLoop(MAX_SOURCE_DELIVERIES))


@pytest.mark.parametrize(
    ("request_", "after"),
    [(Plan(START), Receive(5, 5)), (Read(Offset(id="s", token="t", seq=3), START), BrowseBlocks("s", 3, 5))],
)
def test_a_worn_token_is_renewed_before_anything_else(request_, after):
    machine, command = looking(request_, deliveries=MAX_TOKEN_DELIVERIES)
    assert command == RenewToken(TOKEN)
    assert machine.next(Renewed()) == after


def test_a_queue_of_another_query_is_refused():
    foreign = SourceToken(id="z", name="z", next=1, floor=0)
    machine = owner("s")
    machine.next(Plan(Offset()))
    machine.next(Locked())
    assert machine.next(TokensSeen((Sighting(foreign),))) == Stop(Shared("z"))


# --- the table ----------------------------------------------------------------------------------------


def test_the_worlds_take_every_move_of_the_table_that_can_be_taken_there():
    """And no other: a machine refuses what its table does not have."""
    taken = set().union(*(explored_world(name)[1] for name in SOURCE))
    outside = set(OWNER.arrows()) - taken
    assert taken <= set(OWNER.arrows())
    assert {(before, event) for before, event, _ in outside} <= {
        ("apart", "Lost"),
        ("locking", "LockHeld"),
        ("locking", "Lost"),
        ("looking", "TokensSeen"),  # a worn token
        ("renewing", "Renewed"),
        ("renewing", "Lost"),
        ("owning", "Plan"),  # the same start again, another stream, a start below the floor
        ("owning", "Read"),
        ("receiving", "Received"),  # a message near its limit
        ("rechecking", "Lost"),
    }


def test_a_wait_is_answered_only_without_a_request():
    machine = owner()
    assert machine.next(Lost()) == Wait()
    machine.next(Plan(START))
    assert machine.next(Lost()) != Wait()


def test_a_finished_batch_is_deleted_with_the_next_move():
    machine = owning(memory=(3, 5))
    machine.next(Plan(START))
    machine.next(Received(2))
    machine.next(TokensTaken((TOKEN,)))
    assert machine.next(FinishedTaken()) == Commit(SourceToken(id="s", name="t", next=7, floor=5), 5)
    assert machine.next(Committed((6,))) == Planned(Offset(id="s", token="t", seq=7, cuts=(6,)))
    assert machine.state.memory == (5, 7)
