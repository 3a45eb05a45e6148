"""Connections that management closes, as an operator does or a policy for slow consumers, at each step of a run."""

import contextlib
import json
import time
import uuid
from dataclasses import replace

import pyarrow as pa
import pytest
from amqp_sending import put
from broker_rows import access_over
from numbered import fill
from registers import ReaderQuery
from streaming import access, left, stopping
from waiting import wait_until

from pyspark_jms.amqp.link.transactions import Transactions
from pyspark_jms.amqp.reading import Probe, ReaderLink
from pyspark_jms.amqp.sink import AmqpSinkLink, CommitLedger, LedgerLink
from pyspark_jms.amqp.source import AmqpSource, AmqpSourceLink
from pyspark_jms.delivery.commit_token import LedgerOwner
from pyspark_jms.errors import ConnectionLostError, JMSError, TransactionRolledBackError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.sink.sending_once import send_exactly_once
from pyspark_jms.sink.tasks import LedgerTask
from pyspark_jms.source.links import Reading
from pyspark_jms.source.receiver import BatchReceiver
from pyspark_jms.source.stopping import StopRequest
from pyspark_jms.source.task_inputs import read_task
from pyspark_jms.spark.protocols import query_of, reading_of
from pyspark_jms.stomp.sink import StompSinkLink
from pyspark_jms.stomp.source import StompSource, StompSourceLink
from pyspark_jms.testing import AddressSettings, EmbeddedArtemis

STOMP, AMQP = (StompSource, StompSourceLink), (AmqpSource, AmqpSourceLink)
STEPS = ("subscribe", "waiting", "take", "check", "acknowledge", "ping", "probe", "has_receipt", "close")
MESSAGES = 60


def closing(protocol, step, nth, close):
    """A protocol whose links call ``close`` before the ``nth`` call of a link's ``step``, and before two later ones;
    and how many of them have been.
    """
    source, link = protocol
    step_of, closed = closing_step(link, step, nth, close)
    connect = type("ClosedLink", (link,), {step: step_of})
    return type("ClosedSource", (source,), {"connect": staticmethod(connect)})(), closed


def closing_step(link, step, nth, close):
    method, calls, closed = getattr(link, step), [], []

    def closed_before(this, *args, **how):
        calls.append(step)
        connection = connection_of(this)
        if len(calls) >= nth and len(closed) < 3 and not connection.is_down:
            closed.append(step)
            close(connection)
        return method(this, *args, **how)

    return closed_before, closed


def connection_of(link):
    found = getattr(link, "_producer", link)
    return getattr(found, "connection", None) or found._connection


def run(reading):
    """Read as Trigger.AvailableNow does; the texts of the rows."""
    source = query_of(reading)
    with contextlib.ExitStack() as stack:
        stack.callback(source.stop)
        source.drain()
        rows, start = [], source.initial_offset()
        while (end := source.latest_offset(start)) != start:
            for task in source.partitions(start, end):
                rows += [row["text"] for part in read_task(task, reading) for row in part.to_pylist()]
            source.commit(end)
            start = end
    return rows


@pytest.mark.parametrize("nth", [1, pytest.param(3, marks=pytest.mark.deep)])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("protocol", "more"),
    [
        pytest.param(STOMP, {}, id="stomp"),
        pytest.param(STOMP, {"connections": "2"}, id="stomp-2", marks=pytest.mark.deep),
        pytest.param(STOMP, {"deliveryGuarantee": "exactly-once"}, id="journal", marks=pytest.mark.deep),
        pytest.param(AMQP, {}, id="amqp", marks=pytest.mark.deep),
        pytest.param(AMQP, {"connections": "2"}, id="amqp-2", marks=pytest.mark.deep),
    ],
)
def test_a_run_goes_on(broker, queue, tmp_path, protocol, more, step, nth):
    fill(broker, queue, MESSAGES)
    if "deliveryGuarantee" in more:
        more = more | {"journalLocation": str(tmp_path)}
    url = broker.amqp_url if protocol is AMQP else broker.url
    given = access(broker) | {"brokerUrl": url, "queue": queue, "maxMessagesPerTrigger": "20", "idleTimeout": "100ms"}
    control = broker.server.getActiveMQServerControl()
    changed, closed = closing(protocol, step, nth, lambda connection: close_connection(control, connection))
    rows = run(Reading(SourceOptions.parse(given | more), changed))
    assert closed or nth > 1 or step == "ping", "the step is not part of a run"
    # Over AMQP these messages have no id: of equal ones a later one may be another message.
    assert sorted(set(rows) if protocol is AMQP else rows) == sorted(f"text {n}" for n in range(MESSAGES))
    assert left(broker, queue, 0) == 0


RECEIVING = ("lock", "take", "accept", "browse", "subscribe", "add_to_value", "replace_value", "finish")


@pytest.mark.deep
@pytest.mark.parametrize("nth", [1, 4])
@pytest.mark.parametrize(
    ("link", "step"),
    [(ReaderLink, step) for step in RECEIVING] + [(Probe, step) for step in ("has_messages", "peek", "close")],
)
def test_an_exactly_once_read_goes_on(broker, queue, monkeypatch, link, step, nth):
    put(broker, queue, *(f"text {n}" for n in range(MESSAGES)))
    control = broker.server.getActiveMQServerControl()
    changed, closed = closing_step(link, step, nth, lambda connection: close_connection(control, connection))
    monkeypatch.setattr(link, step, changed)
    running = ReaderQuery(broker, queue=queue, readers=2, maxMessagesPerTrigger=20)
    with stopping(running.source):
        rows = running.texts(MESSAGES)
        assert not running.plan()
    assert closed or nth > 1 or step == "browse"
    assert sorted(rows) == sorted(f"text {n}" for n in range(MESSAGES))
    assert left(broker, queue, 0) == 0


@pytest.mark.parametrize("readers", [1, pytest.param(2, marks=pytest.mark.deep)])
def test_messages_whose_consumer_was_closed_before_they_were_accepted_are_read_once(
    broker, queue, monkeypatch, readers
):
    """The broker would ignore the acceptances, and commit the value."""
    put(broker, queue, *(f"text {n}" for n in range(MESSAGES)))
    control, method, closed = broker.server.getActiveMQServerControl(), ReaderLink.replace_value, []

    def closed_before(this, *args):
        if not closed:
            closed.append(end_consumers(control, queue))
        return method(this, *args)

    monkeypatch.setattr(ReaderLink, "replace_value", closed_before)
    running = ReaderQuery(broker, queue=queue, readers=readers)
    with stopping(running.source):
        assert sorted(running.texts(MESSAGES)) == sorted(f"text {n}" for n in range(MESSAGES))
        assert not running.plan()
    assert closed == [1]


@pytest.mark.parametrize("readers", [1, pytest.param(2, marks=pytest.mark.deep)])
@pytest.mark.parametrize("first", ["token", "messages"])
@pytest.mark.parametrize("closed_at_once", ["token", "messages", "both"])
def test_messages_whose_consumer_was_closed_once_they_were_accepted_are_read_once(
    broker, queue, monkeypatch, readers, first, closed_at_once
):
    """When the transaction is rolled back, Artemis 2.55 keeps the last one for the consumer that has ended.

    ``first``: after which acceptance is answered the consumers are closed.
    """
    put(broker, queue, *(f"text {n}" for n in range(MESSAGES)))
    closed, links = [], {}

    def ending(receiver):
        of = "messages" if receiver.remote_source.address == queue else "token"
        links[of] = receiver
        return [links[each] for each in links if of == first and closed_at_once in {each, "both"}]

    monkeypatch.setattr(Transactions, "_await_answers", closing_answered(broker, ending, closed))
    running = ReaderQuery(broker, queue=queue, readers=readers)
    with stopping(running.source):
        assert sorted(running.texts(MESSAGES)) == sorted(f"text {n}" for n in range(MESSAGES))
        assert not running.plan()
    assert closed or (first, closed_at_once) == ("token", "messages")


@pytest.mark.parametrize("queues", [1, pytest.param(12, marks=pytest.mark.deep)])
@pytest.mark.parametrize("protocol", ["amqp", pytest.param("stomp", marks=pytest.mark.deep)])
@pytest.mark.parametrize("end", ["consumer", "queue"])
def test_a_read_goes_on_after_the_end_of_its_consumer_alone(broker, queue, protocol, queues, end):
    names = [queue, *(f"{queue}.{n}" for n in range(1, queues))]
    for name in names:
        put(broker, name, "before")
    control, given = broker.server.getActiveMQServerControl(), access_over(broker, protocol)
    reading = reading_of(SourceOptions.parse(given | {"queue": json.dumps(names)}))
    with contextlib.closing(BatchReceiver(reading, StopRequest(), store=None, sequence=0)) as receiver:
        wait_until(lambda: receiver.next_batch_end() == queues)
        receiver.acknowledge_through(queues)
        wait_until(lambda: receiver.next_batch_end() and receiver.progress()["acknowledged"] == queues)
        if end == "consumer":
            assert end_consumers(control, queue) == 1
        else:
            control.destroyQueue(queue, True)
        put(broker, queue, "after")
        wait_until(lambda: receiver.next_batch_end() == queues + 1)


@pytest.fixture(scope="module")
def broker_that_creates_nothing():
    with EmbeddedArtemis(address_settings=[AddressSettings(match="fixed.#", auto_create_queues=False)]) as broker:
        yield broker


@pytest.fixture
def without_one(broker_that_creates_nothing, queue):
    """``without_one(protocol, queues)``: a read of so many queues, one of which is deleted; their names."""
    broker = broker_that_creates_nothing
    with contextlib.ExitStack() as exits:

        def without_one(protocol, queues, drain_since_ms=None, gone=0, **options):
            names = [f"fixed.{queue}.{n}" for n in range(queues)]
            for name in names:
                broker.create_queue(name)
            given = access_over(broker, protocol) | {"queue": json.dumps(names)} | options
            how = {"store": None, "sequence": 0, "drain_since_ms": drain_since_ms}
            receiver = BatchReceiver(reading_of(SourceOptions.parse(given)), StopRequest(), **how)
            exits.enter_context(contextlib.closing(receiver))
            broker.server.getActiveMQServerControl().destroyQueue(names[gone], True)
            return receiver, names

        yield without_one


@pytest.mark.parametrize(("queues", "gone"), [(2, 0), (12, 0), (12, 9)])
@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_while_one_queue_is_away_the_others_are_read(
    broker_that_creates_nothing, without_one, protocol, queues, gone, caplog
):
    """The tenth of twelve queues shares the connection of the second one, which is replaced before it."""
    broker, (receiver, names) = broker_that_creates_nothing, without_one(protocol, queues, gone=gone)
    wait_until(lambda: receiver.next_batch_end() or names[gone] in caplog.text)
    for count, name in enumerate((each for each in names if each != names[gone]), 1):
        put(broker, name, "meanwhile")
        wait_until(lambda count=count: receiver.next_batch_end() == count)
    receiver.acknowledge_through(queues - 1)
    broker.create_queue(names[gone])
    put(broker, names[gone], "again")
    wait_until(lambda: receiver.next_batch_end() == queues)
    said = [each for each in caplog.messages if "reads its other queues" in each or "is there again" in each]
    assert len(said) == 2, said


def test_a_run_ends_although_one_of_its_queues_is_away(broker_that_creates_nothing, without_one):
    until = time.time() + 60  # the message is one that was sent before the run
    receiver, names = without_one("amqp", 2, drain_since_ms=until * 1000)
    put(broker_that_creates_nothing, names[1], "one")
    wait_until(lambda: receiver.next_batch_end() == 1)
    receiver.acknowledge_through(1)
    assert receiver.next_batch_end() == 1


def test_a_queue_that_does_not_come_back_ends_the_query(without_one):
    receiver, names = without_one("amqp", 2, reconnectTimeout="1s")
    with pytest.raises(JMSError, match=names[0]):
        wait_until(receiver.next_batch_end)


def closing_answered(broker, ending, closed):
    """``Transactions._await_answers`` that closes consumers once, after the answers to the acceptances of a link:
    those of the links ``ending(receiver)``. ``closed`` gets how many.
    """
    control, method = broker.server.getActiveMQServerControl(), Transactions._await_answers

    def closed_then(this, receiver):
        method(this, receiver)
        links = ending(receiver) if not closed else []
        closed.extend(end_consumers(control, each.remote_source.address.rpartition("::")[2]) for each in links)
        wait_until(lambda: not any(each.is_attached for each in links))
        if links:
            this._connection.check_link(receiver)

    return closed_then


def end_consumers(control, queue):
    """Close them as an operator does, and no session or connection. Return how many."""
    found = [one for one in json.loads(control.listAllConsumersAsJSON()) if one["queueName"] == queue]
    return sum(bool(control.closeConsumerWithID(one["sessionID"], str(one["sequentialId"]))) for one in found)


@pytest.mark.deep
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize(
    ("link", "step"),
    [
        *((link, step) for link in (StompSinkLink, AmqpSinkLink) for step in ("encode", "send", "commit", "close")),
        *((LedgerLink, step) for step in ("encode", "send", "commit_with_entry", "close")),
    ],
)
def test_a_task_of_a_sink_is_repeated_without_loss(broker, queue, monkeypatch, link, step, nth):
    control = broker.server.getActiveMQServerControl()
    changed, closed = closing_step(link, step, nth, lambda connection: close_connection(control, connection))
    monkeypatch.setattr(link, step, changed)
    url, once = broker.url if link is StompSinkLink else broker.amqp_url, link is LedgerLink
    given = access(broker) | {"brokerUrl": url, "queue": queue}
    options = SinkOptions.parse(given | ({"deliveryGuarantee": "exactly-once"} if once else {}))
    texts = [f"text {n}" for n in range(MESSAGES)]
    rows = [pa.RecordBatch.from_pydict({"text": texts[n : n + 20]}) for n in range(0, MESSAGES, 20)]
    if once:
        write_once(options, rows)
    else:
        repeated(lambda _: send_at_least_once(link, options, iter(rows)))
    assert closed or nth > 1
    read = run(reading_of(SourceOptions.parse(given)))
    assert sorted(read) == sorted(texts)


def test_a_ledger_whose_consumer_was_closed_once_its_token_was_accepted_has_it_again(broker, queue, monkeypatch):
    closed = []
    monkeypatch.setattr(Transactions, "_await_answers", closing_answered(broker, lambda receiver: [receiver], closed))
    options = SinkOptions.parse(access(broker, "amqp") | {"queue": queue, "deliveryGuarantee": "exactly-once"})
    write_once(options, [pa.RecordBatch.from_pydict({"text": [f"text {n}" for n in range(MESSAGES)]})])
    assert closed == [1]
    assert left(broker, queue, MESSAGES) == MESSAGES


def write_once(options, rows):
    owner = LedgerOwner("query", uuid.uuid4().hex)
    task = LedgerTask(owner=owner, write="w/0", partition=0, batch=0, execution="e", may_be_repeated=False)

    def send(attempt):
        this = replace(task, may_be_repeated=attempt > 0, execution=f"e{attempt}")
        send_exactly_once(CommitLedger(options.connection, owner), options, this, iter(rows))

    repeated(send)


def repeated(send):
    """Call ``send`` with the number of the attempt, until it raises no error for which Spark would repeat a task."""
    for attempt in range(5):
        with contextlib.suppress(ConnectionLostError, TransactionRolledBackError):
            send(attempt)
            return


def close_connection(control, connection):
    """As an operator does it, and Artemis with a slow consumer."""
    end = connection._transport.socket if hasattr(connection, "_transport") else connection._stream._socket
    host, port = end.getsockname()
    found = {}
    wait_until(  # the broker lists a new connection a moment after it has answered
        lambda: (
            found.update({one["clientAddress"]: one for one in json.loads(control.listConnectionsAsJSON())})
            or f"{host}:{port}" in found
        )
    )
    assert control.closeConnectionWithID(found[f"{host}:{port}"]["connectionID"])
    wait_until(lambda: has_ended(connection), what="the end of the connection")


def has_ended(connection):
    """Return whether an ERROR is here, or the end: the link may not know of the second yet."""
    return connection.is_down or getattr(connection, "_error", None) is not None
