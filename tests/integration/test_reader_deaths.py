"""kill -9 of the process whose tasks receive, at every point of the protocol: nothing lost, twice, or different."""

import random
import signal
import time
from collections import Counter

import pytest
from amqp_sending import put
from commands import run as run_command
from driver_runs import end, is_stopped, require_each_once, start, texts
from reader_driver import FENCED, OVERTAKEN, POINTS, POISON
from streaming import access
from waiting import await_value, wait_until

from pyspark_jms.delivery.register.reader import MAX_SOURCE_DELIVERIES
from pyspark_jms.testing import EmbeddedArtemis

COUNT = 60


@pytest.fixture
def begin(broker, queue, tmp_path):
    def begin(kill_at="never", nth=1, readers=1):
        return start(broker, queue, tmp_path, kill_at, nth, readers=str(readers))

    return begin


@pytest.fixture
def run(begin):
    """Returns whether the process was killed."""
    return lambda *how, **options: end(begin(*how, **options), -signal.SIGKILL) != 0


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


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("open", marks=pytest.mark.slow),
        pytest.param("accept", marks=pytest.mark.deep),
        pytest.param("before discharge", marks=pytest.mark.slow),
        pytest.param("rows", marks=pytest.mark.deep),
    ],
)
def test_a_process_that_freezes_beside_a_second_one(fresh_broker, tmp_path, point):
    """The broker ends the frozen connection after its idle time-out; then the second process goes on."""
    broker = fresh_broker(acceptor_options={"amqpIdleTimeout": "3000"})
    put(broker, "q", *texts(0, COUNT))
    frozen = start(broker, "q", tmp_path, f"freeze:{point}", 2, readers="2")
    wait_until(lambda: is_stopped(frozen), 100, "the freeze")
    assert end(start(broker, "q", tmp_path, readers="3")) == 0
    put(broker, "q", *texts(COUNT, COUNT + 10))
    frozen.send_signal(signal.SIGCONT)
    assert end(frozen, FENCED, OVERTAKEN) in {FENCED, OVERTAKEN}
    assert end(start(broker, "q", tmp_path, readers="2")) == 0
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


# --- 25 deaths in a row -------------------------------------------------------------------------------

MAY_STOP = {"take", "accept", "subscribe", "before discharge", "at discharge"}
"""Here the process has messages of the source or of the register: Artemis counts some of these deaths as deliveries."""


@pytest.fixture(scope="module")
def broker_of_deaths():
    """All points use it, and nothing else does: its dead-letter queue has what the deaths put there."""
    with EmbeddedArtemis() as broker:
        yield broker


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("point", POINTS)
def test_25_deaths_in_a_row_at_a_point(broker_of_deaths, queue, tmp_path, report, point):
    """No message of the source, no token and no block becomes a dead letter."""
    broker, sent, deaths, stopped = broker_of_deaths, 0, 0, False
    more = 30 if point == "planned" else 10  # the next run repeats that batch, with 25 messages, and must plan another
    dead = broker.message_count("DLQ")
    if point != "create":  # which is reached at the very first start only
        put(broker, queue, *texts(0, 10))
        assert end(start(broker, queue, tmp_path)) == 0
        sent = 10
    while deaths < 25 and not stopped:
        put(broker, queue, *texts(sent, sent + more))
        sent += more
        if point == "browse":
            end(start(broker, queue, tmp_path, "rows"), -signal.SIGKILL)  # a value to be browsed
        ended = end(start(broker, queue, tmp_path, point), -signal.SIGKILL, POISON)
        assert ended, "the point was not reached"
        stopped = ended == POISON
        deaths += not stopped
    if stopped:
        await_value(lambda: max(broker.delivery_counts(queue), default=0) >= MAX_SOURCE_DELIVERIES, True)
        for first, second in ((queue, f"{queue}.aside"), (f"{queue}.aside", queue)):  # what the error advises
            assert run_command(access(broker, "amqp"), "move", "--queue", first, "--to", second) == 0
    assert end(start(broker, queue, tmp_path)) == 0
    require_each_once(broker, queue, tmp_path, sent)
    await_value(lambda: broker.message_count("DLQ"), dead)
    report(f"{point}: {deaths} deaths in a row, {sent} messages{', stopped with JMS_POISON_LOOP' * stopped}")
    assert not stopped or point in MAY_STOP


# --- frozen for longer than the broker waits ----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_process_that_is_frozen_for_90_s_at_the_default_idle_time_out(fresh_broker, tmp_path, report):
    """Beside a second start: the second one goes on when the broker has ended the frozen connection, and the first
    one stops when it wakes.
    """
    broker, frozen, others, began = fresh_broker(), {}, {}, {}
    for point in ("before discharge", "rows"):
        put(broker, point, *texts(0, COUNT))
        frozen[point] = start(broker, point, tmp_path / point, f"freeze:{point}", 2)
        wait_until(lambda process=frozen[point]: is_stopped(process), 100, "the freeze")
        began[point] = time.monotonic()
        others[point] = start(broker, point, tmp_path / point)
    for point, other in others.items():
        assert end(other) == 0
        report(f"frozen at {point}: the second run ended {time.monotonic() - began[point]:.0f} s after the freeze")
        put(broker, point, *texts(COUNT, COUNT + 10))
    for point, process in frozen.items():
        time.sleep(max(0.0, began[point] + 90 - time.monotonic()))
        process.send_signal(signal.SIGCONT)
        assert end(process, FENCED, OVERTAKEN) in {FENCED, OVERTAKEN}
        assert end(start(broker, point, tmp_path / point)) == 0
        require_each_once(broker, point, tmp_path / point, COUNT + 10)
