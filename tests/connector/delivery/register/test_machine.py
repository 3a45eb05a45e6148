from dataclasses import dataclass
from enum import Enum

import pytest

from pyspark_jms.delivery.register.machine import Machine
from pyspark_jms.delivery.state_table import StateTable
from pyspark_jms.errors import IllegalStateError


class Phase(Enum):
    APART = "apart"
    LOCKING = "locking"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Position:
    phase: Phase


@dataclass(frozen=True)
class Go:
    to: Phase


class Walker(Machine):
    table = StateTable("a walker", {Phase.APART: {Go: (Phase.LOCKING,)}, Phase.LOCKING: {}})

    def _handlers(self):
        return {Go: self._go}

    def _go(self, go):
        self.state = Position(go.to)
        return f"went to {go.to.value}"


def test_an_event_of_the_table_gives_a_command():
    walker = Walker(Position(Phase.APART))
    assert walker.next(Go(Phase.LOCKING)) == "went to locking"
    assert walker.state == Position(Phase.LOCKING)


def test_an_event_that_the_phase_does_not_have_is_refused_before_anything_changes():
    walker = Walker(Position(Phase.LOCKING))
    with pytest.raises(IllegalStateError, match="Event Go for a walker that is 'locking'"):
        walker.next(Go(Phase.APART))
    assert walker.state == Position(Phase.LOCKING)


def test_a_move_that_the_table_does_not_have_is_a_fault():
    with pytest.raises(IllegalStateError, match="Event Go led a walker from 'apart' to 'stopped'"):
        Walker(Position(Phase.APART)).next(Go(Phase.STOPPED))
