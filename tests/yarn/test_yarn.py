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

    def through(self, hits):
        """The messages come before and after each of them, and it strikes in the middle."""
        for hit in hits:
            written = self.sent
            self.send()
            self.until(written + COUNT // 4)
            hit(self._yarn, self.job)
        self.send()

    def has_each_once(self):
        assert in_queue(self._broker, self.target) == Counter(range(self.sent))
        assert self._broker.message_count(self.source) == 0


# --- what happens in the middle of the messages ------------------------------------------------------


def an_executor_is_killed(yarn, job):
    os.kill(job.processes(EXECUTOR)[0], signal.SIGKILL)


def the_application_master_is_killed(yarn, job):
    """The driver is in it; YARN starts a second attempt."""
    os.kill(job.processes(APPLICATION_MASTER)[0], signal.SIGKILL)


def the_name_node_is_restarted(yarn, job):
    yarn.carry_out("restart-namenode")


def a_node_manager_stops(yarn, job):
    """Its containers end: an executor, and perhaps the driver."""
    yarn.carry_out("stop-node 1")


def the_resource_manager_is_restarted(yarn, job):
    yarn.carry_out("restart-resourcemanager")


def once(moving, *hits):
    """Two readers, and a transaction for each task that writes."""
    moving.start()
    moving.through(hits)
    moving.until(moving.sent)
    moving.job.kill_application()
    moving.has_each_once()


def test_exactly_once_in_cluster_mode(artemis, yarn, submit):
    hits = an_executor_is_killed, the_application_master_is_killed, the_name_node_is_restarted
    once(Moving(artemis, yarn, submit, **ONCE, readers="2"), *hits)


def test_exactly_once_while_the_cluster_changes(artemis, fresh_yarn, submit):
    hits = the_resource_manager_is_restarted, a_node_manager_stops
    once(Moving(artemis, fresh_yarn, submit, **ONCE, readers="2"), *hits)


@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_at_least_once_in_cluster_mode(artemis, yarn, submit, protocol):
    """A ``yarn application -kill`` costs no delivery attempt: messages in flight go back, and the next one reads on."""
    url = artemis.amqp_url if protocol == "amqp" else artemis.url
    moving = Moving(artemis, yarn, submit, brokerUrl=url, windowBytes="1m")
    moving.start()
    moving.through([])
    moving.until(COUNT // 4)
    moving.send()
    moving.job.kill_application()
    wait_until(lambda: artemis.delivering_count(moving.source) == 0, 60, "the end of the connections")
    assert not [each for each in artemis.delivery_counts(moving.source) if each > 1]
    moving.start()
    moving.through([an_executor_is_killed, the_application_master_is_killed])
    wait_until(lambda: artemis.message_count(moving.source) == 0, SECONDS, "the end of the queue")
    moving.job.kill_application()
    assert set(in_queue(artemis, moving.target)) == set(range(moving.sent))


def test_the_journal_is_where_the_next_driver_sees_it(artemis, yarn, submit, tmp_path):
    """Exactly once over STOMP: the folder is on this machine, where both drivers run."""
    journal = {"brokerUrl": artemis.url, "journalLocation": str(tmp_path / "journal"), **ONCE}
    moving = Moving(artemis, yarn, submit, **journal)
    for mode in "client", "cluster", "client":
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
