import shutil

import pytest

from pyspark_jms.delivery.journal.contents import LOCK_NAME, META_NAME
from pyspark_jms.delivery.journal.folder import Folder
from pyspark_jms.delivery.journal.lock import WriterLock
from pyspark_jms.delivery.journal.writer_guard import WriterGuard
from pyspark_jms.errors import IllegalStateError, JournalLockedError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / META_NAME).write_bytes(b"a journal")
    return Folder(tmp_path)


@pytest.fixture
def lock(folder):
    lock = WriterLock(folder.path / LOCK_NAME, query="test", wait_seconds=0, pause=lambda _: None)
    yield lock
    lock.release()


@pytest.fixture
def guard(folder, lock):
    return WriterGuard(folder, lock)


def test_the_writer_of_an_untouched_journal_may_write(guard):
    guard.require()
    guard.require_open("append")


def test_a_replaced_journal_is_another_one_until_its_writer_replaced_it(guard, folder):
    shutil.copy2(folder.path / META_NAME, folder.path / "copy")
    (folder.path / "copy").replace(folder.path / META_NAME)
    with pytest.raises(JournalLockedError, match=f"{META_NAME} .*removed or replaced"):
        guard.require()
    guard.meta_replaced()
    guard.require()


@pytest.mark.parametrize("name", [META_NAME, LOCK_NAME])
def test_a_removed_file_ends_the_right_to_write(guard, folder, name):
    (folder.path / name).unlink()
    with pytest.raises(JournalLockedError, match="removed or replaced"):
        guard.require_open("append")


def test_a_closed_journal_names_the_event(guard, lock):
    lock.release()
    with pytest.raises(IllegalStateError, match=r"append .*closed"):
        guard.require_open("append")
