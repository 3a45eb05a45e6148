import os
import signal
import subprocess
import sys

import pytest

from pyspark_jms.errors import StoppedError
from pyspark_jms.source.stopping import StopRequest, driver_heap, warn_of_small_heap

RUNNER = """
import importlib.machinery, os, signal, sys
sys.modules["__main__"].__spec__ = importlib.machinery.ModuleSpec({name!r}, None)
from pyspark_jms.source.stopping import StopRequest
request = StopRequest()
request.install()
os.kill(os.getpid(), signal.{signal})
print("alive", request.made)
"""


def run(name, signal="SIGTERM"):
    command = [sys.executable, "-c", RUNNER.format(name=name, signal=signal)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_only_sets_a_flag_in_the_runner(name):
    ended = run("pyspark.sql.streaming.python_streaming_source_runner", name)
    assert (ended.returncode, ended.stdout) == (0, "alive True\n")


def test_sigterm_ends_every_other_process_as_always():
    assert run("my_job").returncode == -signal.SIGTERM


def test_check_raises_once_asked():
    request = StopRequest()
    request.check()
    request.made = True
    with pytest.raises(StoppedError, match="JMS_STOPPED"):
        request.check()


def test_installing_here_changes_nothing():
    before = signal.getsignal(signal.SIGTERM)
    StopRequest().install()
    assert signal.getsignal(signal.SIGTERM) is before
    assert os.getpid()


CHILD = "from pyspark_jms.source.stopping import driver_heap; print(driver_heap())"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}], check=True)"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize(
    ("arguments", "heap"), [([], None), (["-Xmx1g"], 1 << 30), (["-Xmx512m", "x", "-Xmx2048k"], 2 << 20)]
)
def test_the_heap_of_the_process_that_started_this_one(arguments, heap):
    command = [sys.executable, "-c", PARENT, *arguments]
    reported = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    assert reported.stdout.strip() == str(heap)


def test_a_test_has_no_java_above_it():
    assert driver_heap() is None


@pytest.mark.parametrize(("heap", "warned"), [(None, False), (1 << 30, False), (999 << 20, True)])
def test_a_heap_too_small_for_the_largest_message_is_warned_of(heap, warned, caplog):
    warn_of_small_heap(100 << 20, heap)
    assert ("spark.driver.memory to 1000 MB" in caplog.text) == warned
