"""The plan of a task for each content of its ledger, and which entries of an earlier run match no partition."""

import pytest

from pyspark_jms.delivery.commit_token import LedgerEntry
from pyspark_jms.sink.replay import CommitDecision, Plan, admission, contains_rows, plan, unmatched_entries

ME, OTHER = "w/0", "w/1"


def entry(task=ME, execution="now", rows=3, digest="1-a"):
    return LedgerEntry(task=task, batch=0, rows=rows, digest=digest, execution=execution)


@pytest.mark.parametrize(
    ("known", "planned", "when_all_is_sent"),
    [
        ([], Plan.SEND, Plan.SEND),
        ([entry(OTHER)], Plan.SEND, Plan.SEND),
        ([entry(OTHER, "before")], Plan.HOLD, Plan.SEND),
        ([entry(OTHER, None)], Plan.HOLD, Plan.SEND),
        ([entry(OTHER), entry("w/2", "before")], Plan.HOLD, Plan.SEND),
        ([entry(ME)], Plan.COMPARE, Plan.SEND),
        ([entry(ME, "before")], Plan.COMPARE, Plan.SEND),
        ([entry(ME, None)], Plan.COMPARE, Plan.SEND),
        ([entry(ME, "before"), entry(OTHER, "before")], Plan.COMPARE, Plan.SEND),
        ([entry(ME, "before", digest="1-b"), entry(ME, "before")], Plan.COMPARE, Plan.SEND),
        ([entry(ME), entry(OTHER, "before")], Plan.COMPARE, Plan.SEND),
        ([entry("w/finished", None)], Plan.COMPARE_WRITE, Plan.COMPARE_WRITE),
    ],
)
def test_the_plan_of_a_task(known, planned, when_all_is_sent):
    assert plan(known, ME, "now", send_on_mismatch=False) is planned
    assert plan(known[::-1], ME, "now", send_on_mismatch=False) is planned
    assert plan(known, ME, "now", send_on_mismatch=True) is when_all_is_sent


@pytest.mark.parametrize(
    ("known", "partitions", "found"),
    [
        ([], [], []),
        ([], [entry()], []),
        ([entry(ME, "before")], [entry(ME), entry(OTHER)], []),
        ([entry(ME, None), entry(OTHER, "before")], [entry(ME), entry(OTHER)], []),
        # other rows, fewer of them, another name, no partition at all
        ([entry(ME, "before", digest="1-b")], [entry(ME)], [0]),
        ([entry(ME, "before", rows=2)], [entry(ME)], [0]),
        ([entry("w/2", "before")], [entry(ME), entry(OTHER)], [0]),
        ([entry(ME, "before"), entry(OTHER, "before")], [], [0, 1]),
        ([entry(ME, "before"), entry(OTHER, "before", digest="1-b")], [entry(ME), entry(OTHER)], [1]),
        # of two earlier runs, and one that option onReplayMismatch=send sent twice
        ([entry(ME, "first"), entry(OTHER, "second")], [entry(ME), entry(OTHER), entry("w/2")], []),
        ([entry(ME, "first"), entry(ME, "second", digest="1-b")], [entry(ME)], [1]),
        # one that this run sent before a late entry of an earlier one was seen
        ([entry(ME), entry(OTHER, "before")], [entry(ME), entry(OTHER)], []),
    ],
)
def test_entries_that_match_no_partition(known, partitions, found):
    assert unmatched_entries(known, partitions) == tuple(known[index] for index in found)


# --- right before a commit ------------------------------------------------------------------------------

A = CommitDecision


@pytest.mark.parametrize(
    ("known", "for_a_task", "for_the_driver", "when_all_is_sent"),
    [
        ([], A.COMMIT, A.COMMIT, A.COMMIT),
        ([entry("other write/1", "before")], A.COMMIT, A.COMMIT, A.COMMIT),
        ([entry("w/x/1", "before")], A.COMMIT, A.COMMIT, A.COMMIT),
        ([entry(OTHER)], A.COMMIT, A.COMMIT, A.COMMIT),
        ([entry(OTHER, "before")], A.OTHER_EXECUTION, A.COMMIT, A.COMMIT),
        ([entry(OTHER, "before", rows=4)], A.OTHER_EXECUTION, A.MISMATCH, A.COMMIT),
        ([entry("w/2", "before")], A.OTHER_EXECUTION, A.MISMATCH, A.COMMIT),
        ([entry(OTHER), entry("w/2", "before")], A.OTHER_EXECUTION, A.MISMATCH, A.COMMIT),
        ([entry(ME)], A.ALREADY, A.ALREADY, A.ALREADY),
        ([entry(ME, "before")], A.ALREADY, A.ALREADY, A.ALREADY),
        ([entry(ME, "before"), entry("w/2", "before")], A.ALREADY, A.ALREADY, A.ALREADY),
        ([entry(ME, digest="1-b")], A.MISMATCH, A.MISMATCH, A.COMMIT),
        ([entry(ME, "before", rows=4)], A.MISMATCH, A.MISMATCH, A.COMMIT),
        ([entry(ME, digest="1-b"), entry(ME)], A.ALREADY, A.ALREADY, A.ALREADY),
        ([entry("w/finished", None)], A.OTHER_EXECUTION, A.OTHER_EXECUTION, A.OTHER_EXECUTION),
    ],
)
def test_what_is_admitted(known, for_a_task, for_the_driver, when_all_is_sent):
    """The driver has two partitions, both of three rows."""
    mine, whole = entry(ME), [entry(ME), entry(OTHER)]
    assert admission(known, mine, send_on_mismatch=False) is for_a_task
    assert admission(known, mine, whole=whole, send_on_mismatch=False) is for_the_driver
    assert admission(known, mine, send_on_mismatch=True) is when_all_is_sent


def test_rows_are_the_same_by_number_and_digest():
    assert contains_rows([entry(digest="1-b"), entry()], entry())
    assert not contains_rows([entry(digest="1-b"), entry(rows=2)], entry())
    assert not contains_rows([], entry())
