"""A whole write: its tasks, and what the driver does after them."""

import json
import subprocess
import sys
import uuid
from dataclasses import replace

import pyarrow as pa
import pytest
from proxy import Proxy
from rawstomp import RawStomp, take_texts
from streaming import access
from waiting import await_count

from pyspark_jms.amqp.sink import CommitLedger
from pyspark_jms.delivery.commit_token import LedgerOwner
from pyspark_jms.errors import CommitInDoubtError, ReplayMismatchError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.tasks import LedgerTask, Sent, TaskOutcome, TaskResult
from pyspark_jms.sink.writing import finish_write, send_held
from pyspark_jms.spark.worker import run_task


class Writer:
    """A query that writes to a queue of its own, with a ledger of its own."""

    def __init__(self, broker, queue, **options):
        self._broker, self._queue, self._owner = broker, queue, LedgerOwner("query", uuid.uuid4().hex)
        exactly_once = {"queue": queue, "deliveryGuarantee": "exactly-once", "reconnectTimeout": "0"}
        self.options = SinkOptions.parse(access(broker, "amqp") | exactly_once | options)

    @property
    def ledger(self):
        return self._owner.queue

    def tasks(self, count, batch):
        execution = uuid.uuid4().hex
        return [
            LedgerTask(
                owner=self._owner,
                write=f"{self._owner}/{batch}",
                partition=partition,
                batch=batch,
                execution=execution,
                may_be_repeated=True,
            )
            for partition in range(count)
        ]

    def write(self, *partitions, batch=0, finish=True):
        """``partitions``: the texts of each, or None for a task that fails before it sends."""
        results = [
            run_task(self.options, iter([pa.record_batch({"text": texts})]), task)
            for task, texts in zip(self.tasks(len(partitions), batch), partitions, strict=True)
            if texts is not None
        ]
        if finish:
            finish_write(self.new_ledger(), self.options, [result.outcome for result in results])
        return results

    def run(self, *partitions, options=None, finish=True):
        """Write, and return the outcomes. At the end the driver sends what the tasks held, and keeps their entries."""
        outcomes = [result.outcome for result in self.write(*partitions, finish=False)]
        if finish:
            options = options or self.options
            send_held(CommitLedger(options.connection, self._owner), options, outcomes)
        return outcomes

    def sent(self):
        """The texts in the queue; they stay there."""
        with RawStomp(self._broker) as client:
            return sorted(message.body.decode() for message in client.read(self._queue, ack=False, quiet=0.3))

    def entries(self, batch):
        return len([entry for entry in self.new_ledger().find() if entry.batch == batch])

    def new_ledger(self):
        return CommitLedger(self.options.connection, self._owner)


@pytest.fixture
def writer(broker, queue):
    return Writer(broker, queue)


def test_without_a_task_of_the_ledger_rows_are_sent_at_least_once(writer):
    rows = iter([pa.record_batch({"text": ["a", "b"]})])
    assert run_task(writer.options, rows, None) == TaskResult(Sent(2))
    assert (writer.sent(), writer.entries(0)) == (["a", "b"], 0)


def test_a_repeated_write_sends_nothing_again(writer):
    writer.write(["a", "b"], ["c"])
    writer.write(["b", "a"], ["c"])
    assert writer.sent() == ["a", "b", "c"]
    with pytest.raises(ReplayMismatchError):
        writer.write(["a"], ["c"])
    assert writer.sent() == ["a", "b", "c"]


def test_rows_that_tasks_held_are_sent_at_the_end(writer):
    writer.write(None, ["c"], finish=False)
    writer.write(["a", "b"], ["c"])
    assert writer.sent() == ["a", "b", "c"]
    with pytest.raises(ReplayMismatchError):
        writer.write(None, None, ["a", "b", "c"])
    assert writer.sent() == ["a", "b", "c"]


def test_the_entries_of_earlier_batches_are_gone(writer):
    writer.write(["a"])
    writer.write(["b"], batch=1)
    assert [writer.entries(batch) for batch in (0, 1)] == [0, 1]


def test_a_query_begins_its_ledger_with_its_first_rows(broker, writer):
    token = f"{writer.ledger}.token"
    writer.write([])
    assert not broker.has_queue(token)
    writer.write(["a"], batch=1)
    await_count(broker, token, 1)
    assert writer.sent() == ["a"]


def test_a_ledger_that_cannot_be_shortened_is_logged(broker, queue, caplog):
    """The rows are sent, so the write does not fail."""
    writer = Writer(broker, queue)
    nowhere = replace(writer.options, connection=SinkOptions.parse({"brokerUrl": "amqp://127.0.0.1:1"}).connection)
    task = replace(writer.tasks(1, 1)[0], owner=LedgerOwner("job", "nightly"))
    finish_write(CommitLedger(nowhere.connection, task.owner), nowhere, [TaskOutcome(sent=Sent(0), task=task)])
    assert f"the entries of {task.write} stay in {task.owner.queue} one by one" in caplog.text


# --- the runs of a job -----------------------------------------------------------------------------------

RUNS = """
import json, sys, time, uuid
import pyarrow as pa
from dataclasses import replace
from pyspark_jms.amqp.sink import CommitLedger
from pyspark_jms.delivery.commit_token import identity_of
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.tasks import LedgerTask
from pyspark_jms.sink.writing import finish_write
from pyspark_jms.spark.worker import run_task

runs, url, user, password, queue = sys.argv[1:]
real = time.time
for ahead, write_id, text in json.loads(runs):
    time.time = lambda ahead=ahead: real() + ahead
    options = SinkOptions.parse({"brokerUrl": url, "user": user, "password": password, "queue": queue,
                                 "deliveryGuarantee": "exactly-once", "writeId": write_id})
    owner, batch = identity_of(write_id)
    task = LedgerTask(owner=owner, write=write_id, partition=0, batch=batch, execution=uuid.uuid4().hex,
                      may_be_repeated=True)
    result = run_task(options, iter([pa.record_batch({"text": [text]})]), task)
    finish_write(CommitLedger(options.connection, owner), options, [result.outcome])
"""
"""In a process of its own, because it changes the clock."""


def test_a_machine_whose_clock_is_ahead_does_not_make_a_job_forget_its_runs(broker, queue):
    """Another run of the same job, and of another one, eight days ahead or behind; the first run is retried then."""
    job, day = f"nightly-{uuid.uuid4().hex}", 86_400
    where = [*access(broker, "amqp").values(), queue]
    runs = [(0, "monday", "1"), (8 * day, "tuesday", "2"), (-8 * day, "wednesday", "3"), (0, "monday", "1"),
            (8 * day, "monday", "1")]  # fmt: skip
    given = json.dumps([(ahead, f"job:{job}/{run}", text) for ahead, run, text in runs])
    subprocess.run([sys.executable, "-c", RUNS, given, *where], check=True, timeout=120)
    await_count(broker, queue, 3)


# --- rows that tasks held ----------------------------------------------------------------------------------

DISCHARGE, ACCEPTED = b"\x00\x53\x32", b"\x00\x53\x24"
"""AMQP 1.0 §4.5.3 and §3.4.2. A broker answers a row and an acceptance of a token with one accepted, a discharge with
two, the look for the queue with one."""

A, B, C, D = ["a1", "a2"], ["b1"], ["c1", "c2", "c3"], ["d1"]


def test_the_rest_of_the_same_partitions_is_sent(broker, queue, writer):
    writer.run(None, B, finish=False)
    outcomes = writer.run(A, B, C)
    assert [bool(outcome.held) for outcome in outcomes] == [True, False, True]
    assert take_texts(broker, queue) == sorted(A + B + C)
    assert sorted(entry.task for entry in writer.new_ledger().find()) == [task.name for task in writer.tasks(3, 0)]
    assert not any(outcome.held for outcome in writer.run(A, B, C))
    assert take_texts(broker, queue) == []


def test_rows_that_were_not_sent_may_be_in_other_partitions(broker, queue, writer):
    """Every row that was sent is in a committed partition, so no other row was sent."""
    writer.run(A, None, None, None, finish=False)
    writer.run(A, B + C + D)
    assert take_texts(broker, queue) == sorted(A + B + C + D)


def test_other_partitions_are_refused_and_nothing_is_sent(broker, queue, writer):
    writer.run(None, None, C, D, finish=False)
    write = writer.tasks(1, 0)[0].write
    reason = (
        rf"\[JMS_REPLAY_MISMATCH\] {write} is repeated in other partitions\. An earlier run sent 2 partitions; the 2"
    )
    reason += r" partitions of this run do not have the rows of partition 2 \(3 rows\), partition 3 \(1 rows\)\. None"
    with pytest.raises(ReplayMismatchError, match=reason):
        writer.run(A + B, C + D)
    with pytest.raises(ReplayMismatchError, match=r"1 partition .*onReplayMismatch=send"):
        writer.run(A + B + C + D)
    assert take_texts(broker, queue) == sorted(C + D)


def test_a_partition_that_is_now_empty_is_a_mismatch(broker, queue, writer):
    writer.run(A, None, finish=False)
    with pytest.raises(ReplayMismatchError, match=r"partition 0 \(2 rows\)"):
        writer.run([], A + B)
    assert take_texts(broker, queue) == A


def test_many_partitions_are_named_in_part(writer):
    writer.run(None, *[[f"row {n}"] for n in range(7)], finish=False)
    with pytest.raises(ReplayMismatchError, match=r"partition 5 \(1 rows\) .*\b2\b"):
        writer.run(A)


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_crash_between_two_partitions_is_finished_by_the_next_run(broker, queue, writer, carried_out):
    """The second COMMIT of the driver is lost, or is carried out and its confirmation is lost."""
    writer.run(None, B, None, finish=False)
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        way = proxy.to_client if carried_out else proxy.to_broker
        way.before_cut = proxy.refuse
        frame, nth = (ACCEPTED, 6 + len(A + C)) if carried_out else (DISCHARGE, 2)
        way.cut_at(frame, nth=nth)
        with pytest.raises(CommitInDoubtError):
            writer.run(A, B, C, options=Writer(broker, queue, brokerUrl=proxy.url).options)
    outcomes = writer.run(A, B, C)
    assert [bool(outcome.held) for outcome in outcomes] == [False, False, not carried_out]
    assert take_texts(broker, queue) == sorted(A + B + C)


def test_a_commit_whose_confirmation_is_lost_is_looked_up(broker, queue, writer):
    writer.run(None, B, finish=False)
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        proxy.to_client.cut_at(ACCEPTED, nth=3 + len(A))
        writer.run(A, B, options=Writer(broker, queue, brokerUrl=proxy.url).options)
    assert take_texts(broker, queue) == sorted(A + B)


def test_without_a_look_up_nothing_is_sent(broker, queue, writer):
    writer.run(None, B, finish=False)
    nowhere = Writer(broker, queue, brokerUrl="amqp://127.0.0.1:1").options
    with pytest.raises(CommitInDoubtError, match=r"Nothing .*sent"):
        writer.run(A, B, options=nowhere)
    assert take_texts(broker, queue) == B


def test_without_held_rows_the_driver_does_not_connect(broker, queue, writer):
    nowhere = Writer(broker, queue, brokerUrl="amqp://127.0.0.1:1").options
    writer.run(A, B, options=nowhere)
    send_held(CommitLedger(nowhere.connection, LedgerOwner("query", "x")), nowhere, [])
    assert take_texts(broker, queue) == sorted(A + B)
