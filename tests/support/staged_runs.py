"""Runs of ``staged_driver``, how they end, and what they leave."""

import itertools
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from amqp_sending import settings_of
from streaming import access, left

DRIVER = Path(__file__).with_name("staged_driver.py")


def start(broker, queue, folder, kill_at="never", nth=1, driver=DRIVER, **options):
    settings_of(broker)  # skips without AMQP
    given = access(broker) | {"brokerUrl": broker.amqp_url, "queue": queue, "deliveryGuarantee": "exactly-once"}
    given |= {"maxMessagesPerTrigger": "25", "idleTimeout": "200ms", "partitionBytes": "1k"} | options
    command = [sys.executable, str(driver), str(folder), kill_at, str(nth), json.dumps(given)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process, *expected):
    """The exit code: 0, or one that is expected."""
    _, errors = process.communicate(timeout=200)
    assert process.returncode in {0, *expected}, errors
    return process.returncode


def texts(first, end):
    return [f"text {number}" for number in range(first, end)]


def require_each_once(broker, queue, folder, count, staging=None):
    """The sink has the messages ``texts(0, count)`` once each, no repeated batch had other rows, and nothing is left.

    ``staging``: the queue of the blocks, if it has another name than the default.
    """
    rows = [json.loads(path.read_text()) for path in (folder / "sink").iterdir() if path.name.isdigit()]
    found = Counter(itertools.chain.from_iterable(itertools.chain.from_iterable(rows)))
    assert found == Counter(texts(0, count))
    assert not list(folder.glob("different-*"))
    assert left(broker, queue) == 0
    stream = json.loads((folder / "offsets" / "0").read_text())["id"]
    assert left(broker, staging or f"pyspark-jms.staging.{stream}.owner") == 0


def is_stopped(process):
    """Whether it got SIGSTOP."""
    return "\nState:\tT" in Path(f"/proc/{process.pid}/status").read_text()
