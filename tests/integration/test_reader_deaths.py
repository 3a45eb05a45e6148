"""kill -9 of the process whose tasks receive, at every point of the protocol: nothing lost, twice, or different."""

import itertools
import json
import random
import signal
from collections import Counter
from pathlib import Path

import pytest
from amqp_sending import put
from reader_driver import FENCED, OVERTAKEN, POINTS
from staged_runs import end, is_stopped, start, texts
from streaming import left
from waiting import wait_until

DRIVER = Path(__file__).parents[1] / "support" / "reader_driver.py"
COUNT = 60


@pytest.fixture
def begin(broker, queue, tmp_path):
    def begin(kill_at="never", nth=1, readers=1):
        return start(broker, queue, tmp_path, kill_at, nth, driver=DRIVER, readers=str(readers))

    return begin


@pytest.fixture
def run(begin):
    """Returns whether the process was killed."""
    return lambda *how, **options: end(begin(*how, **options), -signal.SIGKILL) != 0


def require_each_once(broker, queue, folder, count):
    rows = [json.loads(path.read_text()) for path in (folder / "sink").iterdir() if path.name.isdigit()]
    found = Counter(itertools.chain.from_iterable(itertools.chain.from_iterable(rows)))
    assert found == Counter(texts(0, count))
    assert not list(folder.glob("different-*"))
    assert left(broker, queue) == 0


QUICK = {"at discharge", "planned"}


@pytest.mark.parametrize(
    "point", [point if point in QUICK else pytest.param(point, marks=pytest.mark.deep) for point in POINTS]
)
def test_a_process_that_dies_at_a_point(broker, queue, tmp_path, run, point):
    put(broker, queue, *texts(0, COUNT))
    if point == "browse":
        assert run("rows", 2)  # a value to be browsed
    nth = 1 if point in {"browse", "create"} else 2
    assert run(point, nth, readers=2) or run(point, 1, readers=2), "the point was not reached"
    assert not run(readers=3)
    require_each_once(broker, queue, tmp_path, COUNT)


@pytest.mark.deep
@pytest.mark.parametrize("point", ["open", "accept", "before discharge", "rows"])
def test_a_process_that_freezes_beside_a_second_one(fresh_broker, tmp_path, point):
    """The broker ends the frozen connection after its idle time-out; then the second process goes on."""
    broker = fresh_broker(acceptor_options={"amqpIdleTimeout": "3000"})
    put(broker, "q", *texts(0, COUNT))
    frozen = start(broker, "q", tmp_path, f"freeze:{point}", 2, driver=DRIVER, readers="2")
    wait_until(lambda: is_stopped(frozen), 100, "the freeze")
    assert end(start(broker, "q", tmp_path, driver=DRIVER, readers="3")) == 0
    put(broker, "q", *texts(COUNT, COUNT + 10))
    frozen.send_signal(signal.SIGCONT)
    assert end(frozen, FENCED, OVERTAKEN) in {FENCED, OVERTAKEN}
    assert end(start(broker, "q", tmp_path, driver=DRIVER, readers="2")) == 0
    require_each_once(broker, "q", tmp_path, COUNT + 10)


@pytest.mark.slow
@pytest.mark.parametrize("readers", [1, 3])
def test_many_deaths_at_random_points(broker, queue, tmp_path, run, report, readers):
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    sent = deaths = 0
    for _ in range(40):
        put(broker, queue, *texts(sent, sent + 20))
        sent += 20
        deaths += run(rng.choice(POINTS), rng.choice((1, 1, 2, 3)), readers=rng.randint(1, readers))
    assert not run(readers=readers)
    report(f"readers={readers}: seed {seed}, {deaths} deaths, {sent} messages")
    require_each_once(broker, queue, tmp_path, sent)


@pytest.mark.slow
def test_two_drivers_of_one_checkpoint(broker, queue, tmp_path, begin, run, report):
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    sent, codes = 0, Counter()
    for _ in range(15):
        put(broker, queue, *texts(sent, sent + 40))
        sent += 40
        both = [begin(rng.choice(POINTS), rng.choice((1, 2, 3, 9)), readers=rng.randint(1, 3)) for _ in range(2)]
        codes.update(end(each, -signal.SIGKILL, FENCED, OVERTAKEN) for each in both)
    assert not run()
    report(f"two drivers: seed {seed}, ends {dict(codes)}, {sent} messages")
    require_each_once(broker, queue, tmp_path, sent)
