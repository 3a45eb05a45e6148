import pytest
from model_broker import block_of

from pyspark_jms.delivery.journal.contents import info_of, segment_name
from pyspark_jms.delivery.journal.folder import Folder
from pyspark_jms.delivery.journal.journal_log import JournalLog
from pyspark_jms.delivery.journal.pending_receipts import PendingReceipts, UnacknowledgedMessage
from pyspark_jms.delivery.journal.segment import Segment, encode
from pyspark_jms.delivery.journal.unconfirmed import TOMBSTONE_SECONDS

QUEUE, OTHER = "queue://orders", "queue://invoices"


@pytest.fixture
def folder(tmp_path):
    folder = Folder(tmp_path)
    JournalLog.create(folder)
    return folder


@pytest.fixture
def log(folder):
    log = JournalLog.load(folder)
    yield log
    log.close()


@pytest.fixture
def segments():
    return {}


@pytest.fixture
def receipts(folder, log, segments):
    return PendingReceipts(folder, log, segments, fingerprints)


@pytest.fixture
def stored(folder, receipts, segments):
    """Store a segment of these sequences, as ``JournalStore`` does."""

    def store(first, last, source=QUEUE):
        numbers = range(first, last)
        block = block_of([b"id%d" % n for n in numbers], [b"text %d" % n for n in numbers])
        segment = Segment(source=source, dialect="artemis", first=first, block=block)
        encoded = encode(segment)
        folder.create(segment_name(first), encoded)
        segments[first] = info_of(
            segment, folder.path / segment_name(first), sum(map(len, encoded)), encoded.digest, 0.0
        )
        receipts.expect(segment)
        return segments[first]

    return store


def fingerprints(segment):
    return [b"%016d" % n for n in range(segment.first, segment.last)]


def known(first, last, source=QUEUE):
    return {UnacknowledgedMessage(source, b"id%d" % n, b"%016d" % n) for n in range(first, last)}


def delete(folder, segments, first):
    folder.delete(segment_name(first))
    del segments[first]


def test_stored_messages_are_pending_until_their_segment_is_confirmed(receipts, stored, log):
    stored(0, 3)
    stored(3, 5, OTHER)
    assert (receipts.messages, receipts.size) == (5, 0)
    assert set(receipts.unacknowledged()) == known(0, 3) | known(3, 5, OTHER)
    receipts.confirm_all(0)
    receipts.confirm_all(0)
    assert 0 not in receipts
    assert 3 in receipts
    assert log.acknowledged == {0}
    assert receipts.fingerprints_from(0) == {}
    assert receipts.fingerprints_from(3) == {b"id3": b"%016d" % 3, b"id4": b"%016d" % 4}


def test_redelivered_messages_are_confirmed_one_by_one(receipts, stored, log):
    stored(0, 3)
    receipts.confirm(OTHER.__eq__, [b"id0", b"id1", b"id2"])
    receipts.confirm(QUEUE.__eq__, [b"id0", b"id2", b"unknown"])
    assert set(receipts.unacknowledged()) == known(1, 2)
    assert log.acknowledged == set()
    receipts.confirm(QUEUE.__eq__, [b"id1"])
    assert (set(receipts.unacknowledged()), log.acknowledged) == (set(), {0})


def test_a_tombstone_recognises_the_messages_of_a_deleted_segment(receipts, stored, folder, segments):
    done = [stored(0, 3), stored(3, 5)]
    receipts.confirm_all(3)
    tombstones = receipts.write_tombstones(done)
    assert list(tombstones) == [0]
    receipts.use_tombstones(tombstones)
    delete(folder, segments, 0)
    assert set(receipts.unacknowledged()) == known(0, 3)
    assert receipts.size == tombstones[0].size > 0
    assert receipts.write_tombstones(done) == {}, "no second one"
    receipts.confirm_all(0)
    assert [name for name in folder.names() if name.startswith("tombstone")] == []


def test_a_tombstone_expires_after_a_day_of_being_subscribed(receipts, stored, folder, log, segments):
    receipts.use_tombstones(receipts.write_tombstones([stored(0, 3)]))
    delete(folder, segments, 0)
    receipts.note_subscribed(TOMBSTONE_SECONDS - 1)
    assert receipts.expire() == []
    receipts.note_subscribed(1)
    assert [messages.first for messages in receipts.expire()] == [0]
    assert receipts.messages == 0
    assert log.subscribed == TOMBSTONE_SECONDS - 1
    assert receipts.subscribed_unrecorded
    receipts.record_subscribed()
    assert (log.subscribed, receipts.subscribed_unrecorded) == (TOMBSTONE_SECONDS, False)
