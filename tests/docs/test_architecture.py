"""ARCHITECTURE.md names files that exist, and every file that has a message in hand on its way from socket to row."""

import pickle
import re
import subprocess
import sys
import threading
from collections import deque
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from streaming import access

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.testing import JmsClient

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
PACKAGE = "/connector/pyspark_jms/"
BODY = "the body of one message"


def test_every_file_that_it_names_exists():
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    named = set(re.findall(r"`([\w/.-]+\.py)`", TEXT))
    assert len(TEXT.encode()) <= 9_000, "one page"
    missing = {name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in files)}
    assert len(named) > 50
    assert not missing


def listed():
    """The files of the section, in the order of the way."""
    section = TEXT.partition("### … a message in")[2].partition("\n1. ")[2].partition("\n#")[0]
    return dict.fromkeys(re.findall(r"`([\w/]+\.py)`", section))


@pytest.mark.broker
@pytest.mark.spark
def test_one_message_is_in_the_hands_of_the_files_that_it_lists(broker, queue):
    """Followed by its bytes: which functions get or return an object that has them, on all threads of the process."""
    from pyspark_jms.spark.releases import HAS_ADMISSION_CONTROL

    if not HAS_ADMISSION_CONTROL:
        pytest.skip("earlier releases of Spark have another reader")
    from pyspark_jms.spark.stream_reader import JmsStreamReader

    given = access(broker, "amqp") | {"queue": queue}
    options = SourceOptions.parse(given)
    found = set()
    with followed(found):
        reader = JmsStreamReader(options)
        start = end = reader.initialOffset()
        with JmsClient(broker) as client:
            client.send(queue, BODY)
        while end == start:
            end = reader.latestOffset(start, reader.getDefaultReadLimit())
        (task,) = pickle.loads(pickle.dumps(reader.partitions(start, end)))
        (batch,) = JmsStreamReader(options).read(task)
        reader.stop()
    assert batch.to_pylist()[0]["text"] == BODY
    assert sorted(found) == sorted(listed())
    assert len(found) <= 30


@contextmanager
def followed(found):
    """Add to ``found`` each file of the connector that has the body in hand."""
    looking = threading.local()

    def look(frame, event, returned):
        file = frame.f_code.co_filename.partition(PACKAGE)[2]
        if not file or file in found or event not in {"call", "return"} or getattr(looking, "now", False):
            return
        looking.now = True  # what looks calls functions of the connector, too
        try:
            given = [returned] if event == "return" else list(frame.f_locals.values())
            if any(has_body(each) for each in given):
                found.add(file)
        finally:
            looking.now = False

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def has_body(value, depth=2):
    """Whether the value is bytes that contain the body, or has such bytes in its items or fields."""
    if isinstance(value, bytes | bytearray | memoryview):
        return BODY.encode() in bytes(value)
    if isinstance(value, np.ndarray):
        return value.dtype == np.uint8 and BODY.encode() in value.tobytes()
    if isinstance(value, pa.Array | pa.RecordBatch):
        arrays = value.columns if isinstance(value, pa.RecordBatch) else [value]
        return any(BODY.encode() in buffer.to_pybytes() for each in arrays for buffer in each.buffers() if buffer)
    if not depth:
        return False
    if isinstance(value, list | tuple | deque):
        return any(has_body(each, depth - 1) for each in list(value))
    if isinstance(value, dict):
        return any(has_body(each, depth - 1) for each in list(value.values()))
    if not type(value).__module__.startswith("pyspark_jms"):
        return False
    names = [*getattr(value, "__dict__", ()), *getattr(value, "__slots__", ())]
    return any(has_body(getattr(value, name, None), depth - 1) for name in names)
