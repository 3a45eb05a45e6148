"""A checkpoint and its journal: another journal or an older copy is refused before anything is deleted."""

import shutil

import pytest
from model_broker import RECOGNITION, open_journal, run

from pyspark_jms.delivery.journal.binding import JournalMark, require_own_messages, require_same_journal
from pyspark_jms.delivery.journal.journal_log import Position
from pyspark_jms.delivery.journaled_ledger import JournaledLedger
from pyspark_jms.errors import DataLossError


@pytest.fixture
def opened(tmp_path):
    """``opened(name)`` → the journal in the folder of that name; it is closed at the end."""
    stores = []

    def open_store(name):
        store = open_journal(tmp_path / name)
        stores.append(store)
        return store

    yield open_store
    for store in stores:
        store.close()


def stored(store, *messages):
    """Store them as one segment. Returns the mark of an offset that is made then."""
    ledger = JournaledLedger(
        store,
        [("queue://q", "artemis", RECOGNITION)],
        store.position.oldest,
        partition_bytes=99,
        fail_on_data_loss=True,
    )
    ledger.receive(0, run(1, *messages))
    ledger.store_received()
    return JournalMark(store.meta.id, store.position.next)


def test_its_own_journal_and_an_offset_without_a_mark_pass(opened):
    store = opened("a")
    mark = stored(store, *range(5))
    stored(store, *range(5, 8))
    require_same_journal(store, mark, fail_on_data_loss=True)
    require_same_journal(store, None, fail_on_data_loss=True)


def test_messages_of_another_query_are_refused_where_no_journal_is_named(opened):
    store = opened("a")
    require_own_messages(store, lambda source, dialect: False)  # it holds nothing yet
    stored(store, *range(5))
    require_own_messages(store, lambda source, dialect: (source, dialect) == ("queue://q", "artemis"))
    with pytest.raises(DataLossError, match="queue://q"):
        require_own_messages(store, lambda source, dialect: source == "queue://other")
    assert store.position == Position(0, 5)


@pytest.mark.parametrize("must_be_whole", [True, False])
def test_the_journal_of_another_checkpoint_is_never_taken(opened, must_be_whole):
    mine, other = opened("mine"), opened("other")
    mark = stored(mine, *range(5))
    stored(other, *range(100, 120))
    with pytest.raises(DataLossError, match=rf"{other.meta.id}.* {mine.meta.id}"):
        require_same_journal(other, mark, fail_on_data_loss=must_be_whole)
    assert other.position == Position(0, 20)


def test_a_new_journal_takes_the_place_of_a_lost_one_where_that_is_allowed(opened):
    mark = stored(opened("lost"), *range(5))
    new = opened("new")
    with pytest.raises(DataLossError, match="empty"):
        require_same_journal(new, mark, fail_on_data_loss=True)
    require_same_journal(new, mark, fail_on_data_loss=False)
    stored(new, 7)
    new.close()
    again = opened("new")  # and remembers it, whatever is allowed by then
    require_same_journal(again, mark, fail_on_data_loss=True)
    require_same_journal(again, JournalMark(again.meta.id, 1), fail_on_data_loss=True)


def test_an_older_copy_is_data_loss(opened, tmp_path):
    store = opened("now")
    stored(store, *range(5))
    shutil.copytree(tmp_path / "now", tmp_path / "copy")
    mark = stored(store, *range(5, 9))
    copy = opened("copy")
    with pytest.raises(DataLossError, match=r"sequence 5\b.*\b9\b"):
        require_same_journal(copy, mark, fail_on_data_loss=True)
    require_same_journal(copy, mark, fail_on_data_loss=False)
