"""Who answers: a process of this machine that descends from the runner's parent, and nobody else."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pyspark_jms.blocks.shared_memory import memory_path, new_memory
from pyspark_jms.source.locality import Neighbourhood, answer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's files in memory, and /proc")

ANSWER = """
import pickle, sys
from pyspark_jms.source.locality import answer
print(answer(pickle.load(sys.stdin.buffer)))
"""


@pytest.fixture
def neighbours():
    neighbours = Neighbourhood()
    yield neighbours
    neighbours.close()


def told_by_a_child(card):
    ended = subprocess.run(
        [sys.executable, "-c", ANSWER], input=pickle.dumps(card), capture_output=True, timeout=60, check=True
    )
    return ended.stdout.decode().strip() == "True"


def test_a_process_under_the_same_parent_is_a_neighbour(neighbours):
    card = neighbours.card()
    assert not neighbours.look()
    assert told_by_a_child(card)
    assert neighbours.look()
    assert neighbours.here
    assert neighbours.card() is None, "nothing is left to ask"


@pytest.mark.parametrize(
    "changed",
    [
        lambda card: replace(card, machine="another"),
        lambda card: replace(card, runner=replace(card.runner, started=card.runner.started + 1)),
        lambda card: replace(card, driver=replace(card.driver, started=card.driver.started + 1)),
        lambda card: replace(card, driver=replace(card.driver, pid=2**22 + 1)),
        lambda card: replace(card, box="/proc/self/no/such/file"),
        lambda card: replace(card, inode=card.inode + 1),
    ],
)
def test_a_stranger_does_not_answer(neighbours, changed):
    assert not told_by_a_child(changed(neighbours.card()))
    assert not neighbours.look()


def test_a_process_of_this_machine_that_descends_from_others_does_not_answer(neighbours):
    """As an executor that a cluster's daemon has started, on the driver's machine."""
    card = neighbours.card()
    elsewhere = replace(card, driver=card.runner)
    assert told_by_a_child(elsewhere), "a child of the runner descends from it"
    assert not answer(elsewhere), "the runner itself does not"


def test_the_box_stays_what_it_is(neighbours):
    """A late task writes into it; another file under its number would be spoilt."""
    card = neighbours.card()
    answer(card)
    assert neighbours.look()
    assert str(Path(card.box).readlink()).startswith("/memfd:pyspark-jms")


def test_each_box_is_answered_for_itself():
    """A worker lives on, and a later box may have the number of an earlier one."""
    for _ in range(2):
        neighbours = Neighbourhood()
        assert answer(neighbours.card())
        assert neighbours.look()
        neighbours.close()


def test_nobody_is_asked_where_there_is_no_such_memory(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    assert new_memory(1) is None
    assert Neighbourhood().card() is None
    assert not Neighbourhood().look()


def test_memory_is_gone_with_its_last_descriptor():
    descriptor = new_memory(5)
    path = Path(memory_path(descriptor))
    assert path.stat().st_size == 5
    os.close(descriptor)
    assert not path.exists()
