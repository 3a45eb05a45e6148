"""One exactly-once task on a real broker: every way in which a commit can end and a task can be repeated."""

import threading
import uuid
from dataclasses import replace

import pyarrow as pa
import pytest
from proxy import Proxy
from rawstomp import take_texts
from streaming import access
from waiting import await_count, wait_until

from pyspark_jms.amqp.sink import CommitLedger
from pyspark_jms.delivery.commit_token import LedgerOwner
from pyspark_jms.errors import (
    CommitInDoubtError,
    JMSError,
    ReplayMismatchError,
    SinkFencedError,
    TransactionRolledBackError,
)
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink import sending_once
from pyspark_jms.sink.committing import find_for_write
from pyspark_jms.sink.tasks import LedgerTask

pytestmark = pytest.mark.broker


def options_of(broker, queue, **options):
    exactly_once = {"queue": queue, "deliveryGuarantee": "exactly-once", "reconnectTimeout": "0"}
    given = access(broker, "amqp") | exactly_once | options
    return SinkOptions.parse({name: str(value) for name, value in given.items()})


def task(number=0, partition=0, *, first=True, owner=None):
    """``first``: there was no attempt before, so the task does not look into the ledger."""
    owner = owner or uuid.uuid4().hex
    return LedgerTask(
        owner=LedgerOwner("query", owner),
        write=f"{owner}/{number}",
        partition=partition,
        batch=number,
        execution=uuid.uuid4().hex,
        may_be_repeated=not first,
    )


def again(first, **changed):
    """The same task in a later run."""
    return replace(first, may_be_repeated=True, execution=uuid.uuid4().hex, **changed)


def outcome_of(options, this, batches, **how):
    ledger = CommitLedger(options.connection, this.owner)
    return sending_once.send_exactly_once(ledger, options, this, batches, **how)


def send_exactly_once(options, this, batches):
    outcome = outcome_of(options, this, batches)
    assert not outcome.held
    return outcome.sent.rows


def entries_of(options, task):
    return find_for_write(CommitLedger(options.connection, task.owner), task)


def rows(*texts):
    return iter([pa.record_batch({"text": [str(text) for text in texts]})])


def test_rows_and_entry_come_together(broker, queue):
    options, this = options_of(broker, queue), task(3)
    assert send_exactly_once(options, this, rows(1, 2)) == 2
    (entry,) = entries_of(options, this)
    assert (entry.task, entry.batch, entry.rows, entry.execution) == (this.name, 3, 2, this.execution)
    assert take_texts(broker, queue) == ["1", "2"]


@pytest.mark.parametrize("looks", [True, False])
def test_the_same_rows_again_in_any_order_are_not_sent_again(broker, queue, looks):
    """Without the look-up, the token that the commit reads has the entry."""
    options, first = options_of(broker, queue), task()
    send_exactly_once(options, first, rows(*range(500)))
    repeated = again(first) if looks else first
    for _ in range(3):
        parts = iter([*rows(*range(499, 250, -1)), *rows(*range(251))])
        assert send_exactly_once(options, repeated, parts) == 500
    await_count(broker, queue, 500)
    assert len(entries_of(options, first)) == 1


def test_a_time_to_live_counted_from_now_does_not_make_other_rows(broker, queue):
    options, first = options_of(broker, queue), task()
    for this in (first, again(first)):
        batch = pa.record_batch({"text": ["a", "b"], "time_to_live": pa.array([3_600_000, 60_000], pa.int64())})
        assert send_exactly_once(options, this, iter([batch])) == 2
    await_count(broker, queue, 2)
    batch = pa.record_batch({"text": ["a", "b"], "time_to_live": pa.array([3_600_000, 60_001], pa.int64())})
    with pytest.raises(ReplayMismatchError):
        send_exactly_once(options, again(first), iter([batch]))


@pytest.mark.parametrize("looks", [True, False])
def test_other_rows_are_a_mismatch_and_are_not_sent(broker, queue, looks):
    options, first = options_of(broker, queue), task()
    send_exactly_once(options, first, rows(1, 2))
    repeated = again(first) if looks else first
    with pytest.raises(ReplayMismatchError, match=r"\[JMS_REPLAY_MISMATCH\].*with 2 rows.*3 rows.*onReplayMismatch"):
        send_exactly_once(options, repeated, rows(1, 2, 3))
    assert take_texts(broker, queue) == ["1", "2"]


def test_other_rows_are_sent_when_that_was_asked_for_and_only_once(broker, queue):
    options, first = options_of(broker, queue, onReplayMismatch="send"), task()
    send_exactly_once(options, first, rows(1, 2))
    for _ in range(2):
        assert send_exactly_once(options, again(first), rows(1, 2, 3)) == 3
        assert send_exactly_once(options, again(first), rows(2, 1)) == 2
    assert take_texts(broker, queue) == ["1", "1", "2", "2", "3"]


def test_a_task_without_rows_does_not_connect():
    nowhere = SinkOptions.parse({"brokerUrl": "amqp://127.0.0.1:1", "deliveryGuarantee": "exactly-once"})
    assert send_exactly_once(nowhere, task(first=False), iter(())) == 0
    assert send_exactly_once(nowhere, task(first=False), rows()) == 0


# --- other tasks of the write ----------------------------------------------------------------------------


def held_texts(outcome):
    """The bodies, of one character, of the messages that are left to the driver."""
    messages = [block.message(index) for block in outcome.held for index in range(len(block))]
    return [each.removesuffix(b"\0")[-1:].decode() for each in messages]


def test_a_task_holds_its_rows_when_an_earlier_run_sent_some_other_task(broker, queue):
    options, first = options_of(broker, queue), task(partition=1)
    send_exactly_once(options, first, rows(1, 2))
    other = again(first, partition=0)
    outcome = outcome_of(options, other, rows(3, 4, 5))
    assert held_texts(outcome) == ["3", "4", "5"]
    assert (outcome.entry.task, outcome.entry.rows, outcome.sent.rows) == (other.name, 3, 3)
    assert take_texts(broker, queue) == ["1", "2"]
    assert [entry.task for entry in entries_of(options, first)] == [first.name]


def test_a_task_sends_when_only_its_own_run_has_sent(broker, queue):
    """Another task of the same execution; tasks of other batches; nothing at all."""
    options, owner = options_of(broker, queue), uuid.uuid4().hex
    for number in (0, 1):
        send_exactly_once(options, task(number, owner=owner), rows("other batch"))
    this = again(task(2, owner=owner))
    assert send_exactly_once(options, this, rows(1)) == 1
    assert send_exactly_once(options, replace(this, partition=1), rows(2)) == 1
    assert take_texts(broker, queue) == ["1", "2", "other batch", "other batch"]


def test_with_onreplaymismatch_send_no_row_is_held(broker, queue):
    options, first = options_of(broker, queue, onReplayMismatch="send"), task(partition=1)
    for _ in range(2):
        send_exactly_once(options, again(first), rows(1))
        send_exactly_once(options, again(first, partition=0), rows(1, 2))
    assert take_texts(broker, queue) == ["1", "1", "2"]


def test_a_task_does_not_hold_more_than_the_driver_can_take(broker, queue, monkeypatch):
    monkeypatch.setattr(sending_once, "MAX_HELD_BYTES", 1 << 20)
    options, first = options_of(broker, queue), task(partition=1)
    send_exactly_once(options, first, rows(1))
    other = again(first, partition=0)
    outcome = outcome_of(options, other, rows("x" * 900_000))
    assert sum(len(block.data) for block in outcome.held) > 900_000
    reason = rf"\[JMS_REPLAY_MISMATCH\] .* {other.name} has more than 1 MB of rows.*Nothing was sent.*run it once with"
    with pytest.raises(ReplayMismatchError, match=reason):
        outcome_of(options, other, iter([*rows("x" * 900_000), *rows("y" * 200_000)]))
    assert send_exactly_once(replace(options, send_on_mismatch=True), other, rows("x" * 1_100_000)) == 1


def test_rows_that_are_compared_are_not_kept(broker, queue, monkeypatch):
    monkeypatch.setattr(sending_once, "MAX_HELD_BYTES", 1 << 20)
    options, first = options_of(broker, queue), task()
    for this in (first, again(first)):
        assert send_exactly_once(options, this, rows("x" * 1_100_000)) == 1


def test_a_write_id_of_another_batch_is_refused_though_the_rows_are_the_same(broker, queue):
    """With a constant writeId, these rows would be taken for those of the other batch, and skipped."""
    options, first = options_of(broker, queue), task(7)
    send_exactly_once(options, first, rows(1, 2))
    for given in (options, options_of(broker, queue, onReplayMismatch="send")):
        reason = rf"\[JMS_REPLAY_MISMATCH\] writeId {first.write} was used in batch 7 .* this is batch 8.*write_id"
        with pytest.raises(ReplayMismatchError, match=reason):
            send_exactly_once(given, again(first, batch=8), rows(1, 2))
    assert send_exactly_once(options, again(first), rows(1, 2)) == 2
    assert take_texts(broker, queue) == ["1", "2"]


def test_an_empty_replay_of_a_task_with_rows_is_no_mismatch(broker, queue):
    options, first = options_of(broker, queue), task()
    send_exactly_once(options, first, rows(1))
    assert send_exactly_once(options, again(first), rows()) == 0
    assert send_exactly_once(options, again(first), rows(1)) == 1
    assert take_texts(broker, queue) == ["1"]


def test_a_duplicate_id_of_a_row_is_left_out(broker, queue):
    """With it, the broker would refuse the transaction of the second task, or drop its row."""
    maps = pa.array([[("_AMQ_DUPL_ID", "x")]], pa.map_(pa.string(), pa.string()))
    for number in range(2):
        this = task(number)
        assert send_exactly_once(options_of(broker, queue), this, iter([pa.record_batch({"properties": maps})])) == 1
    # Artemis updates its count a few milliseconds after the receipt.
    wait_until(lambda: broker.message_count(queue) == 2, what="both rows")


# --- the discharge and its confirmation ------------------------------------------------------------------

DISCHARGE, ACCEPTED = b"\x00\x53\x32", b"\x00\x53\x24"
"""AMQP 1.0 §4.5.3 and §3.4.2."""
DISCHARGED = 7
"""This ``accepted`` of a new ledger confirms the discharge, after those of two requests to the management for a new
queue and two for the ledger, of the first token and of its acceptance."""


def proxied(broker, proxy, queue, **options):
    return options_of(broker, queue, brokerUrl=proxy.url, **options)


def test_a_confirmation_that_is_lost_is_looked_up_and_found(broker, queue):
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        proxy.to_client.cut_at(ACCEPTED, nth=DISCHARGED)
        assert send_exactly_once(proxied(broker, proxy, queue), task(), rows(1, 2)) == 2
        assert proxy.to_client.cut_done.wait(10)
    assert take_texts(broker, queue) == ["1", "2"]


def test_a_commit_that_never_arrived_is_in_doubt_and_the_next_attempt_sends(broker, queue):
    first = task()
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        proxy.to_broker.cut_at(DISCHARGE)
        options = proxied(broker, proxy, queue)
        with pytest.raises(CommitInDoubtError, match=r"\[JMS_COMMIT_IN_DOUBT\].*not in queue pyspark-jms\.commits"):
            send_exactly_once(options, first, rows(1, 2))
        await_count(broker, queue, 0)
        assert send_exactly_once(options, again(first), rows(1, 2)) == 2
    assert take_texts(broker, queue) == ["1", "2"]


def test_a_failed_look_up_leaves_the_commit_in_doubt(broker, queue):
    first = task()
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        proxy.to_client.before_cut = proxy.refuse
        proxy.to_client.cut_at(ACCEPTED, nth=DISCHARGED)
        with pytest.raises(CommitInDoubtError, match=r"not known .*pyspark-jms\.commits"):
            send_exactly_once(proxied(broker, proxy, queue), first, rows(1, 2))
        with pytest.raises(CommitInDoubtError, match=r"not known .*sent.*Nothing was sent"):
            send_exactly_once(proxied(broker, proxy, queue), again(first), rows(1, 2))
    assert send_exactly_once(options_of(broker, queue), again(first), rows(1, 2)) == 2
    assert take_texts(broker, queue) == ["1", "2"]


@pytest.mark.parametrize("carried_out", [True, pytest.param(False, marks=pytest.mark.deep)])
def test_a_broker_killed_at_the_commit_is_waited_for_and_the_ledger_read(killable, queue, carried_out):
    """Killed when the discharge has arrived, or when its confirmation is on the way; back some seconds later."""
    with Proxy(killable.host, killable.port, "amqp") as proxy:
        first = task()
        options = proxied(killable, proxy, queue, reconnectTimeout="60s")
        way = proxy.to_client if carried_out else proxy.to_broker
        way.cut_at(ACCEPTED if carried_out else DISCHARGE, nth=DISCHARGED if carried_out else 1)

        def kill_and_restart():
            assert way.cut_done.wait(20)
            killable.kill()
            killable.start()

        killer = threading.Thread(target=kill_and_restart)
        killer.start()
        if carried_out:
            assert send_exactly_once(options, first, rows(*range(100))) == 100
        else:
            with pytest.raises(CommitInDoubtError):
                send_exactly_once(options, first, rows(*range(100)))
            killer.join()
            assert send_exactly_once(options, again(first), rows(*range(100))) == 100
        killer.join()
        await_count(killable, queue, 100)


def test_a_commit_that_the_broker_refuses_sends_nothing(restricted, queue):
    address = f"full.{queue}"
    options, first = options_of(restricted, address), task()
    for this in (first, again(first)):
        with pytest.raises(TransactionRolledBackError, match="Nothing of this transaction was sent"):
            send_exactly_once(options, this, rows(*range(10)))
    await_count(restricted, address, 0)
    assert entries_of(options, first) == ()
    assert send_exactly_once(options, again(first), rows(1, 2)) == 2


@pytest.mark.parametrize("first", [True, False])
def test_without_permission_for_the_ledger_no_row_is_sent_and_the_error_names_the_permission(restricted, queue, first):
    options = options_of(restricted, queue, user="no-ledger", password="pw")
    with pytest.raises(JMSError, match=r"pyspark-jms\.commits\.o"):
        send_exactly_once(options, task(first=first, owner="o"), rows("secret-payload"))
    await_count(restricted, queue, 0)


def at_once(options, tasks):
    """Carry the tasks out at the same time; the rows of each, or its error."""
    ends = []

    def attempt(this):
        try:
            ends.append(send_exactly_once(options, this, rows(*range(100))))
        except JMSError as error:
            ends.append(error)

    attempts = [threading.Thread(target=attempt, args=(this,)) for this in tasks]
    for each in attempts:
        each.start()
    for each in attempts:
        each.join()
    return ends


def test_the_first_tasks_of_a_query_may_commit_at_the_same_moment(broker, queue, examples):
    """Artemis ends the connection of one of two that create a subscription at the same moment."""
    options = options_of(broker, queue)
    for _ in range(examples(10)):
        first = task()
        tasks = [replace(first, partition=partition) for partition in range(3)]
        assert at_once(options, tasks) == [100, 100, 100]


@pytest.mark.parametrize("later_run", [False, True])
def test_attempts_at_the_same_time_send_the_rows_once(broker, queue, later_run):
    """A speculative attempt; and a zombie of an earlier run beside the same task of a later one."""
    options, first = options_of(broker, queue), task()
    assert at_once(options, [first, first, again(first) if later_run else first]) == [100, 100, 100]
    await_count(broker, queue, 100)


def test_tasks_of_two_runs_at_the_same_time_never_mix(broker, queue):
    """An earlier run is alive and has one partition, the later one has two. Both send all partitions or ask."""
    options, first = options_of(broker, queue), task()
    later = [again(first, partition=1), again(first, partition=2)]
    ends = at_once(options, [first, *(replace(each, may_be_repeated=False, execution="b") for each in later)])
    assert all(end == 100 or isinstance(end, CommitInDoubtError) for end in ends)
    known = entries_of(options, first)
    assert len({entry.execution for entry in known}) == 1
    await_count(broker, queue, 100 * len(known))
    for each in (replace(first, may_be_repeated=True), *later):
        outcome = outcome_of(options, each, rows(*range(100)))
        assert bool(outcome.held) is (each.name not in {entry.task for entry in known})


def test_a_late_attempt_is_fenced(broker, queue):
    """Its batch is over: a later one has written."""
    options, owner = options_of(broker, queue), uuid.uuid4().hex
    send_exactly_once(options, task(5, owner=owner), rows(2))
    with pytest.raises(SinkFencedError, match=r"\[JMS_SINK_FENCED\]"):
        send_exactly_once(options, task(4, owner=owner), rows(1))
    assert take_texts(broker, queue) == ["2"]


# --- rows that are dropped ---------------------------------------------------------------------------


def some_bad(*texts, **columns):
    """Rows of which those with a NUL in the text, or without text, cannot be sent."""
    priorities = [4 if text and "\0" not in text else 77 for text in texts]
    batch = pa.record_batch({"text": texts, "JMSPriority": pa.array(priorities)} | columns)
    return iter([batch.slice(0, 2), batch.slice(2)])


@pytest.mark.parametrize("by_the_clock", [{}, {"time_to_live": [3_600_000] * 5}])
def test_a_replay_drops_the_same_rows(broker, queue, by_the_clock):
    options, first = options_of(broker, queue, onBadRow="drop"), task()
    for this in (first, again(first)):
        outcome = outcome_of(options, this, some_bad("a", "b\0", None, "c", "\0", **by_the_clock))
        assert outcome.sent == (2, 3)
    assert take_texts(broker, queue) == ["a", "c"]
    with pytest.raises(ReplayMismatchError, match=r"\b2 rows .*\b3 rows"):
        send_exactly_once(options, again(first), some_bad("a", "b", None, "c", "\0", **by_the_clock))


def test_a_task_whose_rows_are_all_dropped_sends_nothing_and_writes_no_entry(broker, queue):
    options, first = options_of(broker, queue, onBadRow="drop"), task()
    for this in (first, again(first)):
        outcome = outcome_of(options, this, some_bad(None, "\0", None))
        assert (outcome.sent, outcome.entry) == ((0, 3), None)
    assert entries_of(options, first) == ()
    assert take_texts(broker, queue) == []


def test_a_task_with_patience_waits_for_a_broker_that_is_away(broker, queue):
    """For its look-up, and for its own connection."""
    for this in (again(task()), task()):
        with Proxy(broker.host, broker.port, "amqp") as proxy:
            proxy.refuse()
            options = proxied(broker, proxy, queue)
            with pytest.raises(JMSError, match=r"amqp://127"):
                outcome_of(options, this, rows(1))
            threading.Timer(1, proxy.accept).start()
            assert outcome_of(options, this, rows(1), patience=60).sent == (1, 0)
    assert take_texts(broker, queue) == ["1", "1"]
