"""An open transaction and its entry; every way a COMMIT can end is in test_sending_once."""

import uuid
from dataclasses import replace

import pytest
from rawstomp import RawStomp
from streaming import access

from pyspark_jms.errors import CommitInDoubtError, UnsupportedError
from pyspark_jms.options.parsing import SinkOptions
from pyspark_jms.sink.committing import (
    LedgerTask,
    commit_with_entry,
    holds,
    look_up,
    look_up_all,
    own_entries,
    replay_mismatch,
)
from pyspark_jms.stomp.link.ledger_entries import LedgerEntry
from pyspark_jms.stomp.link.producer import Producer
from pyspark_jms.stomp.wire.frame import Frame, encode_frame
from pyspark_jms.testing import User


def task(partition=0):
    owner = uuid.uuid4().hex
    return LedgerTask(
        queue=f"pyspark-jms.commits.{owner}",
        write=f"{owner}/7",
        partition=partition,
        batch=7,
        execution="e",
        may_be_repeated=True,
    )


def entry_of(this, digest="1-a", rows=1):
    return LedgerEntry(task=this.name, batch=7, rows=rows, digest=digest, written_ms=1, execution=this.execution)


def options_of(broker, **options):
    return SinkOptions.parse(access(broker) | {"queue": "q", "deliveryGuarantee": "exactly-once"} | options)


def test_a_task_is_named_by_its_write_and_its_partition():
    this = task(3)
    assert this.name == f"{this.write}/3"
    other = LedgerEntry(task=f"{this.write}/4", batch=7, rows=1, digest="1-a", written_ms=1)
    assert own_entries(this, [other, entry_of(this)]) == (entry_of(this),)


def test_entries_hold_rows_by_number_and_digest():
    this = task()
    assert holds([entry_of(this, "1-b"), entry_of(this)], entry_of(this))
    assert not holds([entry_of(this, "1-b"), entry_of(this, rows=2)], entry_of(this))
    assert not holds([], entry_of(this))


def test_a_mismatch_names_both_and_what_to_do():
    this = task()
    error = replay_mismatch(this, [entry_of(this), entry_of(this, "1-b", 2)], entry_of(this, "1-c", 3))
    assert error.fact == (
        f"{this.name} was carried out before with 1 rows (digest 1-a) and 2 rows (digest 1-b), and is repeated with 3"
        " rows (digest 1-c). None of these was sent."
    )
    assert "onReplayMismatch=send" in error.remedy


@pytest.mark.broker
def test_rows_and_entry_are_committed_and_found(broker, queue):
    this, options = task(), options_of(broker)
    with Producer(options.connection) as producer:
        head = (("destination", queue), ("destination-type", "ANYCAST"), ("transaction", producer.transaction))
        producer.send(encode_frame(Frame("SEND", head, b"row")))
        commit_with_entry(options, this, producer, entry_of(this))
    assert look_up(options, this) == look_up_all(options, this) == (entry_of(this),)
    assert look_up(options, replace(this, partition=8)) == ()
    assert look_up(options, replace(this, partition=8, execution="f")) == (entry_of(this),)
    assert look_up_all(options, replace(this, partition=8)) == (entry_of(this),)
    with RawStomp(broker) as client:
        assert [message.body for message in client.read(queue, wanted=1)] == [b"row"]


@pytest.mark.broker
def test_a_look_up_that_is_not_permitted_names_both_queues(fresh_broker):
    may = {"send", "consume", "createDurableQueue", "createAddress"}
    limited = User("limited", "pw", may, at={"pyspark-jms.commits.#": set()})
    this = task()
    with fresh_broker(users=[limited]) as broker:
        options = options_of(broker, user="limited", password="pw")
        said = rf"Nothing was sent.*Queue {this.queue} needs .* and so does queue {this.queue}\.lock\."
        with pytest.raises(CommitInDoubtError, match=said):
            look_up(options, this)


@pytest.mark.broker
def test_a_broker_without_duplicate_detection_is_not_in_doubt(broker):
    with pytest.raises(UnsupportedError):
        look_up(SinkOptions.parse(access(broker) | {"broker": "classic", "queue": "q"}), task())
