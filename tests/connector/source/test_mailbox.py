"""What tasks post to the runner."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pyspark_jms.blocks.shared_memory import memory_path, new_memory
from pyspark_jms.source.mailbox import DropReports, LocalityProbe, Mailbox, answer, post, report_dropped

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's files in memory, and /proc")


@pytest.fixture
def mailbox():
    mailbox = Mailbox()
    yield mailbox
    mailbox.close()


def test_records_are_taken_once_and_in_order(mailbox):
    address = mailbox.address()
    assert mailbox.take() == b""
    assert post(address, b"one")
    assert post(address, b"two")
    assert mailbox.take() == b"onetwo"
    assert post(address, b"three")
    assert mailbox.take() == b"three"


def test_nothing_is_posted_to_another_file_of_the_same_number(mailbox):
    assert not post(replace(mailbox.address(), inode=1), b"one")
    assert not post(replace(mailbox.address(), path="/proc/self/no/such/file"), b"one")
    assert mailbox.take() == b""


def test_there_is_no_address_where_there_is_no_such_memory(mailbox, monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    assert mailbox.address() is None
    assert mailbox.take() == b""


ANSWER = """
import pickle, sys
from pyspark_jms.source.mailbox import answer
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


@pytest.fixture
def reports():
    reports = DropReports()
    yield reports
    reports.close()


def test_reports_are_added_up_and_logged_once(reports, caplog):
    assert reports.total() == 0
    report_dropped(reports.address(), 0, 3)
    report_dropped(reports.address(), 10, 4)
    assert reports.total() == 7
    report_dropped(reports.address(), 20, 1)
    assert reports.total() == 8
    assert caplog.text.count("do not match the selector") == 1


def test_a_task_that_runs_twice_counts_once(reports):
    report_dropped(reports.address(), 0, 3)
    report_dropped(reports.address(), 0, 3)
    assert reports.total() == 3
    reports.release(10)
    report_dropped(reports.address(), 0, 3)  # a late attempt
    report_dropped(reports.address(), 10, 2)
    assert reports.total() == 5


def test_a_task_that_cannot_report_logs(caplog):
    report_dropped(None, 40, 3)
    assert "3 messages that do not match the selector are dropped (from sequence 40)" in caplog.text
