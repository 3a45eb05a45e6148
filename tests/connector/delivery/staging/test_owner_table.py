"""The table of the owner, its diagram in the page, and the errors with which a query stops."""

from pathlib import Path

import pytest

from pyspark_jms.delivery.staging.offset import Offset
from pyspark_jms.delivery.staging.owner_table import OWNER, Fenced, Loss, Phase, Plan, PoisonLoop, Shared
from pyspark_jms.delivery.staging.steps import Lost
from pyspark_jms.errors import DataLossError, PoisonLoopError, SourceFencedError

PAGE = Path(__file__).parents[4] / "docs" / "internals-exactly-once.md"


def test_every_phase_can_be_reached_and_all_but_the_last_can_be_left():
    reached, new = set(), {Phase.APART}
    while new:
        reached |= new
        new = {after for phase in new for afters in OWNER.moves[phase].values() for after in afters} - reached
    assert reached == set(Phase)
    assert [phase for phase, row in OWNER.moves.items() if not row] == [Phase.STOPPED]


def test_every_phase_with_a_connection_bears_its_loss():
    assert {phase for phase, row in OWNER.moves.items() if Lost not in row} == {Phase.STOPPED}
    again = {after for row in OWNER.moves.values() for after in row.get(Lost, ())}
    assert again == {Phase.LOCKING, Phase.APART}, "R9: lock again"


def test_the_page_has_the_diagram():
    assert f"```mermaid\n{OWNER.mermaid()}\n```" in PAGE.read_text()


@pytest.mark.parametrize(
    ("reason", "error", "names"),
    [
        (Fenced(floor=9, start=4), SourceFencedError, ["9", "4"]),
        (Loss(((4, 6), (7, 8)), 2, 9), DataLossError, ["4 to 5, 7 to 7", "2 to 8"]),
        (PoisonLoop(5), PoisonLoopError, ["5 times"]),
        (Shared("abc"), SourceFencedError, ["stream abc"]),
    ],
)
def test_a_stop_names_its_numbers(reason, error, names):
    raised = reason.error()
    assert type(raised) is error
    assert all(name in raised.fact for name in names)
    assert raised.remedy


def test_what_is_finished_is_what_the_commit_log_certainly_has():
    assert Plan(Offset(seq=7)).finished == 7
    assert Plan(Offset(seq=7), certain=5).finished == 5
    assert Plan(Offset(seq=7), certain=9).finished == 7
