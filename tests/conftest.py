"""One broker and one Spark for the whole session; a queue of its own for every test."""

import uuid

import pytest

from pyspark_jms.testing import EmbeddedArtemis


@pytest.fixture(scope="session")
def broker():
    with EmbeddedArtemis(max_delivery_attempts=10, heap="1g") as artemis:
        yield artemis


@pytest.fixture
def queue(request):
    """A queue name nobody used before, even on a broker that other sessions use too."""
    return f"{request.node.originalname}.{uuid.uuid4().hex[:8]}"
