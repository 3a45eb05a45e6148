"""An open transaction and its entry; test_sending_once has every way in which a commit can fail."""

import contextlib
import uuid
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pytest
from amqp_sending import settings_of
from streaming import access
from waiting import await_count

from pyspark_jms.amqp.link.commit_ledger import ledger_register
from pyspark_jms.amqp.link.connection import connect
from pyspark_jms.amqp.sink import CommitLedger
from pyspark_jms.delivery.commit_token import CommitToken, LedgerEntry, LedgerOwner
from pyspark_jms.errors import CommitInDoubtError, MaxConsumersError, UnsupportedError, WriteIdentityError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.committing import (
    commit_with_entry,
    find_for_task,
    find_for_write,
    own_entries,
    replay_mismatch,
)
from pyspark_jms.sink.sending import RowEncoder
from pyspark_jms.sink.tasks import LedgerTask


def task(partition=0):
    owner = uuid.uuid4().hex
    return LedgerTask(
        owner=LedgerOwner("query", owner),
        write=f"{owner}/7",
        partition=partition,
        batch=7,
        execution="e",
        may_be_repeated=True,
    )


def entry_of(this, digest="1-a", rows=1):
    return LedgerEntry(task=this.name, batch=7, rows=rows, digest=digest, execution=this.execution)


def options_of(broker, **options):
    exactly_once = {"brokerUrl": broker.amqp_url, "queue": "q", "deliveryGuarantee": "exactly-once"}
    return SinkOptions.parse(access(broker) | exactly_once | options)


def test_the_own_entries_of_a_task_have_its_name():
    this = task(3)
    other = LedgerEntry(task=f"{this.write}/4", batch=7, rows=1, digest="1-a")
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
    options = options_of(broker, queue=queue)
    ledger = CommitLedger(options.connection, this.owner)
    with closing(ledger.connect()) as link:
        for block in RowEncoder(options, link).take(pa.record_batch({"text": ["row"]})):
            link.send(block)
        commit_with_entry(ledger, options, this, link, entry_of(this))
    assert find_for_task(ledger, this) == find_for_write(ledger, this)
    assert [(each.task, each.digest) for each in find_for_write(ledger, this)] == [(this.name, "1-a")]
    assert find_for_task(ledger, replace(this, partition=8)) == ()
    assert len(find_for_task(ledger, replace(this, partition=8, execution="f"))) == 1
    await_count(broker, queue, 1)


@pytest.mark.broker
def test_a_look_up_that_is_not_permitted_names_the_address_of_the_token(restricted):
    this = task()
    address = f"{this.owner.queue}.token"
    control = restricted.server.getActiveMQServerControl()
    control.createQueue(address, "MULTICAST", address, None, True, 1, False, True)
    options = options_of(restricted, user="no-ledger", password="pw")
    with pytest.raises(CommitInDoubtError, match=rf"Nothing was sent.* Grant .* and send on {this.owner.queue}\.token"):
        find_for_task(CommitLedger(options.connection, this.owner), this)


@pytest.mark.broker
def test_a_queue_that_is_no_lock_is_not_in_doubt(broker):
    this = task()
    address = f"{this.owner.queue}.token"
    broker.server.getActiveMQServerControl().createQueue(address, "MULTICAST", address, None, True, -1, False, True)
    with pytest.raises(MaxConsumersError):
        find_for_task(CommitLedger(settings_of(broker), this.owner), this)


@pytest.mark.broker
def test_a_broker_without_a_lock_is_not_in_doubt(broker):
    with pytest.raises(UnsupportedError):
        find_for_task(CommitLedger(settings_of(broker, broker="classic"), LedgerOwner("query", "l")), task())


@pytest.mark.broker
def test_a_ledger_of_another_owner_is_never_taken_for_an_answer(broker, queue):
    """The token was moved, say by an administrator: the entries in it are of other rows."""
    this = task()
    other = LedgerOwner("job", this.owner.name)
    settings = settings_of(broker)
    with contextlib.closing(connect(replace(settings, client_id=this.owner.queue))) as connection:
        register = ledger_register(connection, this.owner)
        register.lock(wait_seconds=10)
        register.create(CommitToken(owner=str(other)))
        register.release()
    options = options_of(broker, queue=queue)
    ledger = CommitLedger(options.connection, this.owner)
    reason = (
        rf"\[JMS_WRITE_IDENTITY\] .*{this.owner.queue}\.token has the commit ledger of {other}, .* of {this.owner}\."
    )
    with pytest.raises(WriteIdentityError, match=reason):
        find_for_task(ledger, this)
    with closing(ledger.connect()) as link:
        for block in RowEncoder(options, link).take(pa.record_batch({"text": ["row"]})):
            link.send(block)
        with pytest.raises(WriteIdentityError, match=reason):
            commit_with_entry(ledger, options, this, link, entry_of(this))
    assert not broker.has_queue(queue) or broker.message_count(queue) == 0
