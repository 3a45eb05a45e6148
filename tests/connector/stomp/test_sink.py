"""The links of the sink on a real broker: what is encoded for which way of sending, and what confirms it."""

import uuid

import pyarrow as pa
import pytest
from rawstomp import RawStomp
from streaming import access
from waiting import await_count

from pyspark_jms.columns.send_defaults import SendDefaults
from pyspark_jms.delivery.commit_entry import LedgerEntry
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.jms.model import DeliveryMode, Destination, DestinationKind
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.stomp.sink import STOMP_SINK

pytestmark = pytest.mark.broker


def settings_of(broker, dialect="auto"):
    options = {"reconnectTimeout": "0", "transaction": "none", "broker": dialect}
    return SinkOptions.parse(access(broker) | options).connection


def defaults(queue, **changed):
    usual = {"delivery_mode": DeliveryMode.PERSISTENT, "priority": 4, "time_to_live_ms": 0, "delivery_delay_ms": 0}
    return SendDefaults(destination=Destination(DestinationKind.QUEUE, queue), **usual | changed)


def encoded(link, queue, *texts, **how):
    rows = pa.record_batch({"text": list(texts)})
    return link.encode(rows, defaults=defaults(queue), property_columns=(), now_ms=0, **how)


def bodies(broker, queue):
    with RawStomp(broker) as client:
        return sorted(message.body.decode() for message in client.read(queue, quiet=0.3))


def test_a_transaction_becomes_visible_with_its_commit(broker, queue):
    with STOMP_SINK.connect(settings_of(broker)) as link:
        link.require_transactions()
        for block in encoded(link, queue, "a", "b"):
            link.send(block)
        assert bodies(broker, queue) == []
        link.commit()
        for block in encoded(link, queue, "not committed"):
            link.send(block)
    assert bodies(broker, queue) == ["a", "b"]


def test_each_message_outside_of_a_transaction_is_confirmed(broker, queue):
    with STOMP_SINK.connect(settings_of(broker)) as link:
        for block in encoded(link, queue, "a", "b", "c", in_transaction=False, confirm_each=True, first_row=17):
            link.send_at_once(block)
        link.await_each(17, 3)
        await_count(broker, queue, 3)
        link.commit()  # nothing is open


def test_a_dialect_says_what_its_broker_confirms(broker):
    reason = {}
    for name in ("artemis", "rabbitmq"):
        with STOMP_SINK.connect(settings_of(broker, name)) as link:
            reason[name] = link.confirms_single_messages
    assert reason == {"artemis": False, "rabbitmq": True}
    with STOMP_SINK.connect(settings_of(broker, "rabbitmq")) as link, pytest.raises(UnsupportedError):
        link.require_transactions()


def test_a_ledger_finds_the_entry_that_was_committed_with_its_rows(broker, queue):
    owner = uuid.uuid4().hex
    ledger = STOMP_SINK.commit_ledger(settings_of(broker), f"pyspark-jms.commits.{owner}")
    entry = LedgerEntry(task=f"{owner}/3/0", batch=3, rows=1, digest="1-a", written_ms=5, execution="first")
    with ledger.connect() as link:
        for block in encoded(link, queue, "a"):
            link.send(block)
        link.commit_with_entry(entry, again=False)
    assert bodies(broker, queue) == ["a"]
    task, write = entry.task, f"{owner}/3"
    assert ledger.find_for_write(write) == ledger.find_late(task, may_arrive=True) == (entry,)
    assert ledger.find_for_task(task, write=write, execution="first") == (entry,)
    assert ledger.find_for_task(f"{write}/1", write=write, execution="first") == ()
    assert ledger.find_for_task(f"{write}/1", write=write, execution="second") == (entry,)
    assert f"{ledger.queue} needs the permissions" in ledger.requirements
    assert (ledger.delete_before_batch(3), ledger.delete_before_time(5)) == (0, 0)
    assert (ledger.delete_before_batch(4), ledger.delete_before_time(6)) == (1, 0)


def test_the_digest_of_rows_does_not_depend_on_the_clock(broker, queue):
    with STOMP_SINK.commit_ledger(settings_of(broker), "l").connect() as link:
        rows = pa.record_batch({"text": ["a"]})
        assert not link.counts_from_now(rows.schema, defaults(queue))
        assert link.counts_from_now(rows.schema, defaults(queue, time_to_live_ms=1))
        digests = []
        for texts in (["a", "b"], ["b", "a"], ["a", "c"]):
            digests.append(link.new_digest())
            digests[-1].add(encoded(link, queue, *texts))
        first, second, third = (digest.text() for digest in digests)
        assert first == second != third


def test_a_ledger_needs_duplicate_detection(broker):
    ledger = STOMP_SINK.commit_ledger(settings_of(broker, "classic"), "l")
    with pytest.raises(UnsupportedError), ledger.connect():
        pass
