"""Messages that come at a pace, in milliseconds, and when their batch is cut."""

import pytest

from pyspark_jms.source.lingering import Linger

STEP_MS = 2.5
BYTES_PER_MS = 100_000
"""How fast the bytes of a message come."""


LONG_AGO_MS = -60_000


def cut_at(arrivals, last_cut=LONG_AGO_MS, until=5000):
    """``arrivals``: bytes of each message by the millisecond in which it comes. When the batch is cut, in ms."""
    linger = Linger(last_cut / 1000)
    for step in range(int(until / STEP_MS)):
        now = step * STEP_MS
        here = [(at, size) for at, size in arrivals if at <= now]
        on_its_way = any(now < at <= now + size / BYTES_PER_MS for at, size in arrivals)
        changed = now if on_its_way else max((at for at, _ in here), default=0)
        size = sum(size for _, size in here)
        if here and linger.should_cut(now / 1000, len(here), size, changed=changed / 1000):
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
def test_a_batch_is_cut_when_little_follows(arrivals, expected):
    assert cut_at(arrivals) == pytest.approx(expected, abs=STEP_MS)


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
    assert cut_at(arrivals, last_cut=-1000) == pytest.approx(expected, abs=STEP_MS)
