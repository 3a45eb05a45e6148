"""An entry is a value: equal if all its fields are, and carried by Spark from a task to the driver."""

import json
import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.delivery.commit_token import (
    KEPT_RUNS,
    LEDGER_PREFIX,
    NO_BATCH,
    CommitToken,
    LedgerEntry,
    LedgerOwner,
    finished_entry,
    identity_of,
    is_finished,
    merged,
    write_of,
)

ENTRY = LedgerEntry(task="q/7/3", batch=7, rows=12, digest="1-abc", execution="e-1")


def test_an_entry_is_a_value_that_can_be_carried():
    assert pickle.loads(pickle.dumps(ENTRY)) == ENTRY
    assert len({ENTRY, replace(ENTRY), replace(ENTRY, rows=13)}) == 2


OWNER = "query:q"


def entry(task="q/7/0", batch=7, rows=3, digest="a1-00", execution="e"):
    return LedgerEntry(task=task, batch=batch, rows=rows, digest=digest, execution=execution)


def test_a_new_token_is_of_no_batch():
    assert (CommitToken(owner=OWNER).batch, CommitToken(owner=OWNER).entries) == (NO_BATCH, ())


def test_entries_of_a_batch_add_up_and_the_next_batch_begins_anew():
    token = CommitToken(owner=OWNER).with_entry(entry())
    token = token.with_entry(entry("q/7/1"))
    assert (token.batch, [each.task for each in token.entries]) == (7, ["q/7/0", "q/7/1"])
    token = token.with_entry(entry("q/8/0", batch=8))
    assert (token.batch, [each.task for each in token.entries]) == (8, ["q/8/0"])


def runs_of(token):
    return [*dict.fromkeys(write_of(each) for each in token.entries)]


def test_the_ledger_of_a_job_keeps_the_newest_runs_whole():
    token = CommitToken(owner="job:j")
    for run in ("a", "b", "c"):
        for partition in (0, 1):
            token = token.with_entry(entry(f"{run}/{partition}", 0), kept_runs=2)
        token = token.with_finished(run) if run == "a" else token
    assert [each.task for each in token.entries] == ["b/0", "b/1", "c/0", "c/1"]


def test_a_run_that_is_finished_late_is_new():
    """Its last commit counts."""
    token = CommitToken(owner="job:j")
    for task in ("a/0", "b/0", "a/1", "c/0"):
        token = token.with_entry(entry(task, 0), kept_runs=2)
    assert runs_of(token) == ["a", "c"]


@given(st.lists(st.sampled_from("abcde"), max_size=20))
def test_the_text_keeps_the_order_of_runs(runs):
    token = CommitToken(owner="job:j")
    for number, run in enumerate(runs):
        token = token.with_entry(entry(f"{run}/{number}", 0), kept_runs=3)
    read = CommitToken.parse(token.body())
    last = [*dict.fromkeys(reversed(runs))][:3]
    assert set(read.entries) == set(token.entries)
    assert set(runs_of(read)) == set(last)
    for run in "abcde":
        changed = [each.with_entry(entry(f"{run}/x", 0), kept_runs=2) for each in (token, read)]
        assert {each.task for each in changed[0].entries} == {each.task for each in changed[1].entries}


ENTRIES = st.builds(
    entry,
    task=st.builds("{}/{}".format, st.text(max_size=9), st.integers(0, 10**6)),
    batch=st.just(7),
    rows=st.integers(0, 2**62),
    digest=st.text(max_size=40),
    execution=st.sampled_from([None, "e", "f"]),
)


@given(st.lists(ENTRIES, max_size=8, unique_by=lambda each: each.task))
def test_a_token_is_what_its_text_says(entries):
    token = CommitToken(owner=OWNER, batch=7, entries=tuple(entries))
    read = CommitToken.parse(token.body())
    assert (read.owner, read.batch, set(read.entries)) == (OWNER, 7, set(entries))


def test_a_short_text_is_plain_and_names_what_tasks_have_in_common_once():
    body = CommitToken(owner=OWNER, batch=7, entries=(entry(), entry("q/7/1"))).body()
    assert json.loads(body) == {
        "version": 1,
        "owner": OWNER,
        "batch": 7,
        "writes": [["q/7", "e", [["0", 3, "a1-00"], ["1", 3, "a1-00"]]]],
    }


def test_thousands_of_partitions_stay_small():
    """Above 100 kB Artemis keeps a message in a file of its own."""
    digests = (f"a1-{number * 2**97 % (2**127 - 1):032x}" for number in range(1, 3_001))
    entries = tuple(entry(f"q/7/{n}", rows=1_000, digest=digest) for n, digest in enumerate(digests))
    token = CommitToken(owner=OWNER, batch=7, entries=entries)
    assert len(token.body()) < 90_000
    assert set(CommitToken.parse(token.body()).entries) == set(entries)


def test_the_runs_of_a_job_stay_small():
    token = CommitToken(owner="job:nightly-export")
    for number in range(KEPT_RUNS + 5):
        run = f"job:nightly-export/2026-11-26T{number:04d}"
        token = token.with_entry(entry(f"{run}/0", 0, rows=number), kept_runs=KEPT_RUNS).with_finished(run)
    assert (len(token.entries), len(token.body()) < 90_000) == (KEPT_RUNS, True)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"x",
        b"{",
        b'{"version":2,"owner":"query:q","batch":1,"writes":[]}',
        b'{"version":1,"batch":1,"writes":[]}',
        b'{"version":1,"owner":"query:q","batch":"1","writes":[]}',
        b'{"version":1,"owner":"query:q","batch":1,"writes":[1]}',
        b'{"version":1,"owner":"query:q","batch":1,"writes":[["w","e",[["0","1","d"]]]]}',
    ],
)
def test_other_bytes_are_refused(body):
    with pytest.raises(ValueError, match=r"commit ledger|JSON|Expecting"):
        CommitToken.parse(body)


def test_several_tokens_say_what_the_latest_batch_has():
    old = CommitToken(owner=OWNER, batch=6, entries=(entry("q/6/0", 6),))
    one, two = (CommitToken(owner=OWNER, batch=7, entries=(entry(f"q/7/{n}"), entry("q/7/2"))) for n in (0, 1))
    found = merged([old, one, two])
    assert (found.batch, sorted(each.task for each in found.entries)) == (7, ["q/7/0", "q/7/1", "q/7/2"])


# --- finished writes -------------------------------------------------------------------------------------


def test_a_finished_write_has_one_entry_for_all_of_its_tasks():
    tasks = (entry("w/0", 0), entry("w/1", 0, rows=4))
    token = CommitToken(owner=OWNER, batch=0, entries=(*tasks, entry("w/x/0", 0))).with_finished("w")
    (other, finished) = token.entries
    assert (other.task, write_of(finished), finished.rows) == ("w/x/0", "w", 7)
    assert [is_finished(each) for each in token.entries] == [False, True]
    assert token.with_finished("w") == token.with_finished("unknown") == token


def test_the_entry_of_a_finished_write_depends_on_every_partition_and_on_no_order():
    tasks = [entry("w/0", 0), entry("w/1", 0, rows=4)]
    same = finished_entry("w", tasks)
    assert finished_entry("w", tasks[::-1]) == same
    others = (
        tasks[:1],
        [tasks[0], entry("w/2", 0, rows=4)],
        [tasks[0], entry("w/1", 0, rows=5)],
        [tasks[0], entry("w/1", 0, rows=4, digest="a1-01")],
    )
    assert same.digest not in {finished_entry("w", each).digest for each in others}


QUERY, JOB = LedgerOwner("query", "orders-1.a_b"), LedgerOwner("job", "orders-1.a_b")


@pytest.mark.parametrize(
    ("write_id", "owner", "batch"),
    [
        ("query:orders-1.a_b/0", QUERY, 0),
        ("query:orders-1.a_b/17", QUERY, 17),
        ("query:orders-1.a_b/17/dead/letters", QUERY, 17),
        ("job:orders-1.a_b/2026-11-26T00:00+00:00", JOB, 0),
        ("job:orders-1.a_b/a/b", JOB, 0),
    ],
)
def test_an_id_that_names_its_owner(write_id, owner, batch):
    assert identity_of(write_id) == (owner, batch)


@pytest.mark.parametrize(
    "write_id",
    ["", "dead-17", "query:q", "query:q/", "query:q/x", "query:q/01", "query:q/-1", "query:/1", "query:q/1/",
     "query:a b/1", "job:j", "job:j/", "job:/1", "jobs:j/1", "query:q:r/1", f"job:{'x' * 101}/1"],
)  # fmt: skip
def test_an_id_that_does_not(write_id):
    assert identity_of(write_id) is None


def test_each_owner_has_a_ledger_of_its_own():
    assert (QUERY.queue, JOB.queue) == (f"{LEDGER_PREFIX}orders-1.a_b", f"{LEDGER_PREFIX}job.orders-1.a_b")
    assert JOB.address == f"{LEDGER_PREFIX}job.orders-1.a_b.token"
    assert (str(QUERY), str(JOB)) == ("query:orders-1.a_b", "job:orders-1.a_b")
