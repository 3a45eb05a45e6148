"""The commit ledger as one value: which entries it keeps, and its text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.delivery.commit_entry import LedgerEntry
from pyspark_jms.delivery.commit_token import NO_BATCH, CommitToken, finished_entry, is_finished, merged, write_of

HOUR_MS = 3_600_000


def entry(task="q/7/0", batch=7, rows=3, digest="a1-00", written_ms=5 * HOUR_MS, execution="e"):
    return LedgerEntry(task=task, batch=batch, rows=rows, digest=digest, written_ms=written_ms, execution=execution)


def test_a_new_token_is_of_no_batch():
    assert (CommitToken().batch, CommitToken().entries) == (NO_BATCH, ())


def test_entries_of_a_batch_add_up_and_the_next_batch_begins_anew():
    token = CommitToken().with_entry(entry(), keep_since_ms=None)
    token = token.with_entry(entry("q/7/1"), keep_since_ms=None)
    assert (token.batch, [each.task for each in token.entries]) == (7, ["q/7/0", "q/7/1"])
    token = token.with_entry(entry("q/8/0", batch=8), keep_since_ms=None)
    assert (token.batch, [each.task for each in token.entries]) == (8, ["q/8/0"])


def test_the_ledger_of_all_batch_writes_keeps_entries_for_a_time():
    token = CommitToken(batch=0, entries=(entry("a/0", 0, written_ms=10), entry("b/0", 0, written_ms=20)))
    token = token.with_entry(entry("c/0", 0, written_ms=30), keep_since_ms=20)
    assert [each.task for each in token.entries] == ["b/0", "c/0"]


ENTRIES = st.builds(
    entry,
    task=st.builds("{}/{}".format, st.text(max_size=9), st.integers(0, 10**6)),
    batch=st.just(7),
    rows=st.integers(0, 2**62),
    digest=st.text(max_size=40),
    written_ms=st.integers(0, 10**6).map(lambda hours: hours * HOUR_MS),
    execution=st.sampled_from([None, "e", "f"]),
)


@given(st.lists(ENTRIES, max_size=8, unique_by=lambda each: each.task))
def test_a_token_is_what_its_text_says(entries):
    token = CommitToken(batch=7, entries=tuple(entries))
    read = CommitToken.parse(token.body())
    assert (read.batch, set(read.entries)) == (7, set(entries))


def test_a_short_text_is_plain_and_names_what_tasks_have_in_common_once():
    body = CommitToken(batch=7, entries=(entry(), entry("q/7/1"))).body()
    assert json.loads(body) == {
        "version": 1,
        "batch": 7,
        "writes": [["q/7", "e", 5 * HOUR_MS, [["0", 3, "a1-00"], ["1", 3, "a1-00"]]]],
    }


def test_thousands_of_partitions_stay_small():
    """Above 100 kB Artemis keeps a message in a file of its own."""
    digests = (f"a1-{number * 2**97 % (2**127 - 1):032x}" for number in range(1, 3_001))
    entries = tuple(entry(f"q/7/{n}", rows=1_000, digest=digest) for n, digest in enumerate(digests))
    token = CommitToken(batch=7, entries=entries)
    assert len(token.body()) < 90_000
    assert set(CommitToken.parse(token.body()).entries) == set(entries)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"x",
        b"{",
        b'{"version":2,"batch":1,"writes":[]}',
        b'{"version":1,"batch":"1","writes":[]}',
        b'{"version":1,"batch":1,"writes":[1]}',
        b'{"version":1,"batch":1,"writes":[["w","e",1,[["0","1","d"]]]]}',
    ],
)
def test_other_bytes_are_refused(body):
    with pytest.raises(ValueError, match=r"commit ledger|JSON|Expecting"):
        CommitToken.parse(body)


def test_several_tokens_say_what_the_latest_batch_has():
    old = CommitToken(batch=6, entries=(entry("q/6/0", 6),))
    one, two = (CommitToken(batch=7, entries=(entry(f"q/7/{n}"), entry("q/7/2"))) for n in (0, 1))
    found = merged([old, one, two])
    assert (found.batch, sorted(each.task for each in found.entries)) == (7, ["q/7/0", "q/7/1", "q/7/2"])


# --- finished writes -------------------------------------------------------------------------------------


def test_a_finished_write_has_one_entry_for_all_of_its_tasks():
    tasks = (entry("w/0", 0), entry("w/1", 0, rows=4))
    token = CommitToken(batch=0, entries=(*tasks, entry("w/x/0", 0))).with_finished("w")
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
