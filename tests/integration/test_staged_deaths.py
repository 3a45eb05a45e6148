"""kill -9 of the process that reads, at every point of the protocol: nothing lost, nothing twice, no other rows."""

import json
import random
import signal
import time
from collections import Counter

import pytest
from amqp_sending import put
from staged_driver import FENCED, OVERTAKEN, POINTS, POISON, RENEWAL
from staged_runs import end, is_stopped, require_each_once, start, texts
from waiting import await_value, wait_until

from pyspark_jms import cli
from pyspark_jms.delivery.staging.owner import MAX_SOURCE_DELIVERIES
from pyspark_jms.delivery.staging.tokens import MAX_TOKEN_DELIVERIES
from pyspark_jms.testing import EmbeddedArtemis

COUNT = 60


@pytest.fixture
def run(broker, queue, tmp_path):
    def run(kill_at="never", nth=1):
        """Returns whether the process was killed."""
        return end(start(broker, queue, tmp_path, kill_at, nth), -signal.SIGKILL) != 0

    return run


QUICK = {"at discharge", "planned", "sunk"}


@pytest.mark.parametrize(
    "point", [point if point in QUICK else pytest.param(point, marks=pytest.mark.deep) for point in POINTS]
)
def test_a_process_that_dies_at_a_point(broker, queue, tmp_path, run, point):
    put(broker, queue, *texts(0, COUNT))
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
        put(broker, queue, *texts(sent, sent + 20))
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
        put(broker, queue, *texts(sent, sent + 40))
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
    put(broker, "q", *texts(0, COUNT))
    frozen = start(broker, "q", tmp_path, f"freeze:{point}", 2)
    wait_until(lambda: is_stopped(frozen), 100, "the freeze")
    assert end(start(broker, "q", tmp_path)) == 0
    put(broker, "q", *texts(COUNT, COUNT + 10))
    frozen.send_signal(signal.SIGCONT)
    assert end(frozen, FENCED, OVERTAKEN) in {FENCED, OVERTAKEN}
    assert end(start(broker, "q", tmp_path)) == 0
    require_each_once(broker, "q", tmp_path, COUNT + 10)


# --- 25 deaths in a row -------------------------------------------------------------------------------

MAY_STOP = {"take_tokens", "take_finished", "at discharge"}
"""Here the process has source messages whose acceptance may be on its way: Artemis counts some of these deaths as
deliveries, in some runs none of 25.
"""


@pytest.fixture(scope="module")
def broker_of_deaths():
    """All points use it, and nothing else does: its dead-letter queue has what the deaths put there."""
    with EmbeddedArtemis() as broker:
        yield broker


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("point", POINTS)
def test_25_deaths_in_a_row_at_a_point(broker_of_deaths, queue, tmp_path, monkeypatch, report, point):
    """No message of the source, no token and no block becomes a dead letter."""
    broker, sent, deaths, stopped = broker_of_deaths, 0, 0, False
    dead = broker.message_count("DLQ")
    if point != "create_token":  # which is reached at the very first start only
        put(broker, queue, *texts(0, 10))
        assert end(start(broker, queue, tmp_path)) == 0
        sent = 10
    if point == "blocks":
        put(broker, queue, *texts(sent, sent + 10))
        sent += 10
        assert end(start(broker, queue, tmp_path, "planned"), -signal.SIGKILL)  # a batch to be repeated
    while deaths < 25 and not stopped:
        put(broker, queue, *texts(sent, sent + 10))
        sent += 10
        ended = end(start(broker, queue, tmp_path, point), -signal.SIGKILL, POISON)
        assert ended, "the point was not reached"
        stopped = ended == POISON
        deaths += not stopped
    if stopped:
        await_value(lambda: max(broker.delivery_counts(queue)), MAX_SOURCE_DELIVERIES)
        assert end(start(broker, queue, tmp_path), POISON) == POISON
        await_value(lambda: max(broker.delivery_counts(queue)), MAX_SOURCE_DELIVERIES)
        monkeypatch.setenv("ADMIN_PASSWORD", broker.password)
        _move_there_and_back(broker, queue)
    assert end(start(broker, queue, tmp_path)) == 0
    require_each_once(broker, queue, tmp_path, sent)
    await_value(lambda: broker.message_count("DLQ"), dead)
    report(f"{point}: {deaths} deaths in a row, {sent} messages{', stopped with JMS_POISON_LOOP' * stopped}")
    assert stopped or deaths == 25
    if point == "before discharge":
        assert stopped  # later than after five deaths: Artemis does not count each one
    elif point not in MAY_STOP:
        assert not stopped


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_a_token_whose_renewal_dies_again_and_again_is_made_anew(fresh_broker, tmp_path, report):
    """No client can prevent this dead letter: each death counts, because the process holds the token."""
    broker, deaths = fresh_broker(), 0
    put(broker, "orders", *texts(0, COUNT))
    assert end(start(broker, "orders", tmp_path, "planned", 2), -signal.SIGKILL)
    while broker.delivery_counts(_tokens(tmp_path)) != [MAX_TOKEN_DELIVERIES + 1]:  # a browser sees one less
        assert end(start(broker, "orders", tmp_path, "take_tokens"), -signal.SIGKILL)
        wait_until(lambda: _has_token(broker, tmp_path))
    while not broker.message_count("DLQ"):
        assert deaths < 25
        deaths += 1
        assert end(start(broker, "orders", tmp_path, RENEWAL), -signal.SIGKILL)
        wait_until(lambda: _has_token(broker, tmp_path) or broker.message_count("DLQ"))
    assert end(start(broker, "orders", tmp_path)) == 0
    require_each_once(broker, "orders", tmp_path, COUNT)
    await_value(lambda: broker.message_count("DLQ"), 1)
    report(f"renewal: the token is a dead letter after {deaths} deaths in the renewal")


def _tokens(folder):
    return f"pyspark-jms.staging.{json.loads((folder / 'offsets' / '0').read_text())['id']}.token"


def _has_token(broker, folder):
    """Whether the broker has taken it back from the dead process."""
    return broker.message_count(_tokens(folder)) and not broker.delivering_count(_tokens(folder))


def _move_there_and_back(broker, queue):
    """What the error advises."""
    for first, second in ((queue, f"{queue}.aside"), (f"{queue}.aside", queue)):
        access = ["--broker-url", broker.amqp_url, "--user", broker.user, "--password-env", "ADMIN_PASSWORD"]
        assert cli.main(["move", *access, "--queue", first, "--to", second]) == 0


# --- frozen for longer than the broker waits ----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_driver_that_is_frozen_for_90_s_at_the_default_idle_time_out(fresh_broker, tmp_path, report):
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
        assert end(process, FENCED, OVERTAKEN) == FENCED
        assert end(start(broker, point, tmp_path / point)) == 0
        require_each_once(broker, point, tmp_path / point, COUNT + 10)
