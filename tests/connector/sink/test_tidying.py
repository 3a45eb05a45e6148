"""Which entries of a ledger are deleted, and that a failure is only logged."""

import time
import uuid
from dataclasses import replace

import pytest
from streaming import access

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.commit_entry import LedgerEntry
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink import tidying
from pyspark_jms.sink.tasks import LedgerTask, ledger_queue
from pyspark_jms.sink.tidying import KEEP_WRITES_MS, delete_outdated
from pyspark_jms.stomp.sink import STOMP_SINK
from pyspark_jms.stomp.wire.frame import Frame, encode_frame

pytestmark = pytest.mark.broker

NOW_MS = int(time.time() * 1000)
OLD_MS, YOUNG_MS = NOW_MS - KEEP_WRITES_MS - 3_600_000, NOW_MS - KEEP_WRITES_MS + 3_600_000


def entry(batch, written_ms=NOW_MS):
    return LedgerEntry(task=f"w/{batch}/0", batch=batch, rows=1, digest="d", written_ms=written_ms)


def task(owner, batch):
    return LedgerTask(
        queue=ledger_queue(owner), write=f"w/{batch}", partition=0, batch=batch, execution="e", may_be_repeated=True
    )


@pytest.mark.parametrize(
    ("for_all_writes", "left"),
    [
        (False, [0, 1, 1]),  # by batch, however old
        (True, [1, 0, 1]),  # by age: the batches of different jobs have no order
    ],
)
def test_a_query_keeps_its_batch_and_the_ledger_of_all_writes_a_week(broker, monkeypatch, for_all_writes, left):
    owner = uuid.uuid4().hex
    if for_all_writes:
        monkeypatch.setattr(tidying, "ALL_WRITES", owner)  # a ledger of this test's own
    this = task(owner, 5)
    ledger = STOMP_SINK.commit_ledger(SinkOptions.parse(access(broker)).connection, this.queue)
    for known in (entry(4, YOUNG_MS), entry(5, OLD_MS), entry(6)):
        with ledger.connect() as link:
            row = encode_frame(Frame("SEND", (("destination", f"{this.queue}.rows"), ("transaction", "t")), b""))
            link.send(MessageBlock(row))
            link.commit_with_entry(replace(known, task=f"{this.queue}/{known.batch}/0"), again=False)
    delete_outdated(ledger, this)
    assert [len(ledger.find_for_write(f"{this.queue}/{batch}")) for batch in (4, 5, 6)] == left


def test_a_failure_is_logged(caplog):
    this = task(uuid.uuid4().hex, 2)
    nowhere = SinkOptions.parse({"brokerUrl": "stomp://127.0.0.1:1", "reconnectTimeout": "0"}).connection
    delete_outdated(STOMP_SINK.commit_ledger(nowhere, this.queue), this)
    assert f"old entries of {this.queue} were not deleted" in caplog.text
