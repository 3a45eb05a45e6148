"""One YARN with HDFS, and one packed environment, for the session."""

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
    try:
        cluster = Yarn(tmp_path_factory.mktemp("yarn"))
        with cluster:
            yield cluster
    except EmbeddedBrokerError as error:
        pytest.skip(f"the jars of Hadoop cannot be had: {error}")


@pytest.fixture
def submit(yarn, archive, tmp_path, tested):
    """``submit(*legs, mode="cluster", conf=None)``: a job on YARN; killed at the end if it still runs."""
    running = []
    tested("artemis", ARTEMIS_VERSION)
    tested("hadoop", HADOOP)

    def submit(*legs, **choices):
        running.append(YarnJob(yarn, tmp_path / f"job-{len(running)}", legs, archive, **choices))
        return running[-1]

    yield submit
    for job in running:
        if not job.ended():
            yarn.kill_application(job.application)
        job.kill()
