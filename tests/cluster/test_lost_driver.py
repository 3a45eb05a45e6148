"""A driver that is killed and whose files are lost with it: the next one has the checkpoint and nothing else.

Exactly once over AMQP, on a standalone cluster. Each driver is on a machine of its own, where it can write only to a
disk that is lost with it and to the folder of the checkpoint.
"""

import contextlib
import os
from collections import Counter

import pytest
from amqp_sending import settings_of
from frames import CLOSE, DISCHARGE, LOGIN, OUTCOME
from legs import from_queue, to_files, to_queue
from moving_query import MovingQuery
from numbered import fill, in_committed_files, in_queue, listed_batches
from standalone import may_hide
from streaming import left
from waiting import await_value, wait_until

from pyspark_jms.tools.registers import names_of_registers, show_register

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.deep, pytest.mark.timeout(1800)]

BATCH = 200
ONCE = {"deliveryGuarantee": "exactly-once"}
TWO_READERS = {"maxMessagesPerTrigger": str(BATCH), "readers": "2"}


@pytest.fixture(scope="module", autouse=True)
def machines():
    """PYSPARK_JMS_REQUIRE_NAMESPACES=1 makes a failure of what is skipped without mount namespaces: CI sets it."""
    if may_hide() is None:
        (pytest.fail if os.environ.get("PYSPARK_JMS_REQUIRE_NAMESPACES") else pytest.skip)(
            "a driver cannot have a disk of its own: `unshare --mount` is not permitted"
        )


@pytest.fixture
def artemis(fresh_broker):
    """It misses a silent connection after ten seconds."""
    return fresh_broker(acceptor_options={"amqpIdleTimeout": "5000"})


@pytest.fixture
def moving(artemis, cluster, installed, tmp_path):
    """``moving(leg)``: a query that has not started."""
    with contextlib.ExitStack() as exits:
        yield lambda leg: MovingQuery(artemis, cluster, installed, tmp_path, exits, leg)


class Messages:
    """They go from queue ``in`` to queue ``out``, or to files."""

    def __init__(self, broker):
        self._broker, self.sent = broker, 0

    def send(self, count):
        fill(self._broker, "in", count, first=self.sent)
        self.sent += count

    def waiting(self):
        return self._broker.message_count("in")

    def in_delivery(self):
        return self._broker.delivering_count("in")

    def written(self):
        return self._broker.message_count("out")

    def before(self, query, batch):
        """How many messages are in earlier batches, by the tokens of the readers."""
        number = query.number(batch)
        return sum(each.next - (each.messages if each.batch == number else 0) for each in self.registers(query))

    def through(self, query, batch):
        """How many messages are in this batch and earlier ones. None: not all its readers have received."""
        found = self.registers(query)
        return sum(each.next for each in found) if {each.batch for each in found} == {query.number(batch)} else None

    def registers(self, query):
        """When each has its token: the transaction that replaces a token hides it."""
        settings, found = settings_of(self._broker), []

        def have_tokens():
            found[:] = [show_register(settings, name) for name in names_of_registers(settings, query.address, None)]
            return all(each.tokens for each in found)

        wait_until(have_tokens, what="the token of each reader")
        return found


@pytest.fixture
def messages(artemis):
    return Messages(artemis)


def from_in(broker, query):
    return from_queue(broker, "in", brokerUrl=query.source.url, **ONCE, **TWO_READERS)


# --- the moments, in the order of the test -------------------------------------------------------


def a_task_has_read_a_part(query, messages, gate):
    """The other task of the batch has committed its rows."""
    messages.send(2 * BATCH)
    query.start(hold={"gate": str(gate), "at": str(2 * BATCH - 1)})
    query.until(lambda: any(gate.iterdir()), "a task that waits")
    batch = query.planned()
    query.until(lambda: messages.written() > messages.before(query, batch), "the rows of the other task")
    assert query.committed() == batch - 1
    rows = messages.written() - messages.before(query, batch)
    return f"batch {batch}: {rows} of its rows are committed, a task has read a part"


def rows_committed_by_the_driver(query, messages, gate):
    """In the repeated batch the tasks leave to the driver what an earlier run has not committed."""
    query.start()
    query.held(DISCHARGE.hold(query.sink), "the discharge of the driver")
    before, batch = messages.written(), query.planned()
    way = OUTCOME.hold(query.sink, link=query.sink.to_broker.held_link)
    query.sink.to_broker.release()
    query.held(way, "the outcome of the discharge")
    query.until(lambda: messages.written() > before, "the rows of the driver")
    assert query.committed() == batch - 1
    return f"batch {batch}: the broker has committed {messages.written() - before} rows of the driver, unconfirmed"


def between_batches(query, messages, gate):
    query.start()
    query.until(lambda: messages.written() == messages.sent, "the rows of all messages")
    query.until(lambda: query.committed() == query.planned(), "the end of all batches")
    return f"batch {query.committed()} is in the commit log, no message waits"


def received_and_not_committed(query, messages, gate):
    messages.send(2 * BATCH)
    query.start()
    query.held(DISCHARGE.hold(query.source), "the discharge of a task that receives")
    batch = query.planned()
    assert messages.waiting() > BATCH  # the other task may have committed
    assert query.committed() == batch - 1
    assert messages.in_delivery()
    return f"batch {batch}: {messages.in_delivery()} messages are received, a value is not discharged"


def received_and_unconfirmed(query, messages, gate):
    """In the repeated batch."""
    query.start()
    query.held(DISCHARGE.hold(query.source), "the discharge of a task that receives")
    before = messages.waiting()
    way = OUTCOME.hold(query.source, link=query.source.to_broker.held_link)
    query.source.to_broker.release()
    query.held(way, "the outcome of the discharge")
    query.until(lambda: messages.waiting() < before, "the value of a task")
    batch = query.planned()
    assert query.committed() == batch - 1
    return f"batch {batch}: {2 * BATCH - messages.waiting()} messages are in staging queues, unconfirmed"


def received_and_nothing_sent(query, messages, gate):
    """By a task. The other one may have committed its rows."""
    query.start()
    query.held(LOGIN.hold(query.sink), "a task that connects")
    batch = query.planned()
    assert query.committed() == batch - 1
    rows = messages.written() - messages.before(query, batch)
    assert rows < BATCH
    return f"batch {batch}: {rows} of its rows are committed, a task has sent nothing"


def rows_committed_by_all_tasks(query, messages, gate):
    """The first batch of the run is the repeated one."""
    query.start()
    query.held(DISCHARGE.hold(query.sink), "the discharge of a task")
    way = CLOSE.hold(query.sink)
    query.sink.to_broker.release()
    query.held(way, "the close of a task")
    batch = query.planned()
    query.until(lambda: messages.written() == messages.through(query, batch), "the rows of all tasks")
    assert query.committed() == batch - 1
    return f"batch {batch}: all rows are committed, the commit log ends before it"


MOMENTS = {
    a_task_has_read_a_part: False,
    rows_committed_by_the_driver: False,
    between_batches: True,
    received_and_not_committed: True,
    received_and_unconfirmed: False,
    received_and_nothing_sent: False,
    rows_committed_by_all_tasks: False,
}
"""Whether the machine is lost so that the broker does not notice the end of the receiver."""


@pytest.mark.slow  # seven minutes; the other one is in CI
def test_from_queue_to_queue(artemis, moving, messages, gate, report):
    def leg(query):
        copies = to_queue(artemis, "out", query.checkpoint, brokerUrl=query.sink.url, **ONCE)
        return from_in(artemis, query) | copies

    query = moving(leg)
    for moment, silently in MOMENTS.items():
        evidence = moment(query, messages, gate)
        files = query.lose(silently=silently)
        report(f"{moment.__name__}: {evidence}; {files} files lost{', silently' if silently else ''}")
    messages.send(BATCH // 2)
    query.finish()
    assert in_queue(artemis, "out") == Counter(range(messages.sent))
    require_nothing_left(artemis, query, messages)
    report(f"queue to queue: {messages.sent} messages, {len(MOMENTS)} drivers lost, 0 lost, 0 twice")


def require_nothing_left(broker, query, messages):
    """A run that ends by itself leaves a token in each staging queue, and the last batch."""
    assert left(broker, "in") == 0
    await_value(lambda: broker.message_count("DLQ"), 0)
    found = messages.registers(query)
    assert [len(each.tokens) for each in found] == [1, 1]
    assert sum(each.next for each in found) == messages.sent


# --- into files ----------------------------------------------------------------------------------


def test_from_queue_to_files(artemis, moving, messages, gate, report):
    query = moving(lambda query: from_in(artemis, query) | to_files(query.shared / "out", query.checkpoint))
    out = query.shared / "out"
    messages.send(2 * BATCH)
    query.start(hold={"gate": str(gate), "at": str(2 * BATCH - 1)})
    query.until(lambda: any(gate.iterdir()), "a task that waits")
    assert query.committed() < query.planned()
    query.lose()
    messages.send(5 * BATCH)
    query.start()
    query.freeze_when(lambda: max(listed_batches(out), default=-1) > query.committed())
    query.lose(silently=True)
    query.finish()
    assert in_committed_files(out) == Counter(range(messages.sent))
    require_nothing_left(artemis, query, messages)
    report(f"queue to files: {messages.sent} messages, 2 drivers lost, 0 lost, 0 twice")
