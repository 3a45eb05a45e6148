"""One YARN with HDFS, and one packed environment, for the session."""

import contextlib

import pytest
import pythons
from yarn_cluster import HADOOP, Yarn, YarnJob, pack

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.tools.testing.jars import ARTEMIS_VERSION


@pytest.fixture(scope="session")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("environment")
    return pack(folder, pythons.build_wheel(folder))


@pytest.fixture(scope="session")
def yarn(tmp_path_factory):
    with _cluster(tmp_path_factory.mktemp("yarn")) as cluster:
        yield cluster


@pytest.fixture
def fresh_yarn(tmp_path):
    """For a test that breaks it."""
    with _cluster(tmp_path / "yarn") as cluster:
        yield cluster


@contextlib.contextmanager
def _cluster(folder):
    try:
        with Yarn(folder) as cluster:
            yield cluster
    except EmbeddedBrokerError as error:
        pytest.skip(f"the jars of Hadoop cannot be had: {error}")


@pytest.fixture
def submit(archive, tmp_path, tested):
    """``submit(yarn, *legs, mode="cluster", conf=None)``: a job; killed at the end if it still runs."""
    running = []
    tested("artemis", ARTEMIS_VERSION)
    tested("hadoop", HADOOP)

    def submit(yarn, *legs, **choices):
        running.append(YarnJob(yarn, tmp_path / f"job-{len(running)}", legs, archive, **choices))
        return running[-1]

    yield submit
    for job in running:
        if not job.ended():
            job.kill_application()
        job.kill()
