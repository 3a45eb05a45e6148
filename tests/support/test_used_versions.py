"""``pytest --tested FILE`` writes the versions of a run of which all tests pass."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.fixture
def run(tmp_path):
    """``run(body)``: what a run with one test wrote, None if nothing. ``options``: more options of pytest."""

    def run(body, *options):
        (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
        (tmp_path / "test_it.py").write_text(f"def test_it(tested):\n    tested('Delta', '4.4.0')\n    {body}\n")
        arguments = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "--tested", "used.json", *options]
        paths = os.pathsep.join([str(TESTS / "support"), os.environ.get("PYTHONPATH", "")])
        subprocess.run(
            [sys.executable, "-m", "pytest", *arguments, "test_it.py"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": paths, "PYTEST_ADDOPTS": ""},
            capture_output=True,
            timeout=200,
            check=False,
        )
        file = tmp_path / "used.json"
        return json.loads(file.read_text()) if file.exists() else None

    return run


def test_a_run_writes_its_environment_and_what_its_tests_used(run):
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    own = {"pyspark-jms": version("pyspark-jms"), "PySpark": version("pyspark"), "Python": python}
    assert run("tested('Delta', '4.1.0')") == own | {"Delta": ["4.1.0", "4.4.0"]}


@pytest.mark.deep
def test_a_run_with_a_failure_writes_nothing(run):
    assert run("assert False") is None


@pytest.mark.deep
def test_a_process_whose_tests_pass_writes_nothing_for_a_run_with_a_failure(run):
    body = "assert False\n\ndef test_other():\n    pass"
    assert run(body, "-n", "2") is None
