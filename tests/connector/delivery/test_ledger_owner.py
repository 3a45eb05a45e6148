"""Whose ledger a write id means."""

import pytest

from pyspark_jms.delivery.ledger_owner import LEDGER_PREFIX, LedgerOwner, identity_of

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
