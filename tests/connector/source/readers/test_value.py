import random

import pytest

from pyspark_jms.amqp.dialects import DIALECTS
from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.blocks.block import PartitionSlice, block_of
from pyspark_jms.blocks.staged import unpack
from pyspark_jms.delivery.message_range import MessageRange
from pyspark_jms.jms.model import Destination
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.source.readers import task as module
from pyspark_jms.source.readers.value import NewValue, ValueRows


class Source:
    def __init__(self, name):
        self.subscription = Subscription(destination=Destination.parse(f"queue://{name}"), window_bytes=1)


class Link:
    """A link that keeps what it is to send, as the other side reads it."""

    dialect = DIALECTS["artemis"]

    def __init__(self):
        self.sources = [Source("a"), Source("b")]
        self.sent, self.accepted = [], []

    def add_to_value(self, source, ids, stream, batch, blocks):
        assert (stream, batch) == ("s", 5)
        self.accepted.append((source, ids))
        found = [(first, count, unpack(b"".join(packed))) for first, count, packed in blocks]
        self.sent += found
        return len(found)


def received(*messages):
    made = block_of(*messages)
    made.ids = [b"%04d" % number for number in range(len(messages))]
    return made


def test_messages_are_numbered_in_the_order_in_which_they_are_added():
    link, block = Link(), received(b"zero", b"one", b"two", b"three")
    value = NewValue(link, "s", 5, 7)
    value.add(MessageRange(1, block, 1, 3))
    large = random.Random(1).randbytes(90_000)
    value.add(MessageRange(0, received(large, b"y"), 0, 2))
    assert [(first, count, each.source) for first, count, each in link.sent] == [
        (7, 2, "queue://b"),
        (9, 1, "queue://a"),
        (10, 1, "queue://a"),
    ]
    assert [link.sent[0][2].messages.message(index) for index in range(2)] == [b"one", b"two"]
    assert [(run.first_sequence, len(run), run.source) for run in value.runs] == [
        (7, 2, "queue://b"),
        (9, 2, "queue://a"),
    ]
    assert link.accepted == [(1, [b"0001", b"0002"]), (0, [b"0000", b"0001"])]
    assert (len(value), value.blocks, value.first, value.end, value.size) == (4, 3, 7, 11, 6 + 90_001)


def test_a_value_without_messages():
    assert len(NewValue(Link(), "s", 5, 3)) == 0


# Every other number is missing, so no two are neighbours.
RUNS = [PartitionSlice("queue://q", "artemis", 2 * number, block_of(b"x")) for number in range(4)]


class BadRunError(Exception):
    pass


def rows_of(asked, *, bad=()):
    def rows(runs):
        first = runs[0].first_sequence // 2
        asked.append(first)
        if first in bad:
            raise BadRunError
        return f"rows {first}", first

    return rows


@pytest.mark.parametrize("makes", [True, False])
def test_the_rows_of_each_run_in_their_order_and_once(makes):
    asked = []
    rows = ValueRows(RUNS, rows_of(asked))
    if makes:
        rows.make()
        assert asked == [0, 1, 2, 3]
    assert list(rows) == [("rows 0", 0), ("rows 1", 1), ("rows 2", 2), ("rows 3", 3)]
    assert asked == [0, 1, 2, 3]


def test_an_error_comes_when_its_rows_are_asked_for():
    rows = ValueRows(RUNS, rows_of([], bad={2}))
    rows.make()
    got = iter(rows)
    assert [next(got), next(got)] == [("rows 0", 0), ("rows 1", 1)]
    with pytest.raises(BadRunError):
        next(got)


def test_no_runs_have_no_rows():
    rows = ValueRows()
    rows.make()
    assert list(rows) == []


def test_rows_are_made_before_the_broker_has_confirmed_the_transaction(broker, queue, put, query, monkeypatch):
    order = []
    awaits, rows_of_part = Connection.await_, module.rows_of

    def await_(connection, ready, what, timeout=None):
        order.append(what)
        return awaits(connection, ready, what, timeout)

    def rows(*given, **how):
        order.append("rows")
        return rows_of_part(*given, **how)

    monkeypatch.setattr(Connection, "await_", await_)
    monkeypatch.setattr(module, "rows_of", rows)
    put(broker, queue, "one", "two")
    running = query()
    running.plan()
    [task] = running.tasks()
    order.clear()
    assert len(running.read(task)) == 2
    assert order.count("rows") == 1
    assert order.index("rows") < order.index("the confirmation of the transaction")
