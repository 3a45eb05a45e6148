import os
import signal
import subprocess
import sys

import pytest

from pyspark_jms.errors import StoppedError
from pyspark_jms.source.stopping import StopRequest

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
