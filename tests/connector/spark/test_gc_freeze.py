import subprocess
import sys

PROBE = """
import gc
from pyspark_jms.spark.gc_freeze import freeze_gc
freeze_gc()
first = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
freeze_gc()
second = gc.get_freeze_count()
import wave
freeze_gc()
print(first > 1000, second == first, gc.get_freeze_count() > second + 1000)
"""


def test_freezes_again_only_after_an_import():
    ended = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout == "True True True\n"
