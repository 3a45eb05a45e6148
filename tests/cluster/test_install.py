"""Every way that docs/deployment.md gives of bringing the package to workers, and those it warns of.

The driver's own Python lies where the workers do not see it: what they run came to them by that way or not at all.
"""

import shutil
import subprocess
import sys
from collections import Counter

import pytest
import pythons
from legs import from_queue, to_files, to_queue
from numbered import fill, in_files, in_queue
from standalone import may_hide
from streaming import left

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(may_hide() is None, reason="nothing can be hidden from the workers here: no mount namespaces"),
]

COUNT = 200


@pytest.fixture(scope="module")
def driver(standalone, wheel):
    """The driver's Python, which the workers do not see."""
    return pythons.make(standalone.unseen / "driver", *pythons.OF_SPARK, *pythons.OF_OURS, wheel=wheel)


@pytest.fixture(scope="module")
def packages(wheel, tmp_path_factory):
    """A folder as ``pip install --target`` makes it: the package and what it needs, and nothing that PySpark has."""
    folder = tmp_path_factory.mktemp("packages")
    for name in pythons.with_needs(*pythons.OF_OURS):
        for entry in pythons.entries(name):
            copy = shutil.copytree if entry.is_dir() else shutil.copy
            copy(entry, folder / entry.name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(folder), str(wheel)], check=True, timeout=100)
    return folder


@pytest.fixture(scope="module")
def zipped(packages, tmp_path_factory):
    return shutil.make_archive(str(tmp_path_factory.mktemp("zipped") / "jms"), "zip", packages)


@pytest.fixture(scope="module")
def packed(installed, tmp_path_factory):
    """The whole environment as one file: a venv whose Python is the machine's."""
    archive = tmp_path_factory.mktemp("packed") / "env.tar.gz"
    subprocess.run(["tar", "-chzf", str(archive), "-C", str(installed.parents[1]), "."], check=True, timeout=200)
    return archive


@pytest.fixture
def job(broker, queue, submit, tmp_path):
    """``job(python, …)``: from a queue to files, and from it to another queue; ended, well or not."""

    def job(python, **choices):
        fill(broker, queue, COUNT)
        fill(broker, f"{queue}.second", COUNT)
        parts = {"partitionBytes": "8k"}
        return submit(
            from_queue(broker, queue, **parts) | to_files(tmp_path / "files", tmp_path / "first"),
            from_queue(broker, f"{queue}.second", **parts) | to_queue(broker, f"{queue}.copy", tmp_path / "second"),
            python=python,
            **choices,
        )

    return job


@pytest.fixture
def went_through(broker, queue, cluster, tmp_path):
    """``went_through(job)``: both legs, with tasks on both workers."""

    def went_through(job):
        reported = job.end()
        assert in_files(tmp_path / "files") == in_queue(broker, f"{queue}.copy") == Counter(range(COUNT))
        assert left(broker, queue) == left(broker, f"{queue}.second") == 0
        assert all(worker.finished_tasks(reported["application"]) for worker in cluster.workers)

    return went_through


# --- ways that work ---------------------------------------------------------------------------------


def test_installed_in_the_python_of_every_machine(job, went_through, installed, driver):
    went_through(job(installed, driver=driver))


def test_an_environment_in_archives_that_is_unpacked_beside_the_driver_too(job, went_through, packed, cluster, queue):
    here = cluster.unseen / queue
    (here / "env").mkdir(parents=True)
    subprocess.run(["tar", "-xzf", str(packed), "-C", str(here / "env")], check=True, timeout=100)
    went_through(job("./env/bin/python", arguments=["--archives", f"{packed}#env"], cwd=here))


@pytest.fixture
def drivers_own(packages, cluster, queue):
    """The variables of a driver that has the packages where the workers do not see them."""
    return {"PYTHONPATH": shutil.copytree(packages, cluster.unseen / queue)}


def test_a_folder_of_packages_in_archives(job, went_through, bare, driver, zipped, drivers_own):
    archives, conf = ["--archives", f"{zipped}#jms"], {"spark.executorEnv.PYTHONPATH": "./jms"}
    went_through(job(bare, arguments=archives, conf=conf, environment=drivers_own))


def test_a_folder_of_packages_that_all_machines_see(job, went_through, bare, packages):
    went_through(job(bare, environment={"PYTHONPATH": str(packages)}))


def test_py_files_and_register(job, went_through, bare, zipped, drivers_own):
    went_through(job(bare, arguments=["--py-files", zipped], environment=drivers_own, register=True))


# --- ways that do not -------------------------------------------------------------------------------


def refused(job, *words):
    assert job.wait() != 0
    for each in words:
        assert each in job.output(), job.output()[-6000:]


@pytest.mark.parametrize(("file", "register"), [("zipped", False), ("wheel", True)])
def test_py_files_without_register_and_a_wheel_as_py_files(job, bare, drivers_own, request, file, register):
    files = ["--py-files", str(request.getfixturevalue(file))]
    started = job(bare, arguments=files, environment=drivers_own, register=register)
    refused(started, "Lost task", "ModuleNotFoundError: No module named 'pyspark_jms'")


def test_a_driver_python_that_the_workers_do_not_have(job, installed, driver):
    started = job(installed, environment={"PYSPARK_DRIVER_PYTHON": str(driver)})
    refused(started, "Lost task", f'Cannot run program "{driver}"')


def test_an_environment_in_archives_that_the_driver_does_not_have(job, packed, driver):
    started = job("./env/bin/python", driver=driver, arguments=["--archives", f"{packed}#env"])
    refused(started, "DATA_SOURCE_NOT_FOUND")


def test_nowhere(job, bare):
    refused(job(bare), "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: jms")


def test_cluster_mode(job, installed):
    started = job(installed, arguments=["--deploy-mode", "cluster"])
    refused(started, "Cluster deploy mode is currently not supported for python applications on standalone clusters.")
