"""The other clients read every message and leave nothing."""

import pytest
from waiting import wait_until

from bench import peers, raw, raw_amqp
from bench.job import Job


@pytest.mark.parametrize(("client", "fill"), [(peers.proton, raw_amqp.fill), (peers.stomp_py, raw.fill)])
def test_a_client_leaves_nothing(broker, queue, client, fill):
    job = Job(
        host=broker.host, port=broker.port, user=broker.user, password=broker.password, broker_pid=broker.pid,
        queue=queue, messages=20, per_transaction=10, body_bytes=100,
    )  # fmt: skip
    fill(job)
    assert client(job).messages == 20
    wait_until(lambda: broker.message_count(queue) == 0)  # nothing confirms Proton's acceptances
