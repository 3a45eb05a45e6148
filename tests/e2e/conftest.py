"""Containers, where there is a Docker engine; the last lines of a run report a missing engine."""

import os

import containers
import pytest

WITHOUT = "no Docker engine: the container tests did not run (docs/embedded-broker.md has a broker without one)"


@pytest.fixture(scope="session", autouse=True)
def engine(request):
    """PYSPARK_JMS_REQUIRE_DOCKER=1 makes a failure of what is skipped without an engine: CI sets it."""
    os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")  # its image may be out of reach; tests clean up
    version = containers.engine()
    if version is None:
        if os.environ.get("PYSPARK_JMS_REQUIRE_DOCKER"):
            pytest.fail(WITHOUT)
        pytest.skip(WITHOUT)
    return version


@pytest.fixture(scope="module")
def network(engine):
    from testcontainers.core.network import Network

    with Network() as network:
        yield network


@pytest.fixture(scope="module")
def artemis(network):
    with containers.ArtemisContainer(network=network) as broker:
        yield broker.wait_until_serving()
