"""The tables of the machines at a register, and the errors with which a query stops."""

import pytest

from pyspark_jms.delivery.register.committer import COMMITTER
from pyspark_jms.delivery.register.outcomes import (
    KEEPER,
    READER,
    BlocksMissing,
    Fenced,
    OtherPlace,
    Phase,
    PoisonLoop,
    SetBack,
    SharedRegister,
    TokenMissing,
)
from pyspark_jms.delivery.register.steps import Lost
from pyspark_jms.errors import DataLossError, OtherBrokerError, PoisonLoopError, SourceFencedError


@pytest.mark.parametrize("table", [READER, KEEPER, COMMITTER])
def test_every_phase_can_be_reached_and_all_but_the_last_can_be_left(table):
    reached, new = set(), {Phase.BEGINNING}
    while new:
        reached |= new
        new = {after for phase in new for afters in table.moves[phase].values() for after in afters} - reached
    assert reached == set(table.moves)
    assert [phase for phase, row in table.moves.items() if not row] == [Phase.ENDED]


@pytest.mark.parametrize("table", [READER, KEEPER])
def test_every_phase_with_a_connection_bears_its_loss(table):
    assert {phase for phase, row in table.moves.items() if Lost not in row} == {Phase.BEGINNING, Phase.ENDED}
    assert {after for row in table.moves.values() for after in row.get(Lost, ())} == {Phase.LOCKING}


@pytest.mark.parametrize(
    ("reason", "error", "names"),
    [
        (Fenced(batch=4, reader=1, later=9), SourceFencedError, ["batch 4", "reader 1", "batch 9"]),
        (TokenMissing(2, "abc"), DataLossError, ["token abc", "reader 2"]),
        (BlocksMissing(2, 7, 3, 5), DataLossError, ["Reader 2", "3 of the 5", "batch 7"]),
        (SetBack(2, 3, 5), DataLossError, ["reader 2", "batch 3", "batch 5"]),
        (PoisonLoop("m", 6), PoisonLoopError, ["message m", "6 times"]),
        (SharedRegister("abc"), SourceFencedError, ["stream abc"]),
        (OtherPlace("address", "a", "b"), DataLossError, ["address a", "b"]),
        (OtherPlace("broker", "a", "b"), OtherBrokerError, ["broker a", "b"]),
    ],
)
def test_a_stop_names_what_was_found(reason, error, names):
    raised = reason.error()
    assert type(raised) is error
    assert all(name in raised.fact for name in names)
    assert raised.remedy
