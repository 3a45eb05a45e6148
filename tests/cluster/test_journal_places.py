"""A journal in a folder that the workers see, and in one that only the driver does: what travels through the driver."""

from collections import Counter

import pytest
from legs import from_queue, to_queue
from numbered import fill, in_queue
from rawstomp import RawStomp
from standalone import may_hide
from streaming import journal_in, left

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

COUNT = 1000
hidden = pytest.mark.skipif(may_hide() is None, reason="nothing can be hidden from the workers: no mount namespaces")


@pytest.fixture
def job(broker, queue, submit, tmp_path):
    """``job(journal, shared)``: from a queue, by this journal, to another queue."""

    def job(journal, shared):
        fill(broker, queue, COUNT)
        kept = journal_in(journal) | {"journalShared": shared}
        read = from_queue(broker, queue, maxMessagesPerTrigger="300", partitionBytes="32k", **kept)
        copies = to_queue(broker, f"{queue}.copy", tmp_path / "checkpoint")
        return submit(read | copies)

    return job


@pytest.fixture
def copied(broker, queue, cluster):
    """Every message once in the other queue, by tasks on both workers."""

    def copied(job):
        reported = job.end()
        assert in_queue(broker, f"{queue}.copy") == Counter(range(COUNT))
        assert left(broker, queue) == 0
        assert all(worker.finished_tasks(reported["application"]) for worker in cluster.workers)

    return copied


def test_a_folder_that_all_see_is_read_by_the_tasks(job, copied, tmp_path):
    copied(job(tmp_path / "journal", "true"))


@hidden
def test_messages_of_a_folder_that_only_the_driver_sees_travel(job, copied, cluster, queue):
    copied(job(cluster.unseen / queue, "false"))


@hidden
def test_shared_said_of_a_folder_that_the_workers_do_not_see(job, cluster, queue):
    started = job(cluster.unseen / queue, "true")
    assert started.wait() != 0
    assert "[JMS_JOURNAL_IO] Could not read" in started.output()
    assert "leave out journalShared" in started.output()


# --- what travels, travels in a task ----------------------------------------------------------------


@pytest.fixture
def large_tasks(broker, queue, submit, tmp_path):
    """``large_tasks(**options)``: a task of 3 MB where Spark allows 1."""

    def large_tasks(**options):
        with RawStomp(broker) as client:
            client.send(queue, [([("n", "0")], "x" * (3 << 20))])
        read = from_queue(broker, queue, **options)
        write = to_queue(broker, f"{queue}.copy", tmp_path / "checkpoint")
        return submit(read | write, conf={"spark.rpc.message.maxSize": "1"})

    return large_tasks


def test_a_task_that_is_too_large_for_spark_is_refused(large_tasks, broker, queue):
    job = large_tasks()
    assert job.wait() != 0
    assert "which exceeds max allowed: spark.rpc.message.maxSize" in job.output()
    assert left(broker, queue, 1) == 1


def test_with_a_shared_journal_only_its_place_travels(large_tasks, broker, queue, tmp_path):
    large_tasks(deliveryGuarantee="exactly-once", journalLocation=str(tmp_path / "journal"), journalShared="true").end()
    assert left(broker, f"{queue}.copy", 1) == 1
