"""What grows with a cluster and what does not: CPU and memory by place, while a queue that was held back is read.

The values of docs/performance.md are the last lines of such a run. On a busy machine trust the CPU, not the rates.
"""

import json
from types import SimpleNamespace

import pytest
import session
from legs import from_queue, to_nothing
from rawstomp import RawStomp
from standalone import EXECUTOR
from streaming import journal_in
from waiting import wait_until

from bench.processes import Meter, Sampler

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

WARM, COUNT = 10_000, 60_000
PROPERTIES = [(f"property{k}", f"value {k}") for k in range(5)]


def send(broker, queues, count):
    for queue in queues:
        with RawStomp(broker) as client:
            client.send(queue, [([("n", str(n)), *PROPERTIES], "x" * 1024) for n in range(count // len(queues))])


def delivering(broker, queues, *, go_on):
    """Let the broker deliver from these queues, or hold them back."""
    for queue in map(broker.server.locateQueue, queues):
        queue.resume() if go_on else queue.pause()


def places(cluster, job):
    """Which processes belong to the driver, and which to executors; ``{pid: place}``."""
    found = {}
    for process in session.of_session(job.session_id):
        found[process.pid] = "receivers" if session.RUNNER in process.command else "driver"
    for worker in cluster.workers:
        for process in session.of_session(worker.session_id):
            if EXECUTOR in process.command or session.WORKER in process.command:
                found[process.pid] = "executors"
    return found


def read_all(broker, queues):
    wait_until(lambda: not any(map(broker.message_count, queues)), 200, "the last acknowledgement")


CASES = {
    "1 query, 1 queue, 1 core": SimpleNamespace(queries=[1], cores=1, journal=None),
    "1 query, 1 queue, 2 cores": SimpleNamespace(queries=[1], cores=2, journal=None),
    "1 query, 2 queues, 2 cores": SimpleNamespace(queries=[2], cores=2, journal=None),
    "2 queries, 1 queue each, 2 cores": SimpleNamespace(queries=[1, 1], cores=2, journal=None),
    "1 query, 1 queue, 2 cores, journal": SimpleNamespace(queries=[1], cores=2, journal="false"),
    "1 query, 1 queue, 2 cores, shared journal": SimpleNamespace(queries=[1], cores=2, journal="true"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_message_costs_and_where(broker, queue, cluster, submit, tmp_path, name, report):
    case = CASES[name]
    queries = [[f"{queue}.{q}.{k}" for k in range(queues)] for q, queues in enumerate(case.queries)]
    queues = [each for query in queries for each in query]
    legs = []
    for number, query in enumerate(queries):
        kept = journal_in(tmp_path / f"journal-{number}") | {"journalShared": case.journal} if case.journal else {}
        read = from_queue(broker, json.dumps(query), **kept)
        legs.append(read | to_nothing(tmp_path / f"checkpoint-{number}"))
    send(broker, queues, WARM)
    job = submit(*legs, together=True, conf={"spark.cores.max": case.cores, "spark.executor.memory": "640m"})
    read_all(broker, queues)
    delivering(broker, queues, go_on=False)
    send(broker, queues, COUNT)
    roles = lambda: places(cluster, job)  # noqa: E731
    with Sampler(roles, every=0.2) as memory, Meter(roles) as meter:
        delivering(broker, queues, go_on=True)
        read_all(broker, queues)
    assert [broker.consumer_count(each) for each in queues] == [1] * len(queues)
    assert len(session.runners(job.session_id)) == len(queries)
    cost = ", ".join(f"{place} {seconds / COUNT * 1e6:.1f}" for place, seconds in sorted(meter.cpu.items()))
    peaks = ", ".join(f"{place} {size >> 20}" for place, size in memory.peaks().items())
    report(f"{name}: {COUNT / meter.seconds:,.0f} messages/s; CPU us a message: {cost}; MB at most: {peaks}")
