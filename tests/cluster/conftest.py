"""One cluster for the session, and Pythons that have the wheel: the code as it is installed, not as it lies here."""

import sys

import pytest
import pythons
from legs import Submission
from standalone import Standalone


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    return pythons.build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """A Python with the wheel, for the driver and, where it is the same on all machines, for the workers."""
    return pythons.make(tmp_path_factory.mktemp("installed"), *pythons.OF_SPARK, *pythons.OF_OURS, wheel=wheel)


@pytest.fixture(scope="session")
def bare(tmp_path_factory):
    """A Python as a cluster has it for PySpark's sake: without this package and what it needs."""
    return pythons.make(tmp_path_factory.mktemp("bare"), *pythons.OF_SPARK)


@pytest.fixture(scope="session")
def standalone():
    if sys.platform != "linux":
        pytest.skip("the cluster's processes are found in /proc")
    with Standalone() as cluster:
        yield cluster


@pytest.fixture
def gate(tmp_path):
    """Where a task waits at one message: see ``hold`` of a leg."""
    folder = tmp_path / "gate"
    folder.mkdir()
    return folder


@pytest.fixture
def cluster(standalone):
    """The one of the session, whole again if a test before killed something."""
    standalone.restore()
    return standalone


@pytest.fixture
def submit(cluster, installed, tmp_path):
    """``submit(*legs, conf=…)``: a job on the cluster that runs these legs; killed at the end if it still runs."""
    running = []

    def submit(*legs, python=installed, **choices):
        folder = tmp_path / f"job-{len(running)}"
        running.append(Submission(cluster, folder, legs, python=python, **choices))
        return running[-1]

    yield submit
    for job in running:
        job.kill()
