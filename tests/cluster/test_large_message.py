"""One message of 100 MB through a driver with a heap of 512 MB: the task that receives it is on an executor."""

import base64
import contextlib
import os
import random
from pathlib import Path

import pytest
import session
from amqp_messages import TRUE, application_properties, list_, properties, section, string, timestamp
from amqp_sending import put_encoded
from legs import from_queue, to_files
from numbered import in_committed_files
from standalone import EXECUTOR
from waiting import wait_until

from bench.processes import peak_bytes

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

BYTES = 100_000_000
PART = 1 << 20
MOST_OF_THE_PLANNER = 150_000_000
"""Bytes of memory: its libraries, and not a compressed body (75 MB) beside them."""
CONF = {"spark.driver.memory": "512m", "spark.executor.memory": "1g"}


def body(marker):
    """Text that cannot be compressed below three quarters; each MB but the first one begins with the marker.

    The planner sees the first frame when it asks whether there is a message.
    """
    rng = random.Random(7)
    yield b"a" * PART
    while True:
        yield marker + base64.b64encode(rng.randbytes(3 * PART // 4))[len(marker) : PART]


def message(marker):
    parts, size, stream = [], 0, body(marker)
    while size < BYTES - 2 * PART:
        parts.append(next(stream))
        size += len(parts[-1])
    return (
        section(0x70, list_(TRUE))
        + properties(message_id=string("ID:large"), creation_time=timestamp(1_700_000_000_000))
        + application_properties(n=string("0"))
        + section(0x77, string(b"".join(parts)))
    ), size


def processes(session_id, command):
    return [each.pid for each in session.of_session(session_id) if command in each.command]


PIECE = 16 << 20


def has_bytes(pid, wanted):
    """Whether the bytes are anywhere in the memory of a process: on its heap, off it, or in what was freed."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        return any(_found(memory, start, end, wanted) for start, end in _writable(pid))


def _writable(pid):
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        where, permissions = line.split()[:2]
        if permissions.startswith("rw"):
            start, _, end = where.partition("-")
            yield int(start, 16), int(end, 16)


def _found(memory, start, end, wanted):
    tail = b""
    with contextlib.suppress(OSError, ValueError):  # unmapped meanwhile, or of a device
        memory.seek(start)
        while start < end and (data := memory.read(min(PIECE, end - start))):
            if wanted in tail + data:
                return True
            tail, start = data[-len(wanted) :], start + len(data)
    return False


def test_no_byte_of_a_body_is_in_the_drivers_memory(fresh_broker, cluster, submit, tmp_path, report):
    broker = fresh_broker(heap="1g")
    marker = b"marker-" + base64.b16encode(os.urandom(12))
    encoded, size = message(marker)
    put_encoded(broker, "large", [encoded])
    read = from_queue(broker, "large", brokerUrl=broker.amqp_url, deliveryGuarantee="exactly-once")
    how = {"columns": ["length(text) n", "substring(text, 1, 7) text"], "trigger": {"processingTime": "0 seconds"}}
    job = submit(read | to_files(tmp_path / "files", tmp_path / "checkpoint") | how, conf=CONF)
    wait_until(lambda: in_committed_files(tmp_path / "files") or job.ended(), 300, "the row of the message")
    assert not job.ended(), job.output()[-6000:]
    (jvm,), (planner,) = processes(job.session_id, b"SparkSubmit"), session.runners(job.session_id)
    executors = [pid for worker in cluster.workers for pid in processes(worker.session_id, EXECUTOR)]
    assert any(has_bytes(pid, marker) for pid in executors)
    assert not has_bytes(jvm, marker)
    assert not has_bytes(planner, marker)
    assert in_committed_files(tmp_path / "files") == {size: 1}
    peak = peak_bytes(planner)
    assert peak < MOST_OF_THE_PLANNER
    report(f"a body of {size / 1e6:.0f} MB; the driver's JVM has 512 MB, its Python had {peak / 1e6:.0f} MB at most")
