"""A whole write: its tasks, and what the driver does after them."""

import subprocess
import sys
import uuid
from dataclasses import replace

import pyarrow as pa
import pytest
from rawstomp import RawStomp
from streaming import access
from waiting import await_count

from pyspark_jms.amqp.sink import AMQP_SINK
from pyspark_jms.delivery.ledger_owner import LedgerOwner
from pyspark_jms.errors import ReplayMismatchError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.results import Outcome, Sent, TaskResult
from pyspark_jms.sink.tasks import LedgerTask
from pyspark_jms.sink.writing import finish_write, write_task
from pyspark_jms.spark.protocols import sink_protocol


class Writer:
    """A query that writes to a queue of its own, with a ledger of its own."""

    def __init__(self, broker, queue, **options):
        self._broker, self._queue, self._owner = broker, queue, LedgerOwner("query", uuid.uuid4().hex)
        if not hasattr(broker, "amqp_url"):
            pytest.skip("needs an embedded broker")
        exactly_once = {"brokerUrl": broker.amqp_url, "queue": queue, "deliveryGuarantee": "exactly-once"}
        self.options = SinkOptions.parse(access(broker) | exactly_once | options)

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
        protocol = sink_protocol(self.options)
        results = [
            write_task(protocol, self.options, iter([pa.record_batch({"text": texts})]), task, patience=0)
            for task, texts in zip(self.tasks(len(partitions), batch), partitions, strict=True)
            if texts is not None
        ]
        if finish:
            finish_write(protocol, self.options, [result.outcome for result in results])
        return results

    def sent(self):
        """The texts in the queue; they stay there."""
        with RawStomp(self._broker) as client:
            return sorted(message.body.decode() for message in client.read(self._queue, ack=False, quiet=0.3))

    def entries(self, batch):
        ledger = sink_protocol(self.options).commit_ledger(self.options.connection, self._owner)
        return len(ledger.find_for_write(f"{self._owner}/{batch}"))


@pytest.fixture
def writer(broker, queue):
    return Writer(broker, queue)


def test_without_a_task_of_the_ledger_rows_are_sent_at_least_once(writer):
    rows = iter([pa.record_batch({"text": ["a", "b"]})])
    assert write_task(sink_protocol(writer.options), writer.options, rows, None, patience=3) == TaskResult(Sent(2))
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


def test_batch_0_makes_the_token_although_it_has_no_rows(broker, writer):
    token = f"{writer.ledger}.token"
    writer.write([], batch=1)
    assert not broker.has_queue(token)
    writer.write([])
    await_count(broker, token, 1)
    writer.write(["a"], batch=1)
    assert writer.sent() == ["a"]


def test_a_ledger_that_cannot_be_shortened_is_logged(broker, queue, caplog):
    """The rows are sent, so the write does not fail."""
    writer = Writer(broker, queue)
    nowhere = replace(writer.options, connection=SinkOptions.parse({"brokerUrl": "amqp://127.0.0.1:1"}).connection)
    task = replace(writer.tasks(1, 1)[0], owner=LedgerOwner("job", "nightly"))
    finish_write(AMQP_SINK, nowhere, [Outcome(sent=Sent(0), task=task)])
    assert f"the entries of {task.write} stay in {task.owner.queue} one by one" in caplog.text


# --- the runs of a job -----------------------------------------------------------------------------------

RUN = """
import sys, time, uuid
import pyarrow as pa
from dataclasses import replace
from pyspark_jms.amqp.sink import AMQP_SINK
from pyspark_jms.delivery.ledger_owner import identity_of
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.sink.tasks import LedgerTask
from pyspark_jms.sink.writing import finish_write, write_task

ahead, write_id, text, url, user, password, queue = sys.argv[1:]
real = time.time
time.time = lambda: real() + float(ahead)
options = SinkOptions.parse({"brokerUrl": url, "user": user, "password": password, "queue": queue,
                             "deliveryGuarantee": "exactly-once", "writeId": write_id})
owner, batch = identity_of(write_id)
task = LedgerTask(owner=owner, write=write_id, partition=0, batch=batch, execution=uuid.uuid4().hex,
                  may_be_repeated=True)
result = write_task(AMQP_SINK, options, iter([pa.record_batch({"text": [text]})]), task, patience=0)
finish_write(AMQP_SINK, options, [result.outcome])
"""


@pytest.mark.broker
def test_a_machine_whose_clock_is_ahead_does_not_make_a_job_forget_its_runs(broker, queue):
    """Another run of the same job, and of another one, eight days ahead or behind; the first run is retried then."""
    if not hasattr(broker, "amqp_url"):
        pytest.skip("needs an embedded broker")
    job, day = f"nightly-{uuid.uuid4().hex}", 86_400
    where = [broker.amqp_url, broker.user, broker.password, queue]
    runs = [(0, "monday", "1"), (8 * day, "tuesday", "2"), (-8 * day, "wednesday", "3"), (0, "monday", "1"),
            (8 * day, "monday", "1")]  # fmt: skip
    for ahead, run, text in runs:
        command = [sys.executable, "-c", RUN, str(ahead), f"job:{job}/{run}", text, *where]
        subprocess.run(command, check=True, timeout=120)
    await_count(broker, queue, 3)
