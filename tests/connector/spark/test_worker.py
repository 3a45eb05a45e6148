import os
import subprocess
import sys

import pytest

from pyspark_jms.errors import TransactionRolledBackError
from pyspark_jms.spark.worker import to_the_end

PROBE = """
import gc
from pyspark_jms.spark.worker import settle_in
settle_in()
frozen = gc.get_freeze_count()
kept = [[] for _ in range(1000)]
settle_in()
print(frozen > 1000, gc.get_freeze_count() == frozen)
"""


def test_freezes_what_is_imported_once():
    ended = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout == "True True\n"


def main(infile):
    """As pyspark.worker's: what it reads from is called ``infile``."""
    return list(to_the_end(iter("abc")))


def read_from(octets):
    """A worker whose input goes on with so many octets behind the rows, and then ends."""
    reading, writing = os.pipe()
    os.write(writing, octets)
    os.close(writing)
    with os.fdopen(reading, "rb") as infile:
        return main(infile), infile.read()


def test_rows_that_end_as_spark_says_are_all_and_what_it_says_is_left_to_be_read():
    assert read_from(b"\xff\xff\xff\xfc") == (["a", "b", "c"], b"\xff\xff\xff\xfc")


def test_rows_that_end_with_the_input_are_not_all():
    with pytest.raises(TransactionRolledBackError, match="before the last one"):
        read_from(b"")


def test_outside_of_a_worker_the_rows_are_what_they_are():
    assert list(to_the_end(iter("abc"))) == ["a", "b", "c"]
