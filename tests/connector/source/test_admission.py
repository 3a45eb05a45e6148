"""When a batch ends: by limits, by time, and by a silence."""

import contextlib
from bisect import bisect_right
from itertools import accumulate

import pytest
from numbered import fill
from receivers import OpenReceiver
from streaming import access
from waiting import Clock, wait_until

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.admission import BatchDecision, BatchTrigger, Linger, Waiting

STEP_MS = 2.5
BYTES_PER_MS = 100_000
"""How fast the bytes of a message come."""


LONG_AGO_MS = -60_000


def end_of(arrivals, last_batch=LONG_AGO_MS):
    """Return the millisecond in which the batch ends.

    ``arrivals`` are the milliseconds in which messages come, in ascending order, each with the message's bytes.
    """
    linger = Linger(last_batch / 1000)
    times = [at for at, _ in arrivals]
    total = [0, *accumulate(size for _, size in arrivals)]
    longest = max(size for _, size in arrivals) / BYTES_PER_MS
    for step in range(int(5000 / STEP_MS)):
        now = step * STEP_MS
        here = bisect_right(times, now)
        coming = arrivals[here : bisect_right(times, now + longest)]
        on_its_way = any(at <= now + size / BYTES_PER_MS for at, size in coming)
        changed = now if on_its_way or not here else times[here - 1]
        if here and linger.should_end(now / 1000, here, total[here], changed=changed / 1000):
            return now
    return None


def paced(per_second, until_ms, size=100):
    count = per_second * until_ms // 1000
    return [(index * 1000 / per_second, size) for index in range(count)]


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        pytest.param([(0, 100)], 5, id="one message"),
        pytest.param([(40, 100)], 45, id="its time begins when it comes"),
        pytest.param([(0, 100)] * 50_000, 5, id="what waited after a long time says nothing of a pace"),
        pytest.param([(0, 100), (4, 100)], 10, id="a second one"),
        pytest.param(paced(300, 1000), 15, id="300 a second: never quiet"),
        pytest.param(paced(9_000, 3000), 15, id="9,000 a second"),
        pytest.param(paced(11_000, 3000), 1000, id="11,000 a second pour in"),
        pytest.param(paced(100, 3000, 1 << 20), 1000, id="so do 100 of 1 MB"),
        pytest.param(paced(10, 3000, 1 << 20), 5, id="10 of 1 MB do not"),
        pytest.param(paced(20_000, 500), 600, id="a flood that ends"),
        pytest.param(paced(20_000, 100), 200, id="a burst"),
        pytest.param(
            paced(20_000, 200) + [(at + 250, size) for at, size in paced(20_000, 3000)],
            1000,
            id="a pause in a flood",
        ),
    ],
)
def test_a_batch_ends_when_little_follows(arrivals, expected):
    assert end_of(arrivals) == pytest.approx(expected, abs=STEP_MS)


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        pytest.param([(0, 100)] * 10_200, 20, id="a flood until now that ends: average falls below 10,000 a second"),
        pytest.param([(0, 100)] * 20_000, 100, id="a large one"),
        pytest.param([(0, 100)] * 9_000, 5, id="9,000 a second"),
        pytest.param([(0, 1 << 20)] * 20, 100, id="20 MB a second"),
        pytest.param(
            [(0, 100)] * 20_000 + [(at + 90, size) for at, size in paced(20_000, 300)], 490, id="a pause at first"
        ),
        pytest.param([(0, 100)] * 20_000 + paced(5_000, 3000), 1000, id="slower, and fast on average"),
    ],
)
def test_what_waited_counts_from_the_last_batch(arrivals, expected):
    assert end_of(arrivals, last_batch=-1000) == pytest.approx(expected, abs=STEP_MS)


@pytest.mark.parametrize("journaled", [False, True])
def test_a_flood_that_stops_is_a_batch_when_the_broker_answers(broker, queue, monkeypatch, tmp_path, journaled):
    """Silence alone would end no batch here."""
    monkeypatch.setattr("pyspark_jms.source.admission._POURING_MESSAGES", 0)
    monkeypatch.setattr("pyspark_jms.source.admission._POURING_SECONDS", 1e9)
    monkeypatch.setattr("pyspark_jms.source.admission._POURING_QUIET_SECONDS", 1e9)
    fill(broker, queue, 10)
    more = {"deliveryGuarantee": "exactly-once", "journalLocation": str(tmp_path)} if journaled else {}
    with contextlib.closing(OpenReceiver(SourceOptions.parse(access(broker) | {"queue": queue} | more))) as receiver:
        wait_until(lambda: receiver.next_batch_end() == 10)
        receiver.acknowledge_through(10)
        fill(broker, queue, 10, first=10)
        wait_until(lambda: receiver.next_batch_end() == 20)


def begun(clock, **more):
    raw = {"brokerUrl": "stomp://h", "queue": "q"} | {key: str(value) for key, value in more.items()}
    admission = BatchTrigger(SourceOptions.parse(raw), clock)
    admission.begin(0)
    return admission


def verdicts(admission, clock, *looks):
    """Of each look: the time, what waits, and whether there is no room for more."""
    found = []
    for now, messages, size, full in looks:
        clock.now = now
        found.append(admission.verdict(Waiting(messages, size, no_room=full), messages))
    return found


def test_nothing_waits():
    clock = Clock()
    admission = begun(clock)
    assert verdicts(admission, clock, (1.0, 0, 0, False)) == [BatchDecision.NOTHING]
    assert (admission.waited, admission.quiet) == (1.0, 1.0)


def test_arrival_ends_the_quiet():
    clock = Clock()
    admission = begun(clock)
    verdicts(admission, clock, (1.0, 1, 10, False), (3.0, 1, 10, False))
    assert (admission.waited, admission.quiet) == (3.0, 2.0)


def test_a_few_messages_are_cut_when_nothing_follows():
    clock = Clock()
    looks = [(0.0, 1, 10, False), (0.003, 1, 10, False), (0.02, 1, 10, False)]
    assert verdicts(begun(clock), clock, *looks) == [BatchDecision.WAIT, BatchDecision.WAIT, BatchDecision.BATCH]


@pytest.mark.parametrize(
    ("options", "messages", "size"),
    [({"maxMessagesPerTrigger": 5}, 5, 10), ({"maxBytesPerTrigger": "1k"}, 2, 1024), ({"windowBytes": "1k"}, 2, 1024)],
)
def test_a_full_batch_or_window_is_cut_at_once(options, messages, size):
    clock = Clock()
    assert verdicts(begun(clock, **options), clock, (0.0, messages, size, False)) == [BatchDecision.BATCH]


def test_a_full_journal_is_cut_at_once():
    clock = Clock()
    assert verdicts(begun(clock), clock, (0.0, 1, 10, True)) == [BatchDecision.BATCH]


@pytest.mark.parametrize(("since", "verdict"), [(1.0, BatchDecision.ASK), (3.0, BatchDecision.BATCH)])
def test_a_flood_counts_from_the_last_batch(since, verdict):
    clock = Clock()
    admission = begun(clock)
    clock.now = 5.0
    admission.note_batch()
    clock.now = at = 5.0 + since
    admission.begin(0)
    assert verdicts(admission, clock, (at, 20_000, 200, False), (at + 0.02, 20_000, 200, False))[-1] is verdict


def test_redelivered_messages_begin_the_wait_anew():
    clock = Clock()
    admission = begun(clock)
    assert verdicts(admission, clock, (0.0, 1, 10, False), (0.02, 1, 10, False))[-1] is BatchDecision.BATCH
    admission.restart()
    assert verdicts(admission, clock, (0.03, 1, 20, False)) == [BatchDecision.WAIT]
