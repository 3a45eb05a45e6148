"""The names of tasks and of their ledgers, and which tasks may repeat a committed one."""

from pyspark_jms.sink import tasks
from pyspark_jms.sink.tasks import LedgerTask, ledger_queue, may_be_repeated


def test_a_task_is_named_by_its_write_and_its_partition():
    this = LedgerTask(queue=ledger_queue("o"), write="o/7", partition=3, batch=7, execution="e", may_be_repeated=True)
    assert this.name == "o/7/3"
    assert this.queue == "pyspark-jms.commits.o"


def test_only_the_first_batch_of_a_run_and_later_attempts_may_be_repetitions():
    run, other = "run-a", "run-b"
    seen = [(run, 7, 0), (run, 7, 0), (run, 8, 0), (run, 8, 1), (other, 8, 0), (run, 9, 0), (other, 9, 0)]
    assert [may_be_repeated(*task) for task in seen] == [True, True, False, True, True, False, False]


def test_after_many_runs_the_first_batches_are_learnt_again(monkeypatch):
    """A task may read the ledger once too often, and never too seldom."""
    monkeypatch.setattr(tasks, "_first_batches", {})
    assert may_be_repeated("run", 1, 0)
    assert not may_be_repeated("run", 2, 0)
    for number in range(200):
        may_be_repeated(f"other {number}", 1, 0)
    assert may_be_repeated("run", 3, 0)
