"""The wheel, built and installed into a fresh environment as a user would; nothing of this checkout is in its path.

Another Python and another Spark than those of the run:

    PACKAGING_PYTHON=python3.13 PACKAGING_PYSPARK=4.2.1 pytest tests/packaging
"""

import contextlib
import os
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import own_process
import pyspark
import pytest
from rawstomp import RawStomp
from standalone import await_logged

from pyspark_jms.tools.testing.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

NO_COMPILER = {"CC": "/bin/false", "CXX": "/bin/false"}
ROOT = Path(__file__).parents[2]
SESSION = Path(__file__).with_name("session.py")
PYTHON = os.environ.get("PACKAGING_PYTHON", sys.executable)
PYSPARK = os.environ.get("PACKAGING_PYSPARK", pyspark.__version__)
EARLIER_CLIENT = "4.2.0"


def run(*command, seconds=600, **options):
    return own_process.run(command, seconds=seconds, **options).stdout


def as_a_user(**variables):
    """The environment without what the tests themselves need."""
    of_the_tests = ("PYTHONPATH", "PYTHONHOME", "SPARK_HOME", "PYSPARK_DRIVER_PYTHON")
    return {key: value for key, value in os.environ.items() if key not in of_the_tests} | variables


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The folder with the wheel and the source distribution; the wheel is built from the latter."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def installed(distributions, tmp_path_factory):
    """``installed(extra)``: the Python of a fresh environment that has the wheel and ``pyspark[extra]``."""
    made = {}

    def install(extra=""):
        if extra not in made:
            folder = tmp_path_factory.mktemp("environment")
            run(PYTHON, "-m", "venv", folder)
            (wheel,) = distributions.glob("*.whl")
            command = (folder / "bin/python", "-m", "pip", "install", "--quiet", wheel, f"pyspark{extra}=={PYSPARK}")
            run(*command, env=os.environ | NO_COMPILER)
            made[extra] = folder / "bin/python"
        return made[extra]

    return install


@pytest.fixture
def plays(broker, queue, tmp_path):
    """``plays(python, *arguments)``: session.py with that Python; every number has to come out, once."""

    def play(python, *arguments, **variables):
        environment = as_a_user(PYSPARK_PYTHON=str(python), **variables)
        access = (broker.url, broker.user, broker.password, queue)
        reason = run(python, SESSION, *arguments, *access, cwd=tmp_path, env=environment, seconds=400)
        with RawStomp(broker) as client:
            again = client.read(f"{queue}.again", wanted=500)
            assert client.read(queue) == client.read(f"{queue}.copies") == client.read(f"{queue}.again") == []
        assert sorted(int(message.body) for message in again) == list(range(500))
        return reason

    return play


def test_the_index_would_take_both_distributions(distributions):
    files = sorted(distributions.iterdir())
    assert [file.suffix for file in files] == [".whl", ".gz"]
    reason = run(sys.executable, "-m", "twine", "check", "--strict", *files)
    assert re.sub(r"\x1b\[\d*m", "", reason).count("PASSED") == 2


def test_the_wheel_has_no_compiled_code(distributions):
    """Its dependencies are installed without a compiler by the tests below."""
    (wheel,) = distributions.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")


def test_the_wheel_has_the_two_packages_and_says_that_they_are_typed(distributions):
    (wheel,) = distributions.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"pyspark_jms", "jms_selector"}
    assert {"pyspark_jms/py.typed", "jms_selector/py.typed"} <= set(names)
    assert not [name for name in names if "test_" in name or name.endswith(".pyc")]


def test_the_source_distribution_has_what_the_tests_and_the_image_need(distributions):
    (archive,) = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert {"docker-compose.yml", "jobs/Dockerfile", ".dockerignore", "Makefile", "tests/conftest.py"} <= names
    assert not [name for name in names if name.startswith((".venv", ".git/"))]


@pytest.mark.spark
def test_format_jms_is_found_without_registration(installed, plays, report):
    python = installed()
    plays(python)
    reason = run(python, "-c", "import sys, pyspark; print(sys.version.split()[0], pyspark.__version__)").split()
    report("wheel in a fresh environment: Python {}, PySpark {}".format(*reason))


@pytest.mark.spark
def test_registering_helps_where_another_package_breaks_the_look_up(installed, plays, tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "pyspark_broken.py").write_text("raise RuntimeError('a data source of somebody else')\n")
    python = installed()
    with pytest.raises(AssertionError, match="DATA_SOURCE_NOT_FOUND"):
        plays(python, PYTHONPATH=str(broken))
    plays(python, "--register", PYTHONPATH=str(broken))


@pytest.mark.spark
def test_a_session_of_spark_connect_finds_it_too(installed, plays):
    assert "Connect" in plays(installed("[connect]"), "--connect=local[2]")


@pytest.mark.spark
def test_a_client_of_an_earlier_release_finds_it_on_a_server_of_spark_connect(installed, plays, tmp_path):
    """The client has Spark's client alone: pyspark-jms is where the server is."""
    client = tmp_path / "client"
    run(PYTHON, "-m", "venv", client)
    run(client / "bin/python", "-m", "pip", "install", "--quiet", f"pyspark-client=={EARLIER_CLIENT}")
    with connect_server(installed("[connect]"), tmp_path) as remote:
        assert plays(client / "bin/python", f"--connect={remote}").split() == ["Spark", PYSPARK, "Connect"]


@contextlib.contextmanager
def connect_server(python, folder):
    """Its URL, while it runs."""
    port, log = free_port("127.0.0.1"), folder / "server"
    (folder / "spark-defaults.conf").write_text(f"spark.connect.grpc.binding.port {port}\n")
    home = run(python, "-c", "import pyspark; print(pyspark.__path__[0])").strip()
    path = f"{python.parent}:{os.environ['PATH']}"
    environment = as_a_user(PATH=path, PYSPARK_PYTHON=str(python), SPARK_CONF_DIR=str(folder), SPARK_HOME=home)
    command = ["bash", f"{home}/sbin/start-connect-server.sh", "--wait"]
    with own_process.started(command, log, cwd=folder, env=environment) as server:
        await_logged(server, log, "Spark Connect server started", "the server", 200)
        yield f"sc://127.0.0.1:{port}"
