"""200 partitions a batch, batch after batch: connections at a time are bounded by the tasks that run at a time."""

from collections import Counter

import pytest
from connections import Connections
from legs import from_queue, to_queue
from numbered import fill, in_queue
from streaming import left

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

PARTITIONS = 200
BATCHES = 5
CORES = 2


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_200_partitions_a_batch(broker, queue, cluster, submit, guarantee, tmp_path, report):
    count = PARTITIONS * BATCHES
    fill(broker, queue, count)
    with Connections(broker) as connections:
        read = from_queue(broker, queue, maxMessagesPerTrigger=str(PARTITIONS), partitionBytes="1")
        once = {"brokerUrl": broker.amqp_url} if guarantee == "exactly-once" else {}
        copies = to_queue(broker, f"{queue}.copy", tmp_path / "checkpoint", deliveryGuarantee=guarantee, **once)
        reported = submit(read | copies).end(600)
    assert in_queue(broker, f"{queue}.copy") == Counter(range(count))
    assert left(broker, queue) == 0
    tasks = [worker.finished_tasks(reported["application"]) for worker in cluster.workers]
    assert sum(tasks) == count  # a message each
    # By the first batch's tasks; and each task that finds no ledger tries to create it.
    looked_up = PARTITIONS if guarantee == "exactly-once" else 0
    created = connections.made - (1 + count + looked_up)
    assert created in (range(1, 1 + 2 * CORES) if looked_up else [0])
    # The receiver, one for each task that runs, and one before it that the broker has not seen close yet.
    assert connections.most <= 1 + 2 * CORES
    seconds = (
        sum(batch["durationMs"]["triggerExecution"] for [batches] in [reported["legs"]] for batch in batches) / 1000
    )
    report(
        f"{guarantee}: {BATCHES} batches of {PARTITIONS} partitions, {tasks} tasks on the workers in {seconds:.0f} s,"
        f" {connections.made} connections, at most {connections.most} at a time"
    )
