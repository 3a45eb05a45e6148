"""The age of tombstones. Which messages wait for a receipt is tested in test_store.py, where a journal asks."""

import contextlib

from model_broker import block_of

from pyspark_jms.delivery.journal.contents import info_of, segment_name
from pyspark_jms.delivery.journal.folder import Folder
from pyspark_jms.delivery.journal.journal_log import JournalLog
from pyspark_jms.delivery.journal.pending_receipts import PendingReceipts
from pyspark_jms.delivery.journal.segment import Segment, encode
from pyspark_jms.delivery.journal.unconfirmed import TOMBSTONE_SECONDS


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
