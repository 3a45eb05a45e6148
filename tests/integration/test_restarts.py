"""A job that is killed in the middle and started again: nothing is lost, and repeats are counted.

Stopped by SIGTERM: test_jobs.py. On every broker: tests/brokers/test_every_broker.py.
"""

import files_job
import own_process
import pytest
from numbered import fill
from streaming import access, batches_done, journal_in, left
from waiting import await_count, wait_until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.releases]

COUNT = 1500
BATCH = 100


@pytest.mark.parametrize(
    ("journal", "most_repeated"),
    [
        # the batch that Spark had not committed, and the one whose ACK was on its way
        pytest.param(False, 2 * BATCH, id="plain", marks=pytest.mark.slow),
        pytest.param(True, 0, id="journal", marks=pytest.mark.deep),
    ],
)
def test_kill_9_of_the_driver_loses_nothing(spark, broker, queue, tmp_path, report, journal, most_repeated):
    dead = broker.message_count("DLQ")
    fill(broker, queue, COUNT)
    options = access(broker) | {"queue": queue, "maxMessagesPerTrigger": str(BATCH), "idleTimeout": "1s"}
    if journal:
        options |= journal_in(tmp_path / "journal")
    with files_job.running(options, tmp_path) as process:
        wait_until(lambda: batches_done(tmp_path) >= 3, seconds=150, what="the third batch")
        own_process.kill(process)
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the subscription")
    found = files_job.read_on(spark, options | {"maxMessagesPerTrigger": str(COUNT)}, tmp_path)
    assert left(broker, queue) == 0
    assert set(found) == set(range(COUNT))
    report(f"kill -9 of the driver: {COUNT} sent, {COUNT} read, {found.total() - COUNT} repeated")
    assert found.total() - COUNT <= most_repeated
    await_count(broker, "DLQ", dead)
