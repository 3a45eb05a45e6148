import subprocess
import sys

PROBE = """
import gc
from pyspark_jms.source.gc_freeze import freeze_gc
freeze_gc()
frozen = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
freeze_gc()
print(frozen > 1000, gc.get_freeze_count() == frozen)
"""


def test_freezes_what_is_imported_once():
    ended = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout == "True True\n"
