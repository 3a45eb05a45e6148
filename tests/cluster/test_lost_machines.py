"""An executor or a whole worker that is killed while it is half-way through a task: another one does the task again.

And a machine that is frozen then, whose task goes on later.
"""

import os
import signal
from collections import Counter

import pytest
import session
from frames import DISCHARGE
from legs import from_queue, to_files, to_queue
from numbered import fill, in_committed_files, in_files, in_queue
from proxy import Proxy
from streaming import journal_in, left
from waiting import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

COUNT = 600
MANY = 6000
IN_HALVES = {
    "spark.sql.execution.python.udf.maxRecordsPerBatch": "20",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20",
    "spark.buffer.size": "512",
}
"""So few rows at a time go to a sink's task that, of many, those before the held one have reached the broker."""


def executor_killed(worker):
    executors = worker.executors()
    assert executors
    session.kill(*executors)
    wait_until(lambda: not set(executors) & set(worker.executors()), what="the end of the executor")


def worker_killed(worker):
    worker.kill()


def hold(gate, at):
    return {"hold": {"gate": str(gate), "at": str(at)}}


def held_on(cluster, gate, job):
    """The worker of a task that waits at the gate."""

    def waiting():
        assert not job.ended(), job.output()[-6000:]
        return [path for path in gate.iterdir() if path.name.isdigit()]

    wait_until(waiting, 300, "a task that is held")
    pid = int(waiting()[0].name)
    return next(worker for worker in cluster.workers if pid in session.pids(worker.session_id))


@pytest.mark.parametrize("lost", [executor_killed, worker_killed])
@pytest.mark.parametrize("journal", ["no journal", "journal"])
def test_a_batch_outlives_the_executor_that_reads_it(
    broker, queue, cluster, submit, gate, journal, lost, tmp_path, report
):
    fill(broker, queue, COUNT)
    kept = journal_in(cluster.unseen / queue) if journal == "journal" else {}
    read = from_queue(broker, queue, maxMessagesPerTrigger="200", partitionBytes="16k", **kept)
    job = submit(read | hold(gate, COUNT // 6) | to_files(tmp_path / "files", tmp_path / "checkpoint"))
    lost(held_on(cluster, gate, job))
    (gate / "open").touch()
    job.end()
    assert "Lost executor" in job.output()
    assert in_files(tmp_path / "files") == Counter(range(COUNT))
    assert left(broker, queue) == 0
    report(f"{lost.__name__} mid-batch, {journal}: {COUNT} messages, 0 lost, 0 duplicated")


def receiving(cluster, proxy):
    """The worker and the process id of a task whose discharge the proxy holds."""
    while True:
        wait_until(proxy.to_broker.held.is_set, 300, "a discharge")
        port = proxy.to_broker.held_link.client_port
        for worker in cluster.workers:
            for pid in session.pids(worker.session_id):
                if port in (local for local, _ in session.connections(pid)):
                    return worker, pid
        DISCHARGE.hold(proxy)  # this one is the driver's
        proxy.to_broker.release()


@pytest.mark.parametrize("lost", [executor_killed, worker_killed])
@pytest.mark.parametrize("point", ["before the discharge of a value", "amid the rows of a value"])
def test_a_value_outlives_the_executor_that_receives_it(
    broker, queue, cluster, submit, gate, point, lost, tmp_path, report
):
    """Another task replaces the value, or answers with it."""
    fill(broker, queue, COUNT)
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        once = {"brokerUrl": proxy.url, "deliveryGuarantee": "exactly-once", "readers": "2"}
        read = from_queue(broker, queue, maxMessagesPerTrigger="200", **once)
        write = to_files(tmp_path / "files", tmp_path / "checkpoint")
        if point == "before the discharge of a value":
            DISCHARGE.hold(proxy)
            job = submit(read | write)
            worker, _ = receiving(cluster, proxy)
            lost(worker)
            proxy.to_broker.release()
        else:
            job = submit(read | hold(gate, COUNT // 6) | write)
            lost(held_on(cluster, gate, job))
            (gate / "open").touch()
        job.end()
    assert "Lost executor" in job.output()
    assert in_committed_files(tmp_path / "files") == Counter(range(COUNT))
    assert left(broker, queue) == 0
    report(f"{lost.__name__} {point}: {COUNT} messages, 0 lost, 0 duplicated")


def test_of_two_attempts_of_a_task_one_counts(broker, queue, cluster, submit, gate, tmp_path):
    """Speculation: an attempt is held amid its rows, and the other worker has the messages that it received."""
    fill(broker, queue, COUNT)
    once = {"brokerUrl": broker.amqp_url, "deliveryGuarantee": "exactly-once"}
    read = from_queue(broker, queue, maxMessagesPerTrigger="200", readers="2", **once)
    write = to_queue(broker, f"{queue}.copy", tmp_path / "checkpoint", **once)
    settings = {"": "true", ".interval": "200ms", ".multiplier": "1.1", ".quantile": "0.4", ".minTaskRuntime": "1s"}
    conf = {f"spark.speculation{name}": value for name, value in settings.items()}
    submit(read | hold(gate, COUNT // 6) | write, conf=conf).end()
    assert [path.name.isdigit() for path in gate.iterdir()] == [True]
    assert in_queue(broker, f"{queue}.copy") == Counter(range(COUNT))
    assert left(broker, queue) == 0


IMPATIENT = {
    "spark.network.timeout": "30s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "5s",
}
"""So long after its last heartbeat Spark takes an executor for lost."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("discharge", ["on its way", "at the broker"])
def test_a_task_on_a_frozen_machine_changes_nothing_when_it_goes_on(
    fresh_broker, queue, cluster, submit, gate, discharge, tmp_path, report
):
    """The machine stops while the discharge of a task is on its way. The second attempt waits until the broker has
    ended the connection of the first one, and the query goes on. Two batches later the first one goes on too.
    """
    broker = fresh_broker(acceptor_options={"amqpIdleTimeout": "5000"})
    fill(broker, queue, COUNT)
    with Proxy(broker.host, broker.port, "amqp") as proxy:
        options = {"brokerUrl": proxy.url, "deliveryGuarantee": "exactly-once", "reconnectTimeout": "20m"}
        read = from_queue(broker, queue, maxMessagesPerTrigger="200", **options) | hold(gate, COUNT - 1)
        DISCHARGE.hold(proxy)
        job = submit(read | to_files(tmp_path / "files", tmp_path / "checkpoint"), conf=IMPATIENT)
        worker, task = receiving(cluster, proxy)
        session.signal_session(worker.session_id, signal.SIGSTOP)
        if discharge == "at the broker":
            proxy.to_broker.release()
        assert held_on(cluster, gate, job) is not worker
        proxy.to_broker.release()
        connections = proxy.accepted
        os.kill(task, signal.SIGCONT)  # Spark would end the task as soon as its executor goes on
        if discharge == "on its way":
            wait_until(lambda: proxy.accepted > connections, 100, "a second look at the register")
        wait_until(lambda: not session.connections(task), 100, "the end of the task")
        worker.kill()
        (gate / "open").touch()
        job.end()
    assert in_committed_files(tmp_path / "files") == Counter(range(COUNT))
    assert left(broker, queue) == 0
    report(f"a frozen task, its discharge {discharge}: {COUNT} messages, 0 lost, 0 duplicated")


@pytest.mark.parametrize("lost", [executor_killed, worker_killed])
@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_rows_are_sent_once_when_the_executor_that_sends_them_is_lost(
    fresh_broker, queue, cluster, submit, gate, guarantee, lost, tmp_path, report
):
    """At least once too: the broker rolls back what a lost task had sent. Only a lost confirmation makes copies."""
    broker = fresh_broker()
    connections = broker.server.getConnectionCount
    fill(broker, queue, MANY)
    wait_until(lambda: connections() == 0, what="the end of the sender's connection")
    read = from_queue(broker, queue, maxMessagesPerTrigger=str(MANY // 2))  # one task
    once = {"brokerUrl": broker.amqp_url} if guarantee == "exactly-once" else {}
    write = to_queue(broker, f"{queue}.copy", tmp_path / "checkpoint", deliveryGuarantee=guarantee, **once)
    job = submit(read | hold(gate, MANY // 3) | write, conf=IN_HALVES)
    worker = held_on(cluster, gate, job)
    wait_until(lambda: connections() >= 2, what="a transaction, beside the receiver's connection")
    lost(worker)
    (gate / "open").touch()
    job.end()
    assert "Lost executor" in job.output()
    assert in_queue(broker, f"{queue}.copy") == Counter(range(MANY))
    assert left(broker, queue) == 0
    report(f"{lost.__name__} mid-transaction, {guarantee}: {MANY} messages, 0 lost, 0 duplicated")
