import pytest
from amqp_sending import put_encoded
from streaming import left

from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.errors import BadMessageError
from pyspark_jms.source.readers import task as module
from pyspark_jms.source.readers.new_value import Run
from pyspark_jms.source.readers.value_rows import ValueRows

RUNS = [Run(number, "queue://q", "artemis", MessageBlock()) for number in range(4)]


class BadRunError(Exception):
    pass


def rows_of(asked, *, bad=()):
    def rows(run):
        asked.append(run.first)
        if run.first in bad:
            raise BadRunError
        return f"rows {run.first}", run.first

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

    def rows(*given):
        order.append("rows")
        return rows_of_part(*given)

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


def test_a_bad_message_fails_the_task_after_the_transaction(broker, queue, query):
    """So it is staged whole, and each attempt has the same error."""
    put_encoded(broker, queue, [b"\x00\x53\x77\xa1\x01x", b"\x00\x53\x77\xa1\x02\xff\xfe"])
    running = query(onBadMessage="fail")
    running.plan()
    [task] = running.tasks()
    for _ in range(2):
        with pytest.raises(BadMessageError, match="1 of 2 messages"):
            running.read(task)
        assert left(broker, queue) == 0
