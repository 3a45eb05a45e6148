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
from staged_driver import FENCED, OVERTAKEN, POINTS
from streaming import access, left
from waiting import wait_until

DRIVER = Path(__file__).parent.parent / "support" / "staged_driver.py"
COUNT = 60


def start(broker, queue, folder, kill_at="never", nth=1):
    settings_of(broker)  # skips without AMQP
    given = access(broker) | {"brokerUrl": broker.amqp_url, "queue": queue, "deliveryGuarantee": "exactly-once"}
    given |= {"maxMessagesPerTrigger": "25", "idleTimeout": "200ms", "partitionBytes": "1k"}
    command = [sys.executable, str(DRIVER), str(folder), kill_at, str(nth), json.dumps(given)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process, *expected):
    _, errors = process.communicate(timeout=200)
    assert process.returncode in {0, *expected}, errors
    return process.returncode


@pytest.fixture
def run(broker, queue, tmp_path):
    def run(kill_at="never", nth=1):
        """Returns whether the process was killed."""
        return end(start(broker, queue, tmp_path, kill_at, nth), -signal.SIGKILL) != 0

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


@pytest.mark.slow
def test_two_drivers_of_one_checkpoint(broker, queue, tmp_path, run, report):
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    sent, codes = 0, Counter()
    for _ in range(15):
        put(broker, queue, *(f"text {number}" for number in range(sent, sent + 40)))
        sent += 40
        both = [start(broker, queue, tmp_path, rng.choice(POINTS), rng.choice((1, 2, 3, 9))) for _ in range(2)]
        codes.update(end(each, -signal.SIGKILL, FENCED, OVERTAKEN) for each in both)
    assert not run()
    report(f"two drivers: seed {seed}, ends {dict(codes)}, {sent} messages")
    require_each_once(broker, queue, tmp_path, sent)


@pytest.mark.deep
@pytest.mark.parametrize("point", ["before discharge", "at discharge", "planned", "rows"])
def test_a_frozen_driver_that_wakes_beside_the_next_one(fresh_broker, tmp_path, point):
    """The broker ends the frozen connection after its idle time-out; then the next driver goes on."""
    broker = fresh_broker(acceptor_options={"amqpIdleTimeout": "3000"})
    put(broker, "q", *(f"text {number}" for number in range(COUNT)))
    frozen = start(broker, "q", tmp_path, f"freeze:{point}", 2)
    wait_until(lambda: _is_stopped(frozen.pid), 100, "the freeze")
    assert end(start(broker, "q", tmp_path)) == 0
    put(broker, "q", *(f"text {number}" for number in range(COUNT, COUNT + 10)))
    frozen.send_signal(signal.SIGCONT)
    assert end(frozen, FENCED, OVERTAKEN) in {FENCED, OVERTAKEN}
    assert end(start(broker, "q", tmp_path)) == 0
    require_each_once(broker, "q", tmp_path, COUNT + 10)


def _is_stopped(pid):
    return "\nState:\tT" in Path(f"/proc/{pid}/status").read_text()
