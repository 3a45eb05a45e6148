"""An open transaction and its entry; test_sending_once has every way in which a commit can fail."""

import uuid
from dataclasses import replace

import pytest
from amqp_sending import settings_of
from rawstomp import RawStomp
from streaming import access

from pyspark_jms.amqp.sink import AMQP_SINK
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.delivery.commit_entry import LedgerEntry
from pyspark_jms.errors import CommitInDoubtError, MaxConsumersError, UnsupportedError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.committing import (
    commit_with_entry,
    find_for_task,
    find_for_write,
    own_entries,
    replay_mismatch,
)
from pyspark_jms.sink.tasks import LedgerTask
from pyspark_jms.stomp.link.producer import Producer
from pyspark_jms.stomp.sink import STOMP_SINK
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


def ledger_of(this, options):
    return STOMP_SINK.commit_ledger(options.connection, this.queue)


def test_the_own_entries_of_a_task_have_its_name():
    this = task(3)
    other = LedgerEntry(task=f"{this.write}/4", batch=7, rows=1, digest="1-a", written_ms=1)
    assert own_entries(this, [other, entry_of(this)]) == (entry_of(this),)


def test_a_mismatch_names_both_and_the_remedy():
    this = task()
    error = replay_mismatch(this, [entry_of(this), entry_of(this, "1-b", 2)], entry_of(this, "1-c", 3))
    assert error.fact == (
        f"{this.name} was already sent with 1 rows (digest 1-a) and 2 rows (digest 1-b), and is repeated with 3"
        " rows (digest 1-c). None of these was sent."
    )
    assert "onReplayMismatch=send" in error.remedy


@pytest.mark.broker
def test_rows_and_entry_are_committed_and_found(broker, queue):
    this = task()
    ledger = ledger_of(this, options_of(broker))
    with ledger.connect() as link:
        head = (("destination", queue), ("destination-type", "ANYCAST"), ("transaction", Producer.transaction))
        link.send(MessageBlock(encode_frame(Frame("SEND", head, b"row"))))
        commit_with_entry(ledger, this, link, entry_of(this), send_on_mismatch=False)
    assert find_for_task(ledger, this) == find_for_write(ledger, this) == (entry_of(this),)
    assert find_for_task(ledger, replace(this, partition=8)) == ()
    assert find_for_task(ledger, replace(this, partition=8, execution="f")) == (entry_of(this),)
    assert find_for_write(ledger, replace(this, partition=8)) == (entry_of(this),)
    with RawStomp(broker) as client:
        assert [message.body for message in client.read(queue, wanted=1)] == [b"row"]


@pytest.mark.broker
def test_a_look_up_that_is_not_permitted_names_both_queues(fresh_broker):
    may = {"send", "consume", "createDurableQueue", "createAddress"}
    limited = User("limited", "pw", may, at={"pyspark-jms.commits.#": set()})
    this = task()
    with fresh_broker(users=[limited]) as broker:
        options = options_of(broker, user="limited", password="pw")
        reason = rf"Nothing was sent.*Queue {this.queue} needs .* and so does queue {this.queue}\.lock\."
        with pytest.raises(CommitInDoubtError, match=reason):
            find_for_task(ledger_of(this, options), this)


@pytest.mark.broker
def test_a_queue_that_is_no_lock_is_not_in_doubt(broker):
    this = task()
    address = f"{this.queue}.token"
    broker.server.getActiveMQServerControl().createQueue(address, "MULTICAST", address, None, True, -1, False, True)
    with pytest.raises(MaxConsumersError):
        find_for_task(AMQP_SINK.commit_ledger(settings_of(broker), this.queue), this)


@pytest.mark.broker
def test_a_broker_without_duplicate_detection_is_not_in_doubt(broker):
    with pytest.raises(UnsupportedError):
        find_for_task(
            ledger_of(task(), SinkOptions.parse(access(broker) | {"broker": "classic", "queue": "q"})), task()
        )
