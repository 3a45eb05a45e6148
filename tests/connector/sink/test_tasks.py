"""The names of tasks, whose writes they belong to, and which tasks may repeat a committed one."""

import pytest

from pyspark_jms.delivery.commit_token import LedgerOwner
from pyspark_jms.errors import WriteIdentityError
from pyspark_jms.sink import tasks
from pyspark_jms.sink.tasks import LedgerTask, Sent, log_dropped_rows, may_be_repeated, require_identity


def test_a_task_is_named_by_its_write_and_its_partition():
    owner = LedgerOwner("query", "o")
    this = LedgerTask(owner=owner, write="o/7", partition=3, batch=7, execution="e", may_be_repeated=True)
    assert this.name == "o/7/3"


@pytest.mark.parametrize("surroundings", [(None, None), ("other", "9")])
def test_what_the_id_says_counts(surroundings):
    assert require_identity("query:q/7/dead", *surroundings) == (LedgerOwner("query", "q"), 7)
    assert require_identity("job:j/monday", *surroundings) == (LedgerOwner("job", "j"), 0)


def test_in_the_thread_of_a_batch_spark_says_it():
    assert require_identity("dead-7", "0f-a", "7") == (LedgerOwner("query", "0f-a"), 7)


@pytest.mark.parametrize("surroundings", [(None, None), ("q", None), (None, "7")])
def test_without_an_identity_a_write_is_refused(surroundings):
    with pytest.raises(WriteIdentityError, match=r"\[JMS_WRITE_IDENTITY\] .*dead-7.*Nothing was sent.*write_id\(batch"):
        require_identity("dead-7", *surroundings)


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


def test_the_driver_logs_how_many_rows_a_write_dropped(caplog):
    log_dropped_rows("batch 7", [Sent(5), Sent(2, 1), Sent(0, 3)])
    assert [record.message for record in caplog.records] == ["= batch 7: 4 of 11 rows were dropped (onBadRow=drop)"]
    log_dropped_rows("batch 8", [Sent(5)])
    assert len(caplog.records) == 1
