"""The age of tombstones. Which messages wait for a receipt is tested in test_store.py, where a journal asks."""

import contextlib

import pytest
from model_broker import block_of

from pyspark_jms.delivery.journal.contents import info_of, segment_name
from pyspark_jms.delivery.journal.folder import Folder
from pyspark_jms.delivery.journal.journal_log import JournalLog
from pyspark_jms.delivery.journal.lines import write_line
from pyspark_jms.delivery.journal.pending_receipts import (
    TOMBSTONE_SECONDS,
    PendingReceipts,
    UnconfirmedRange,
    read_tombstone,
    write_tombstone,
)
from pyspark_jms.delivery.journal.segment import Segment, encode
from pyspark_jms.errors import CorruptJournalError


def test_a_tombstone_expires_after_a_day_of_being_subscribed(tmp_path):
    folder = Folder(tmp_path)
    segment = Segment(source="queue://q", dialect="artemis", first=0, block=block_of([b"id0", b"id1"], [b"a", b"b"]))
    encoded = encode(segment)
    folder.create(segment_name(0), encoded)
    info = info_of(segment, tmp_path / segment_name(0), sum(map(len, encoded)), encoded.digest, 0.0)
    segments = {0: info}
    JournalLog.create(folder)
    with contextlib.closing(JournalLog.load(folder)) as log:
        receipts = PendingReceipts(folder, log, segments, lambda stored: [b"%016d" % n for n in range(len(stored))])
        receipts.expect(segment)
        receipts.use_tombstones(receipts.write_tombstones([info]))
        assert receipts.write_tombstones([info]) == {}, "no second one, which would begin to age anew"
        del segments[0]
        receipts.note_subscribed(TOMBSTONE_SECONDS - 1)
        assert receipts.expire() == []
        receipts.note_subscribed(1)
        assert [messages.first for messages in receipts.expire()] == [0]
        assert receipts.messages == 0
        assert log.subscribed == TOMBSTONE_SECONDS - 1
        assert receipts.subscribed_unrecorded
        receipts.record_subscribed()
        assert (log.subscribed, receipts.subscribed_unrecorded) == (TOMBSTONE_SECONDS, False)


# --- tombstones --------------------------------------------------------------------------------------

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
