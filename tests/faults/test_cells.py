"""The matrix itself, and some of its cells: those whose points are the narrowest. `make faults` runs them all."""

from collections import Counter

import pytest
from cells import FAULTS, MODES, POINTS, Cell, cells, faults_of, points_of
from play import Result, compare, play
from stage import Slot
from streams import expected, has_id

FIRST = ["amqp/cut/accepting"]
"""What `make test` runs. Deaths of exactly-once reads are in tests/integration/test_reader_deaths.py and
test_journal.py, repeated batches of a write in tests/connector/spark/test_writers.py, and a killed broker in
tests/integration/test_outage.py.
"""
DEEP = [
    "journal/kill-runner/unconfirmed",
    "journal/disk-full/durable",
    "plain/cut/mid-batch",
    "amqp/broker-full/discharging",
    "amqp-sink/broker-full/offered",
    "amqp-once/kill-runner/task-discharging",
    "amqp-once/kill-broker/task-unconfirmed",
    "amqp-sink-once/kill-worker/unconfirmed",
    "amqp-sink-once/kill-driver/before-ttl",
    "amqp-both-once/kill-driver/unconfirmed",
]
SLOW = {
    "journal/kill-driver/durable": "test_restarts.py, and test_journal.py between durable and acknowledged",
    "plain/kill-runner/done": "journal/kill-runner/unconfirmed, plain/cut/mid-batch",
    "amqp/kill-driver/discharging": "amqp/cut/accepting, and a killed broker in tests/brokers/test_over_amqp.py",
    "amqp/cut/unconfirmed": "amqp/cut/accepting, and each step of a run in test_closed_by_management.py",
    "amqp-once/kill-driver/task-unconfirmed": "test_reader_deaths.py, amqp-once/kill-broker/task-unconfirmed",
    "amqp-once/kill-driver/offered": "test_reader_deaths.py, at the point planned",
    "amqp-sink-once/kill-worker/locked": "amqp-sink-once/kill-worker/unconfirmed",
}
"""Each with what has the same kind of fault in CI. Without a folder: tests/integration."""
BITING = [*FIRST, *DEEP, *SLOW]


def test_every_cell_is_run_or_has_its_reason():
    found = {(cell.mode, cell.fault, cell.point): cell for cell in cells()}
    assert set(found) == {
        (mode, fault, point) for mode in MODES for fault in faults_of(mode) for point in points_of(mode)
    }
    assert all(cell.reason is None or len(cell.reason) > 15 for cell in found.values())
    run = [cell for cell in found.values() if cell.reason is None]
    for names, which in ((MODES, "mode"), (FAULTS, "fault"), (POINTS, "point")):
        assert {getattr(cell, which) for cell in run} == set(names)


def test_these_are_cells_that_are_run():
    assert set(BITING) <= {cell.name for cell in cells() if cell.reason is None}


def test_only_messages_without_an_id_that_were_in_flight_are_excused():
    sent = expected(400)
    named, nameless = ([number for number in sent if has_id(number) is each] for each in (True, False))

    def verdict(name, counted, in_flight=100):
        result = Result(Cell(*name.split("/")), in_flight=in_flight)
        compare(result, sent, counted)
        return result.verdict

    for name in ("amqp/cut/accepting", "amqp/stall/done", "amqp/kill-broker/discharging"):
        assert verdict(name, sent) == "ok"
        assert verdict(name, sent + Counter(nameless[:100])) == "ok"
        assert verdict(name, sent + Counter(nameless[:100]), in_flight=99) == "1 duplicated"
        assert verdict(name, sent + Counter(nameless[:99] + named[:1])) == "1 duplicated"
        assert verdict(name, sent - Counter(named[:1]) + Counter(nameless[:1])) == "1 lost"
    assert verdict("plain/cut/mid-batch", sent + Counter(nameless[:1])) == "1 duplicated"
    assert verdict("amqp-once/cut/mid-batch", sent + Counter(nameless[:1])) == "1 duplicated"


@pytest.fixture(scope="module")
def slot():
    slot = Slot()
    yield slot
    slot.close()


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.parametrize(
    "name",
    [
        *FIRST,
        *(pytest.param(name, marks=pytest.mark.deep) for name in DEEP),
        *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW),
    ],
)
def test_nothing_is_lost_and_nothing_is_duplicated_where_that_is_promised(slot, name, report):
    result = play(slot, Cell(*name.split("/")))
    report(
        f"{name}: {result.sent} sent, {result.lost} lost, {result.duplicated} duplicated, {result.seconds:.0f} s;"
        f" {'; '.join(filter(None, result.evidence))}"
    )
    assert result.verdict == "ok", result
    assert result.evidence[0]
    assert result.seen == result.sent
