"""Queries on YARN, with the checkpoint on HDFS: processes die, nodes stop, and each message is counted at the end."""

import os
import signal
import uuid
from collections import Counter

import pytest
from legs import from_queue, to_queue
from numbered import fill, in_queue
from waiting import wait_until
from yarn_cluster import APPLICATION_MASTER, EXECUTOR

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

COUNT, BATCH = 120, 20
ONCE = {"deliveryGuarantee": "exactly-once"}
SECONDS = 400


class Moving:
    """A query from a queue to another, whose messages have consecutive numbers."""

    def __init__(self, broker, yarn, submit, **read):
        name = uuid.uuid4().hex[:8]
        self._broker, self._yarn, self._submit = broker, yarn, submit
        self.source, self.target = f"yarn.{name}.in", f"yarn.{name}.out"
        over_amqp = {"brokerUrl": broker.amqp_url}
        checkpoint = f"{yarn.hdfs}/checkpoints/{name}"
        self.leg = from_queue(broker, self.source, maxMessagesPerTrigger=str(BATCH), **over_amqp | read)
        self.leg |= to_queue(broker, self.target, checkpoint, **over_amqp, **ONCE)
        self.sent = 0
        self.job = None

    def start(self, **choices):
        """A query that goes on until it is killed."""
        self.job = self._submit(self._yarn, self.leg | {"trigger": {"processingTime": "0 seconds"}}, **choices)

    def run(self, **choices):
        """A query that reads what is there, and ends."""
        self.job = self._submit(self._yarn, self.leg, **choices)
        assert self.job.wait(SECONDS) == 0, self.job.output()[-6000:]

    def send(self, count=COUNT):
        fill(self._broker, self.source, count, first=self.sent)
        self.sent += count

    def written(self):
        return self._broker.message_count(self.target)

    def until(self, count):
        def there():
            assert not self.job.ended(), self.job.output()[-6000:]
            return self.written() >= count

        wait_until(there, SECONDS, f"{count} messages at the end")

    def has_each_once_after(self, hit):
        """The messages come before and after it, and it strikes in the middle."""
        self.send()
        self.start()
        self.until(COUNT // 4)
        hit(self._yarn, self.job)
        self.send()
        self.until(self.sent)
        self.job.kill_application()
        self.has_each_once()

    def has_each_once(self):
        assert in_queue(self._broker, self.target) == Counter(range(self.sent))
        assert self._broker.message_count(self.source) == 0


# --- what happens in the middle of the messages ------------------------------------------------------


def nothing(yarn, job):
    pass


def an_executor_is_killed(yarn, job):
    os.kill(job.processes(EXECUTOR)[0], signal.SIGKILL)


def the_application_master_is_killed(yarn, job):
    """The driver is in it; YARN starts a second attempt."""
    os.kill(job.processes(APPLICATION_MASTER)[0], signal.SIGKILL)


def the_name_node_is_restarted(yarn, job):
    yarn.carry_out("restart-namenode")


HITS = [
    nothing,
    an_executor_is_killed,
    the_application_master_is_killed,
    the_name_node_is_restarted,
]


@pytest.mark.parametrize("hit", HITS)
def test_exactly_once_in_cluster_mode(artemis, yarn, submit, hit):
    """Two readers, and a transaction for each task that writes."""
    Moving(artemis, yarn, submit, **ONCE, readers="2").has_each_once_after(hit)


def test_an_application_that_is_killed_costs_no_delivery_attempt(artemis, yarn, submit):
    """``yarn application -kill``: messages in flight go back; the next application reads on."""
    moving = Moving(artemis, yarn, submit, windowBytes="1m")
    moving.send()
    moving.start()
    moving.until(COUNT // 4)
    moving.send()
    moving.job.kill_application()
    wait_until(lambda: artemis.delivering_count(moving.source) == 0, 60, "the end of the connections")
    attempts = artemis.delivery_counts(moving.source)
    moving.run()
    found = in_queue(artemis, moving.target)
    assert set(found) == set(range(moving.sent)), "at least once"
    assert not [each for each in attempts if each > 1]


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_the_journal_is_where_the_next_driver_sees_it(artemis, yarn, submit, tmp_path, mode):
    """Exactly once over STOMP: the folder is on this machine, where both drivers run."""
    journal = {"brokerUrl": artemis.url, "journalLocation": str(tmp_path / "journal"), **ONCE}
    moving = Moving(artemis, yarn, submit, **journal)
    for _ in range(2):
        moving.send()
        moving.run(mode=mode)
    moving.has_each_once()


def test_dynamic_allocation_with_decommission(artemis, yarn, submit):
    moving = Moving(artemis, yarn, submit, **ONCE, readers="2")
    conf = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "1",
        "spark.dynamicAllocation.maxExecutors": "3",
        "spark.dynamicAllocation.executorIdleTimeout": "5s",
        "spark.decommission.enabled": "true",
    }
    moving.start(conf=conf)
    for _ in range(2):
        moving.send()
        moving.until(moving.sent)
        wait_until(lambda: len(moving.job.processes(EXECUTOR)) == 1, SECONDS, "the end of idle executors")
    moving.job.kill_application()
    moving.has_each_once()


def test_speculation_with_readers(artemis, yarn, submit):
    """A second attempt of a task waits for the lock of the first, and has its messages."""
    moving = Moving(artemis, yarn, submit, **ONCE, readers="2")
    moving.send(2 * COUNT)
    conf = {"spark.speculation": "true", "spark.speculation.multiplier": "1.01", "spark.speculation.quantile": "0.1"}
    conf |= {"spark.speculation.interval": "50ms", "spark.speculation.minTaskRuntime": "1ms"}
    moving.run(conf=conf)
    moving.has_each_once()


@pytest.mark.parametrize("line", ["stop-node 1", "restart-resourcemanager"])
def test_a_part_of_the_cluster_stops(artemis, fresh_yarn, submit, line):
    """With a node manager its containers end: an executor, and perhaps the driver."""
    moving = Moving(artemis, fresh_yarn, submit, **ONCE, readers="2")
    moving.has_each_once_after(lambda yarn, _: yarn.carry_out(line))
