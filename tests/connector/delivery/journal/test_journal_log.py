import resource
import signal

import pytest

from pyspark_jms.delivery.journal import journal_log as module
from pyspark_jms.delivery.journal.folder import Folder
from pyspark_jms.delivery.journal.journal_log import FILE_NAME, JournalLog, Position
from pyspark_jms.delivery.journal.lines import write_line
from pyspark_jms.errors import CorruptJournalError, JournalError


@pytest.fixture
def folder(tmp_path):
    folder = Folder(tmp_path)
    JournalLog.create(folder)
    return folder


def content_of(log):
    return log.position, log.batches, log.acknowledged


def reloaded(folder):
    log = JournalLog.load(folder)
    log.close()
    return content_of(log)


def test_a_new_journal_begins_at_0(folder):
    assert reloaded(folder) == (Position(0, 0), {}, set())


def test_what_was_recorded_is_there_again(folder):
    log = JournalLog.load(folder)
    log.record_batch(0, 5, [2, 4])
    log.record_batch(5, 9, [])
    log.record_acknowledged(0)
    log.record_acknowledged(5)
    expected = Position(0, 0), {(0, 5): [2, 4], (5, 9): []}, {0, 5}
    assert content_of(log) == reloaded(folder) == expected
    log.record_position(Position(5, 9))
    assert content_of(log) == reloaded(folder) == (Position(5, 9), {(5, 9): []}, {0, 5})
    log.close()


def test_an_entry_that_a_crash_cut_short_did_not_happen(folder):
    log = JournalLog.load(folder)
    log.record_batch(0, 5, [2])
    log.close()
    path = folder.path / FILE_NAME
    whole = path.read_bytes()
    path.write_bytes(whole + write_line({"batch": [5, 9], "partitions": []}, whole.splitlines()[-1])[:-4])
    log = JournalLog.load(folder)
    assert log.batches == {(0, 5): [2]}
    log.record_batch(5, 7, [])
    assert reloaded(folder) == (Position(0, 0), {(0, 5): [2], (5, 7): []}, set())
    log.close()


def test_the_file_does_not_grow_without_end(folder, monkeypatch):
    monkeypatch.setattr(module, "_MAX_BYTES", 2000)
    log = JournalLog.load(folder)
    for n in range(300):
        log.record_acknowledged(n)
        log.record_batch(n, n + 1, [])
        log.record_position(Position(n + 1, n + 1))
        log.acknowledged.discard(n)
        assert (folder.path / FILE_NAME).stat().st_size < 2300
    log.close()
    position, batches, acknowledged = reloaded(folder)
    assert (position, batches) == (Position(300, 300), {})
    assert 299 in acknowledged


def test_a_refused_entry_did_not_happen_and_the_next_one_does(folder):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    log = JournalLog.load(folder)
    log.record_batch(0, 5, [])
    size = (folder.path / FILE_NAME).stat().st_size
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, before[1]))
        with pytest.raises(JournalError, match=r"\[JMS_JOURNAL_IO\]"):
            log.record_batch(5, 9, [])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert (folder.path / FILE_NAME).stat().st_size == size + 20
    assert log.batches == reloaded(folder)[1] == {(0, 5): []}
    log.record_batch(5, 8, [])
    assert log.batches == reloaded(folder)[1] == {(0, 5): [], (5, 8): []}
    log.close()


@pytest.mark.parametrize("entry", [{"other": 1}, {"position": [1]}, {"batch": [0, 1]}, {"position": ["a", 1]}, [1]])
def test_an_entry_of_an_unknown_form_is_refused(folder, entry):
    (folder.path / FILE_NAME).write_bytes(write_line(entry))
    with pytest.raises(CorruptJournalError, match=r"file .*entry"):
        JournalLog.load(folder)


def test_an_empty_file_is_refused(folder):
    (folder.path / FILE_NAME).write_bytes(b"")
    with pytest.raises(CorruptJournalError, match="empty"):
        JournalLog.load(folder)
