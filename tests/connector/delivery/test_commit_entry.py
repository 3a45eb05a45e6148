"""An entry is a value: equal if all its fields are, and carried by Spark from a task to the driver."""

import pickle
from dataclasses import replace

from pyspark_jms.delivery.commit_entry import LedgerEntry

ENTRY = LedgerEntry(task="q/7/3", batch=7, rows=12, digest="1-abc", execution="e-1")


def test_an_entry_is_a_value_that_can_be_carried():
    assert pickle.loads(pickle.dumps(ENTRY)) == ENTRY
    assert len({ENTRY, replace(ENTRY), replace(ENTRY, rows=13)}) == 2


def test_an_entry_of_a_whole_write_has_no_execution():
    assert LedgerEntry(task="t/0", batch=0, rows=1, digest="1-a").execution is None
