import pytest

from pyspark_jms.delivery.journal.folder import Folder
from pyspark_jms.delivery.journal.lines import write_line
from pyspark_jms.delivery.journal.unconfirmed import (
    TOMBSTONE_SECONDS,
    UnconfirmedRange,
    read_tombstone,
    write_tombstone,
)
from pyspark_jms.errors import CorruptJournalError

NAME = f"tombstone-{7:019d}"


@pytest.fixture
def messages():
    ids = [b"12", b"\xff\x00\n", "ü".encode()]
    return UnconfirmedRange(first=7, last=11, source="queue://q", fingerprints={i: i.ljust(16, b".") for i in ids})


def test_a_tombstone_is_read_as_it_was_written(tmp_path, messages):
    folder = Folder(tmp_path)
    written = write_tombstone(folder, messages, subscribed=1234.5)
    assert (written.since, written.fingerprints) == (1234.5, messages.fingerprints)
    assert written.size == (tmp_path / NAME).stat().st_size
    assert read_tombstone(folder, NAME) == written


def test_it_lasts_for_a_day_of_being_subscribed(tmp_path, messages):
    written = write_tombstone(Folder(tmp_path), messages, subscribed=1000.0)
    assert not written.expired(1000.0 + TOMBSTONE_SECONDS - 1)
    assert written.expired(1000.0 + 24 * 3600)
    assert not messages.expired(1e12)


def test_an_altered_one_is_named(tmp_path, messages):
    folder = Folder(tmp_path)
    write_tombstone(folder, messages, subscribed=0.0)
    data = folder.read(NAME)
    (tmp_path / NAME).write_bytes(data.replace(b"queue://q", b"queue://r"))
    with pytest.raises(CorruptJournalError, match=NAME):
        read_tombstone(folder, NAME)


@pytest.mark.parametrize("change", [{"ids": ["1"]}, {"fingerprints": "xyz"}, {"subscribed": None}, {"first": "a"}])
def test_what_nobody_writes_is_not_believed(tmp_path, change):
    good = {"first": 7, "last": 9, "source": "queue://q", "subscribed": 1.0, "ids": [], "fingerprints": ""}
    (tmp_path / NAME).write_bytes(write_line(good | change))
    with pytest.raises(CorruptJournalError, match=NAME):
        read_tombstone(Folder(tmp_path), NAME)
