"""Who answers: a process of this machine that descends from the runner's parent, and nobody else."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pyspark_jms.blocks.shared_memory import memory_path, new_memory
from pyspark_jms.source.locality import LocalityProbe, answer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's files in memory, and /proc")

ANSWER = """
import pickle, sys
from pyspark_jms.source.locality import answer
print(answer(pickle.load(sys.stdin.buffer)))
"""


@pytest.fixture
def probe():
    probe = LocalityProbe()
    yield probe
    probe.close()


def answered_by_a_child(question):
    ended = subprocess.run(
        [sys.executable, "-c", ANSWER], input=pickle.dumps(question), capture_output=True, timeout=60, check=True
    )
    return ended.stdout.decode().strip() == "True"


def test_a_process_under_the_same_parent_is_a_neighbour(probe):
    question = probe.question()
    assert not probe.tasks_run_here()
    assert answered_by_a_child(question)
    assert probe.tasks_run_here()
    assert probe.here
    assert probe.question() is None, "nothing is left to ask"


@pytest.mark.parametrize(
    "changed",
    [
        lambda question: replace(question, machine="another"),
        lambda question: replace(question, runner=replace(question.runner, started=question.runner.started + 1)),
        lambda question: replace(question, driver=replace(question.driver, started=question.driver.started + 1)),
        lambda question: replace(question, driver=replace(question.driver, pid=2**22 + 1)),
        lambda question: replace(question, path="/proc/self/no/such/file"),
        lambda question: replace(question, inode=question.inode + 1),
    ],
)
def test_a_stranger_does_not_answer(probe, changed):
    assert not answered_by_a_child(changed(probe.question()))
    assert not probe.tasks_run_here()


def test_a_process_of_this_machine_that_descends_from_others_does_not_answer(probe):
    """As an executor that a cluster's daemon has started, on the driver's machine."""
    question = probe.question()
    elsewhere = replace(question, driver=question.runner)
    assert answered_by_a_child(elsewhere), "a child of the runner descends from it"
    assert not answer(elsewhere), "the runner itself does not"


def test_the_box_stays_what_it_is(probe):
    """A late task writes into it; another file under its number would be spoilt."""
    question = probe.question()
    answer(question)
    assert probe.tasks_run_here()
    assert str(Path(question.path).readlink()).startswith("/memfd:pyspark-jms")


def test_each_box_is_answered_for_itself():
    """A worker lives on, and a later box may have the number of an earlier one."""
    for _ in range(2):
        probe = LocalityProbe()
        assert answer(probe.question())
        assert probe.tasks_run_here()
        probe.close()


def test_nobody_is_asked_where_there_is_no_such_memory(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    assert new_memory(1) is None
    assert LocalityProbe().question() is None
    assert not LocalityProbe().tasks_run_here()


def test_memory_is_gone_with_its_last_descriptor():
    descriptor = new_memory(5)
    path = Path(memory_path(descriptor))
    assert path.stat().st_size == 5
    os.close(descriptor)
    assert not path.exists()
