"""The other clients read every message and leave nothing."""

import pytest
from waiting import wait_until

from bench import peers, raw, raw_amqp


@pytest.mark.parametrize(("client", "fill"), [(peers.proton, raw_amqp.fill), (peers.stomp_py, raw.fill)])
def test_a_client_leaves_nothing(broker, job, client, fill):
    fill(job)
    assert client(job).messages == job.messages
    wait_until(lambda: broker.message_count(job.queue) == 0)  # nothing confirms Proton's acceptances
