from dataclasses import replace

import pytest

from bench.rounds import base_job


@pytest.fixture
def job(broker, queue):
    """Seven messages of 100 bytes, in three transactions."""
    return replace(base_job(broker, 7), queue=queue, per_transaction=3, body_bytes=100)
