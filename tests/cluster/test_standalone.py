"""A standalone cluster of two workers: messages go through executors that have nothing but the wheel."""

from collections import Counter

import pytest
from connections import Connections
from legs import from_files, from_queue, to_files, to_queue
from numbered import fill, in_files, in_queue
from streaming import left

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.deep]

COUNT = 2000
CORES = 2
A_TASK_A_FILE = {"spark.sql.files.maxPartitionBytes": "4k", "spark.sql.files.openCostInBytes": "0"}
"""Or even more of them: tasks of the second leg, with a connection each."""


def test_messages_go_through_a_cluster_with_a_bounded_number_of_connections(
    broker, queue, cluster, submit, tmp_path, report
):
    fill(broker, queue, COUNT)
    files = tmp_path / "files"
    with Connections(broker) as connections:
        read = from_queue(broker, queue, maxMessagesPerTrigger="500", partitionBytes="64k")
        reported = submit(
            read | to_files(files, tmp_path / "first"),
            from_files(files) | to_queue(broker, f"{queue}.copy", tmp_path / "second"),
            conf=A_TASK_A_FILE,
        ).end()
    assert left(broker, queue) == 0
    assert in_files(files) == in_queue(broker, f"{queue}.copy") == Counter(range(COUNT))
    tasks = [worker.finished_tasks(reported["application"]) for worker in cluster.workers]
    assert all(tasks)
    assert connections.made > 4 * CORES
    assert connections.most <= 2 * CORES  # a sink's task on each core, and what the broker has not seen close yet
    report(
        f"standalone cluster: {COUNT} messages to files and back, {tasks} tasks on its workers,"
        f" {connections.made} connections, {connections.most} at a time"
    )
