"""The commits of a query over AMQP, in a model of a broker and Spark whose small worlds are explored to their end.

The steps are those of ``delivery.register.committer``, and what is admitted is asked of ``sink.replay``.
``tests/models.md`` has the worlds with their numbers of states, and the
rules with what is found without them; the tests compare the page with the model.
"""

import re
from functools import cache
from pathlib import Path

import pytest
from exploring import explore, walk
from sink_mutants import NeverRenews
from sink_world import BROKER_LIMIT, Budget, SinkWorld
from sink_worlds import SINK, SINK_MUTANTS
from state_diagrams import arrows, mermaid

from pyspark_jms.delivery.register.committer import COMMITTER, Committer
from pyspark_jms.delivery.register.steps import Replace

PAGE = Path(__file__).parents[1] / "models.md"
WALKS, PARTS = 30_000, 6


@cache
def explored_world(name):
    """What was found in a world of the table, and the moves of the machine that were taken in it."""
    world = SINK[name]()
    return explore(world), frozenset(world.arrows)


@pytest.mark.parametrize("name", SINK)
def test_no_row_is_lost_or_written_twice_and_a_fresh_driver_finishes(name):
    found, _ = explored_world(name)
    assert found.violation is None
    assert re.search(rf"^\| {re.escape(name)} \| {found.states:,} \|", PAGE.read_text(), re.MULTILINE)


@pytest.mark.deep
def test_the_worlds_take_every_move_of_the_table():
    taken = frozenset().union(*(explored_world(name)[1] for name in SINK))
    never = {("making", "Lost", "ended")}  # the broker refuses a second connection, twice
    assert set(arrows(COMMITTER)) - taken == never
    assert taken <= set(arrows(COMMITTER))


def test_the_page_has_the_diagram():
    assert f"```mermaid\n{mermaid(COMMITTER)}\n```" in PAGE.read_text()


@pytest.mark.parametrize("rule", SINK_MUTANTS)
def test_without_a_rule_one_is(rule):
    name, how = SINK_MUTANTS[rule]
    found = explore(SINK[name](**how))
    assert f"| {rule} | {found.violation}, {len(found.path)} moves |" in PAGE.read_text()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(PARTS))
def test_random_walks(part):
    world = SinkWorld(
        layouts=(("1", "2", "3"), ("1", "23")) if part % 2 else (("1", "2", "3"),),
        batches=3,
        budget=Budget(driver_deaths=3, task_deaths=6, closed=4, restarts=2, lost_answers=3, speculations=4),
        delays=part % 3 == 0,
        looks=part % 2 == 0,
        may_refuse=("mismatch", "fenced") if part % 2 else ("fenced",),
    )
    for seed in range(part, WALKS, PARTS):
        what, path = walk(world, seed)
        assert what is None, f"seed {seed}: {what}: {' | '.join(path)}"


@pytest.mark.parametrize(
    ("machine", "violation", "times"), [(Committer, None, 25), (NeverRenews, "A dead letter", BROKER_LIMIT)]
)
def test_25_deaths_of_a_task_that_holds_the_token_leave_no_dead_letter(machine, violation, times):
    world = SinkWorld(layouts=(("1",),), counts=True, machine=machine)
    now, deaths = world.first, 0
    for _ in range(1500):
        task = now.tasks[0] if now.tasks else None
        committing = task and isinstance(world.situations[task.situation][1], Replace)
        if committing and deaths < 25 and now.written:
            deaths += 1
            now = world.free(now, task.connection)._replace(tasks=())
        moves = list(world.task_moves(now, 0, now.tasks[0]) if now.tasks else world.driver_moves(now))
        if not moves or now.violation:
            break
        now = moves[0][1]
    assert (now.violation, deaths) == (violation, times)
    assert violation or now.committed == 2
