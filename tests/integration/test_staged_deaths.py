"""kill -9 of the process that reads, at every point of the protocol: nothing lost, nothing twice, no other rows."""

import itertools
import json
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from amqp_sending import put, settings_of
from staged_driver import POINTS
from streaming import access, left

DRIVER = Path(__file__).parent.parent / "support" / "staged_driver.py"
COUNT = 60


@pytest.fixture
def run(broker, queue, tmp_path):
    settings_of(broker)  # skips without AMQP
    given = access(broker) | {"brokerUrl": broker.amqp_url, "queue": queue, "deliveryGuarantee": "exactly-once"}
    given |= {"maxMessagesPerTrigger": "25", "idleTimeout": "200ms", "partitionBytes": "1k"}

    def run(kill_at="never", nth=1):
        """Returns whether the process was killed."""
        command = [sys.executable, str(DRIVER), str(tmp_path), kill_at, str(nth), json.dumps(given)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
        assert ended.returncode in {0, -signal.SIGKILL}, ended.stderr
        return ended.returncode != 0

    return run


def require_each_once(broker, queue, tmp_path, count):
    rows = [json.loads(path.read_text()) for path in (tmp_path / "sink").iterdir() if path.name.isdigit()]
    assert Counter(itertools.chain.from_iterable(itertools.chain.from_iterable(rows))) == Counter(
        {f"text {number}": 1 for number in range(count)}
    )
    assert not list(tmp_path.glob("different-*"))
    assert left(broker, queue) == 0
    stream = json.loads((tmp_path / "offsets" / "0").read_text())["id"]
    assert left(broker, f"pyspark-jms.staging.{stream}.owner") == 0
    assert not broker.has_queue("DLQ") or not [each for each in broker.dead_letters() if queue in str(each)]


QUICK = {"at discharge", "planned", "sunk"}


@pytest.mark.parametrize(
    "point", [point if point in QUICK else pytest.param(point, marks=pytest.mark.deep) for point in POINTS]
)
def test_a_process_that_dies_at_a_point(broker, queue, tmp_path, run, point):
    put(broker, queue, *(f"text {number}" for number in range(COUNT)))
    nth = 1 if point in {"create_token", "blocks"} else 2
    if point == "blocks":
        assert run("planned", 2)  # a batch to be repeated
    killed = run(point, nth) or run(point, 1)
    assert killed or point == "blocks", "the point was not reached"
    assert not run()
    require_each_once(broker, queue, tmp_path, COUNT)


@pytest.mark.slow
def test_many_deaths_at_random_points(broker, queue, tmp_path, run, report):
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    sent = deaths = 0
    for _ in range(40):
        put(broker, queue, *(f"text {number}" for number in range(sent, sent + 20)))
        sent += 20
        deaths += run(rng.choice(POINTS), rng.choice((1, 1, 2, 3)))
    assert not run()
    report(f"staged reads: seed {seed}, {deaths} deaths, {sent} messages")
    require_each_once(broker, queue, tmp_path, sent)
