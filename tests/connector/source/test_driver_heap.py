import os
import subprocess
import sys

import pytest

from pyspark_jms.source.driver_heap import driver_heap, warn_of_small_heap

CHILD = "from pyspark_jms.source.driver_heap import driver_heap; print(driver_heap())"
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
