"""While the sink is slower than the broker, what the runner holds is bounded, and not by luck of the pace."""

import json
import os
import time

import pytest
from rawstomp import RawStomp
from streaming import journal_in, read, stopping
from waiting import wait_until

from bench.processes import resident_bytes, source_runners

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.deep]

MESSAGE = 4_000
WINDOW, BATCH = 4 << 20, 1 << 20
BACKLOG = 20_000  # 80 MB and their headers: twenty windows


def put_backlog(broker, queue):
    body = "x" * MESSAGE
    with RawStomp(broker) as client:
        for _ in range(20):
            client.send(queue, [([], body) for _ in range(BACKLOG // 20)])


class Watch:
    """A sink that takes its time, and what the runner held whenever it was called."""

    def __init__(self):
        self.held = []
        self.rows = 0

    def __call__(self, frame, _batch):
        self.rows += frame.count()
        time.sleep(0.2)  # meanwhile the broker sends as much as it may
        self.held.append(resident_bytes(next(iter(source_runners(os.getpid())))))


def metrics(query):
    offsets = [progress["sources"][0]["latestOffset"] for progress in query.recentProgress]
    return [json.loads(offset) for offset in offsets if offset]


@pytest.mark.parametrize("journaled", [False, True], ids=["plain", "journal"])
def test_a_slow_sink_does_not_make_the_source_grow(spark, broker, queue, tmp_path, journaled, report):
    put_backlog(broker, queue)
    options = {"windowBytes": WINDOW, "maxBytesPerTrigger": BATCH}
    room = 8 << 20
    if journaled:
        options |= journal_in(tmp_path / "journal") | {"maxJournalBytes": room}
    watch = Watch()
    writer = read(spark, broker, queue=queue, **options).writeStream.foreachBatch(watch)
    with stopping(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()) as query:
        wait_until(lambda: len(watch.held) >= 24 or query.exception(), 280, "24 batches")
        reported = metrics(query)
    assert query.exception() is None
    wait_until(lambda: broker.consumer_count(queue) == 0, what="the end of the subscription")

    # In flight: a window, the one message that exceeds it, and what is being acknowledged, a batch or a segment of the
    # journal: the broker sends more as soon as it has the ACKs, and their receipt comes after that.
    held = max(metric["inFlightBytes"] for metric in reported)
    frame = MESSAGE + 1000
    assert held <= WINDOW + frame + (WINDOW if journaled else BATCH)
    if journaled:
        used = max(metric["journalBytes"] for metric in reported)
        assert room <= used <= room + 1.1 * (WINDOW + BATCH + frame)  # it did fill, and the broker waited
        assert broker.message_count(queue) > BACKLOG // 2
    else:
        assert held > WINDOW - 2 * frame

    grown = max(watch.held[4:]) - watch.held[3]
    report(
        f"slow sink, {'journal' if journaled else 'no journal'}: window {WINDOW >> 20} MB, {held / 2**20:.1f} MB in"
        f" flight at most, runner {watch.held[3] >> 20} MB after 4 batches, at most {max(watch.held) >> 20} MB after"
        f" {len(watch.held)}"
    )
    assert grown <= 3 * WINDOW
    broker.purge(queue)
