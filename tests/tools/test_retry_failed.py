"""CI runs a failed test again, twice, and passes only if it passes both times."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

COUNTED = """
from pathlib import Path

RUNS = Path(__file__).with_suffix(".runs")

def run_number():
    return int(RUNS.read_text())

def passes_from_run(first):
    RUNS.write_text(str(run_number() + 1 if RUNS.exists() else 1))
    assert run_number() >= first
"""


@pytest.fixture
def retried(tmp_path):
    """Run the given files of tests as CI does, and return the finished process."""

    def run(*arguments, **files):
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(COUNTED + text)
        command = [sys.executable, str(ROOT / "tools/retry_failed.py"), *arguments]
        environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # their imports take five times a run's CPU
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    return run


@pytest.mark.deep
def test_passed_tests_are_run_once(retried):
    done = retried(test_one="def test_it(): passes_from_run(1)")
    assert done.returncode == 0
    assert "running again" not in done.stdout


@pytest.mark.deep
@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n", "2"]], ids=["one process", "workers"])
def test_a_test_that_passes_twice_alone_depends_on_pace(retried, workers):
    done = retried(*workers, test_one="def test_it(): passes_from_run(2)\ndef test_fine(): pass")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("running again: test_one.py::test_it") == 2
    assert "depends on pace:\n  test_one.py::test_it" in done.stdout
    assert "test_fine" not in done.stdout


def test_a_test_that_fails_again_fails_the_run(retried):
    done = retried(test_one="def test_it(): passes_from_run(9)", test_two="def test_it(): passes_from_run(2)")
    assert done.returncode == 1
    assert "failed again:\n  test_one.py::test_it" in done.stdout
    assert "depends on pace:\n  test_two.py::test_it" in done.stdout


@pytest.mark.deep
def test_a_test_that_passes_only_one_of_two_times_fails_the_run(retried):
    done = retried(test_one="def test_it():\n    passes_from_run(2)\n    assert run_number() != 3")
    assert done.returncode == 1
    assert done.stdout.count("running again") == 2


@pytest.mark.deep
def test_a_fixture_that_fails_counts_as_its_test(retried):
    done = retried(test_one="import pytest\n@pytest.fixture\ndef it(): passes_from_run(2)\ndef test_it(it): pass")
    assert done.returncode == 0
    assert "depends on pace:\n  test_one.py::test_it" in done.stdout


@pytest.mark.deep
def test_many_failures_are_not_run_again(retried):
    done = retried(test_one="import pytest\n@pytest.mark.parametrize('n', range(6))\ndef test_it(n): assert False")
    assert done.returncode == 1
    assert "running again" not in done.stdout


@pytest.mark.deep
def test_a_file_that_cannot_be_imported_fails_the_run(retried):
    done = retried(
        "--continue-on-collection-errors",
        test_one="import missing_module",
        test_two="def test_it(): passes_from_run(2)",
    )
    assert done.returncode != 0
    assert "running again" not in done.stdout
