import os
import socket
import struct
import subprocess
import sys
import tempfile

import pytest

PROBE = """
import gc, sys
import pyspark_jms.spark.daemon as daemon
BEFORE = set(sys.modules)

def main(infile, outfile):
    import pyarrow as pa, pyarrow.compute as pc
    missing = [name for name in daemon.MODULES if name not in BEFORE]
    table = pa.table({"n": list(range(200_000))}).sort_by([("n", "descending")])  # in threads
    outfile.write(repr((missing, gc.get_freeze_count() > 10_000, table["n"][0].as_py())).encode())
"""


def read_int(stream):
    return struct.unpack("!i", stream.read(4))[0]


@pytest.fixture
def sockets():
    """A short path: the address of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory() as folder:
        yield folder


@pytest.fixture
def daemon(tmp_path, sockets):
    """The daemon as Spark starts it, and the worker module of the probe."""
    (tmp_path / "pyspark_probe.py").write_text(PROBE)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",  # such a worker needs no secret
        "PYTHON_WORKER_FACTORY_SOCK_DIR": sockets,
    }
    command = [sys.executable, "-m", "pyspark_jms.spark.daemon", "pyspark_probe"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        yield process
        process.stdin.close()  # the end of the daemon
        process.wait(60)


def worker(address):
    """What a new worker writes after its process id."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        connection.shutdown(socket.SHUT_WR)  # the worker ends after its task
        with connection.makefile("rb") as stream:
            return read_int(stream), stream.read()


def test_every_new_worker_has_the_modules_and_can_use_threads_of_arrow(daemon):
    address = daemon.stdout.read(read_int(daemon.stdout)).decode()
    (first, found), (second, again) = worker(address), worker(address)
    assert len({daemon.pid, first, second}) == 3
    assert found == again == b"([], True, 199999)"
