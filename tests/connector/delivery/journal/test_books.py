import resource
import signal

import pytest

from pyspark_jms.delivery.journal import books as module
from pyspark_jms.delivery.journal.books import FILE_NAME, Books, Position
from pyspark_jms.delivery.journal.folder import Folder
from pyspark_jms.delivery.journal.lines import write_line
from pyspark_jms.errors import CorruptJournalError, JournalError


@pytest.fixture
def folder(tmp_path):
    folder = Folder(tmp_path)
    Books.create(folder)
    return folder


def said(books):
    return books.position, books.batches, books.acknowledged


def reloaded(folder):
    books = Books.load(folder)
    books.close()
    return said(books)


def test_a_new_journal_begins_at_0(folder):
    assert reloaded(folder) == (Position(0, 0), {}, set())


def test_what_was_entered_is_there_again(folder):
    books = Books.load(folder)
    books.enter_batch(0, 5, [2, 4])
    books.enter_batch(5, 9, [])
    books.enter_acknowledged(0)
    books.enter_acknowledged(5)
    expected = Position(0, 0), {(0, 5): [2, 4], (5, 9): []}, {0, 5}
    assert said(books) == reloaded(folder) == expected
    books.enter_position(Position(5, 9))
    assert said(books) == reloaded(folder) == (Position(5, 9), {(5, 9): []}, {0, 5})
    books.close()


def test_an_entry_that_a_crash_cut_short_did_not_happen(folder):
    books = Books.load(folder)
    books.enter_batch(0, 5, [2])
    books.close()
    path = folder.path / FILE_NAME
    whole = path.read_bytes()
    path.write_bytes(whole + write_line({"batch": [5, 9], "cuts": []}, whole.splitlines()[-1])[:-4])
    books = Books.load(folder)
    assert books.batches == {(0, 5): [2]}
    books.enter_batch(5, 7, [])
    assert reloaded(folder) == (Position(0, 0), {(0, 5): [2], (5, 7): []}, set())
    books.close()


def test_the_file_does_not_grow_for_ever(folder, monkeypatch):
    monkeypatch.setattr(module, "_LONGEST", 2000)
    books = Books.load(folder)
    for n in range(300):
        books.enter_acknowledged(n)
        books.enter_batch(n, n + 1, [])
        books.enter_position(Position(n + 1, n + 1))
        books.forget_acknowledged(n)
        assert (folder.path / FILE_NAME).stat().st_size < 2300
    books.close()
    position, batches, acknowledged = reloaded(folder)
    assert (position, batches) == (Position(300, 300), {})
    assert 299 in acknowledged


def test_a_refused_entry_did_not_happen_and_the_next_one_does(folder):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    books = Books.load(folder)
    books.enter_batch(0, 5, [])
    size = (folder.path / FILE_NAME).stat().st_size
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, before[1]))
        with pytest.raises(JournalError, match="Make room"):
            books.enter_batch(5, 9, [])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert (folder.path / FILE_NAME).stat().st_size == size + 20
    assert books.batches == reloaded(folder)[1] == {(0, 5): []}
    books.enter_batch(5, 8, [])
    assert books.batches == reloaded(folder)[1] == {(0, 5): [], (5, 8): []}
    books.close()


@pytest.mark.parametrize("entry", [{"other": 1}, {"position": [1]}, {"batch": [0, 1]}, {"position": ["a", 1]}, [1]])
def test_what_nobody_writes_is_not_believed(folder, entry):
    (folder.path / FILE_NAME).write_bytes(write_line(entry))
    with pytest.raises(CorruptJournalError, match="says what nobody writes"):
        Books.load(folder)


def test_an_empty_file_is_not_believed(folder):
    (folder.path / FILE_NAME).write_bytes(b"")
    with pytest.raises(CorruptJournalError, match="is empty"):
        Books.load(folder)
