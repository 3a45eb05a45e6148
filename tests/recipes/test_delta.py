"""Delta, in an environment with the newest PySpark that Delta supports; the process is killed in the middle.

``DELTA_PYTHON`` names the Python of an environment that has it already.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pages
import pytest
import pythons
from session import kill_session
from waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

PAGE = "delta-exactly-once.md"
RECIPE = Path(__file__).with_name("delta_exactly_once.py")


@pytest.fixture(scope="module")
def delta_python(tmp_path_factory):
    """What the page's ``pip install`` makes, with the wheel of this code."""
    if "DELTA_PYTHON" in os.environ:
        return Path(os.environ["DELTA_PYTHON"])
    folder = tmp_path_factory.mktemp("delta")
    (command,) = re.findall(r"^pip install (.*)$", (pages.FOLDER / PAGE).read_text(), re.MULTILINE)
    pinned = [word.strip("'") for word in command.split() if word != "pyspark-jms"]
    assert [each.partition("==")[0] for each in pinned] == ["pyspark", "delta-spark"]
    wheel = pythons.build_wheel(folder)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=100)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", str(wheel), *pinned], check=True, timeout=600)
    return python


def counted(stdout):
    return [line for line in stdout.splitlines() if line.startswith("rows: ")]


def test_the_page_prints_what_it_shows(run, delta_python):
    shown = pages.output(PAGE, "delta_exactly_once.py")
    printed = counted(run("delta_exactly_once.py", "send", "read", "count", python=delta_python))
    assert "".join(f"{line}\n" for line in printed) == shown


def test_each_message_is_in_the_table_once_whenever_the_process_is_killed(run, start, delta_python, tmp_path):
    log = tmp_path / "data/orders/_delta_log"
    run("delta_exactly_once.py", "send", "read", "send", python=delta_python)
    for _ in range(2):
        enough = len(versions(log)) + 2
        kill_at(start(delta_python, RECIPE, "read", python=delta_python), log, enough)
    killed_at = versions(log)
    shown = pages.output(PAGE, "read.after.kill")
    assert counted(run("delta_exactly_once.py", "read", "count", python=delta_python))[0] + "\n" == shown
    assert versions(log) > killed_at, "no kill came in the middle"


def versions(log):
    return {path.name for path in log.glob("*.json")}


def kill_at(process, log, enough):
    """As soon as the table has so many versions."""
    wait_until(
        lambda: len(versions(log)) >= enough or process.poll() is not None, 500, f"version {enough} of the table"
    )
    kill_session(process.pid)
