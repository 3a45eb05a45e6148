"""Runs of ``reader_driver``, how they end, and what they leave."""

import itertools
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from streaming import access, left

DRIVER = Path(__file__).with_name("reader_driver.py")


def start(broker, queue, folder, kill_at="never", nth=1, **options):
    given = access(broker, "amqp") | {"queue": queue, "deliveryGuarantee": "exactly-once"}
    given |= {"maxMessagesPerTrigger": "25", "idleTimeout": "200ms"} | options
    command = [sys.executable, str(DRIVER), str(folder), kill_at, str(nth), json.dumps(given)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process, *expected):
    """The exit code: 0, or one that is expected."""
    _, errors = process.communicate(timeout=200)
    assert process.returncode in {0, *expected}, errors
    return process.returncode


def texts(first, end):
    return [f"text {number}" for number in range(first, end)]


def require_each_once(broker, queue, folder, count):
    """The sink has the messages ``texts(0, count)`` once each, no batch had other rows later, and nothing is left."""
    rows = [json.loads(path.read_text()) for path in (folder / "sink").iterdir() if path.name.isdigit()]
    found = Counter(itertools.chain.from_iterable(itertools.chain.from_iterable(rows)))
    assert found == Counter(texts(0, count))
    assert not list(folder.glob("different-*"))
    assert left(broker, queue) == 0


def is_stopped(process):
    """Whether it got SIGSTOP."""
    return "\nState:\tT" in Path(f"/proc/{process.pid}/status").read_text()
